//! The floor broker and the blaster in one process: what is acknowledged can be fetched.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use benches::FloorBroker;
use serde_json::Value;

use crate::programs::{blast, closes_without_answer};

fn floor(dir: &tempfile::TempDir) -> SocketAddr {
    let broker = FloorBroker::bind("127.0.0.1:0".parse().unwrap(), dir.path(), 3).unwrap();
    let address = broker.local_addr();
    broker.serve_in_background();
    address
}

fn sum(seen: &Value, field: &str) -> u64 {
    seen[field].as_u64().unwrap()
}

#[test]
fn what_was_acknowledged_on_many_connections_is_fetched_in_order_from_each_partition() {
    let dir = tempfile::tempdir().unwrap();
    let address = floor(&dir);
    for batch_bytes in ["1100", "16384", "1000000"] {
        let options =
            ["--batches", "20", "--connections", "3", "--in-flight", "4", "--batch-bytes", batch_bytes];
        let seen = blast(address, "produce", &options).unwrap();
        assert_eq!(sum(&seen, "requests"), 60);
        assert_eq!(seen["latency_us"]["count"], 60);
    }
    for partition in ["0", "1", "2"] {
        let options = ["--seconds", "0.05", "--partition", partition];
        let seen = blast(address, "drain", &options).unwrap();
        assert!(sum(&seen, "requests") > 0, "{seen}");
    }
}

#[test]
fn one_connection_sends_to_all_partitions_in_turn() {
    let dir = tempfile::tempdir().unwrap();
    let address = floor(&dir);
    let options = ["--batches", "31", "--partitions", "3", "--batch-bytes", "16384", "--in-flight", "4"];
    let seen = blast(address, "produce", &options).unwrap();
    assert_eq!(sum(&seen, "requests"), 31);
    let of_the_first = u64::try_from(offset(address, -1)).unwrap();
    assert_eq!(of_the_first, sum(&seen, "records") / 31 * 11);
    for partition in ["1", "2"] {
        let seen = blast(address, "drain", &["--seconds", "0.01", "--partition", partition]).unwrap();
        assert!(sum(&seen, "records") > 0, "{seen}");
    }
    assert!(blast(address, "produce", &["--batches", "4", "--partitions", "4"]).is_err(), "it has three");
}

#[test]
fn a_log_that_has_gone_around_still_has_its_newest_offsets_in_a_row() {
    let dir = tempfile::tempdir().unwrap();
    let address = floor(&dir);
    let seen = blast(address, "produce", &["--batches", "200"]).unwrap();
    assert_eq!(sum(&seen, "requests"), 200);
    let drained = blast(address, "drain", &["--seconds", "0.2"]).unwrap();
    assert!(sum(&drained, "records") > 0, "{drained}");
    let first_and_end = [offset(address, -2), offset(address, -1)];
    assert!(0 < first_and_end[0] && first_and_end[0] < first_and_end[1], "{first_and_end:?}");
    assert_eq!(u64::try_from(first_and_end[1]).unwrap(), sum(&seen, "records"));
}

#[test]
fn a_fixed_rate_is_one_record_a_request() {
    let dir = tempfile::tempdir().unwrap();
    let seen = blast(floor(&dir), "latency", &["--seconds", "0.1", "--rate", "200"]).unwrap();
    assert_eq!(sum(&seen, "requests"), 20);
    assert_eq!(sum(&seen, "records"), 20);
}

#[test]
fn a_fetch_at_the_end_is_answered_by_the_next_batch_and_holds_nobody_up() {
    let dir = tempfile::tempdir().unwrap();
    let address = floor(&dir);
    blast(address, "produce", &["--batches", "1", "--batch-bytes", "1100"]).unwrap();
    let (sender, answers) = mpsc::channel();
    let end = offset(address, -1);
    let mut waiting = TcpStream::connect(address).unwrap();
    waiting.write_all(&fetch(end, 60_000)).unwrap();
    thread::spawn(move || sender.send(answer(&mut waiting)));
    assert!(answers.recv_timeout(Duration::from_millis(100)).is_err(), "there is nothing to answer yet");
    blast(address, "produce", &["--batches", "1", "--batch-bytes", "1100"]).unwrap();
    let answered = answers.recv_timeout(Duration::from_secs(20)).unwrap();
    assert!(answered.len() > 1100, "{} bytes", answered.len());
}

#[test]
fn a_fetch_whose_patience_ends_is_answered_with_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut waiting = TcpStream::connect(floor(&dir)).unwrap();
    waiting.write_all(&fetch(0, 20)).unwrap();
    let answered = answer(&mut waiting);
    assert_eq!(answered[answered.len() - 4..], [0; 4]);
}

#[test]
fn a_client_that_leaves_the_protocol_is_closed_and_the_next_is_served() {
    let dir = tempfile::tempdir().unwrap();
    let address = floor(&dir);
    for bytes in [&[0xff; 64][..], &[0x7f, 0xff, 0xff, 0xff, 0, 3], &[0, 0, 0, 4, 0, 18, 0, 0]] {
        closes_without_answer(address, bytes);
    }
    assert!(blast(address, "produce", &["--batches", "1"]).is_ok());
}

/// A partition's first (`-2`) or next (`-1`) offset: `ListOffsets` version 1, without a client's id.
fn offset(address: SocketAddr, which: i64) -> i64 {
    let mut body = vec![0, 2, 0, 1, 0, 0, 0, 9, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
    body.extend([0, 0, 0, 1, 0, 5]);
    body.extend(b"blast");
    body.extend([0, 0, 0, 1, 0, 0, 0, 0]);
    body.extend(which.to_be_bytes());
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(&framed(&body)).unwrap();
    let answered = answer(&mut stream);
    i64::from_be_bytes(*answered.last_chunk().unwrap())
}

/// Fetch version 4 of partition 0, without a client's id.
fn fetch(offset: i64, wait_ms: i32) -> Vec<u8> {
    let mut body = vec![0, 1, 0, 4, 0, 0, 0, 9, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
    body.extend(wait_ms.to_be_bytes());
    body.extend(1_i32.to_be_bytes());
    body.extend(1_000_000_i32.to_be_bytes());
    body.extend([0, 0, 0, 0, 1, 0, 5]);
    body.extend(b"blast");
    body.extend([0, 0, 0, 1, 0, 0, 0, 0]);
    body.extend(offset.to_be_bytes());
    body.extend(1_000_000_i32.to_be_bytes());
    framed(&body)
}

fn framed(body: &[u8]) -> Vec<u8> {
    [&u32::try_from(body.len()).unwrap().to_be_bytes()[..], body].concat()
}

fn answer(stream: &mut TcpStream) -> Vec<u8> {
    let mut len = [0; 4];
    stream.read_exact(&mut len).unwrap();
    let mut body = vec![0; usize::try_from(u32::from_be_bytes(len)).unwrap()];
    stream.read_exact(&mut body).unwrap();
    body
}
