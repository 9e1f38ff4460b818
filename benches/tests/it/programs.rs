//! Null broker and blaster in one process; the calibration on a scratch directory.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use benches::NullBroker;
use serde_json::Value;

fn null_broker() -> SocketAddr {
    let broker = NullBroker::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = broker.local_addr();
    broker.serve_in_background();
    address
}

/// Sends bytes that are no request.
#[track_caller]
pub(crate) fn closes_without_answer(address: SocketAddr, bytes: &[u8]) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(bytes).unwrap();
    let mut answer = Vec::new();
    // Either an orderly end or a reset, because bytes may be left unread; never an answer.
    let _ = stream.read_to_end(&mut answer);
    assert!(answer.is_empty(), "{bytes:?}");
}

pub(crate) fn blast(address: SocketAddr, mode: &str, options: &[&str]) -> std::io::Result<Value> {
    let address = address.to_string();
    let arguments: Vec<_> =
        ["blaster", mode, "--broker", &address].iter().chain(options).map(Into::into).collect();
    let mut out = Vec::new();
    benches::blaster(&arguments, &mut out)?;
    Ok(serde_json::from_slice(&out).unwrap())
}

#[test]
fn every_batch_that_is_sent_is_acknowledged_on_every_connection() {
    let seen =
        blast(null_broker(), "produce", &["--batches", "30", "--connections", "3", "--in-flight", "4"])
            .unwrap();
    assert_eq!(seen["requests"], 90);
    assert_eq!(seen["latency_us"]["count"], 90);
    assert_eq!(seen["bytes"], seen["bytes_total"]);
    assert!(seen["bytes"].as_u64().unwrap() > 90 * 998_000);
}

#[test]
fn a_warm_up_is_sent_and_not_measured() {
    let seen = blast(null_broker(), "produce", &["--batches", "30", "--warm-up", "3600"]).unwrap();
    assert_eq!(seen["requests"], 0);
    assert!(seen["bytes_total"].as_u64().unwrap() > 30 * 998_000);
}

#[test]
fn without_acknowledgements_nothing_is_waited_for() {
    let seen = blast(null_broker(), "produce", &["--batches", "30", "--acks", "0"]).unwrap();
    assert_eq!(seen["requests"], 30);
    assert_eq!(seen["latency_us"]["count"], 0);
}

#[test]
fn a_drain_sees_whole_batches_in_a_row() {
    let seen = blast(null_broker(), "drain", &["--seconds", "0.05"]).unwrap();
    let (records, requests) = (seen["records"].as_u64().unwrap(), seen["requests"].as_u64().unwrap());
    assert!(requests > 0 && records % requests == 0, "{seen}");
}

#[test]
fn a_fixed_rate_is_one_record_a_request() {
    let seen = blast(null_broker(), "latency", &["--seconds", "0.1", "--rate", "500"]).unwrap();
    assert_eq!(seen["requests"], 50);
    assert_eq!(seen["records"], 50);
}

#[test]
fn a_broker_that_hangs_up_is_an_error_for_every_mode() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let _ = stream.unwrap().read(&mut [0; 64]);
        }
    });
    for mode in ["produce", "drain", "latency"] {
        assert!(blast(address, mode, &[]).is_err(), "{mode}");
    }
}

#[test]
fn the_null_broker_closes_on_what_it_does_not_speak_and_serves_the_next() {
    let address = null_broker();
    let hostile: [&[u8]; 5] = [
        &[0xff; 64],
        &[0, 0, 0, 4, 0, 18, 0, 0],
        &[0, 0, 0, 10, 0x7f, 0xff, 0, 0, 0, 0, 0, 1, 0xff, 0xff],
        &[0, 0, 0, 10, 0, 0, 0, 2, 0, 0, 0, 1, 0xff, 0xff],
        &[0x7f, 0xff, 0xff, 0xff, 0, 3, 0, 1, 0, 0, 0, 1, 0xff, 0xff],
    ];
    for bytes in hostile {
        closes_without_answer(address, bytes);
    }
    assert!(blast(address, "produce", &["--batches", "1"]).is_ok());
}

#[test]
fn a_corrupt_batch_is_refused_by_the_null_broker() {
    let mut stream = TcpStream::connect(null_broker()).unwrap();
    let body: Vec<u8> = [
        &[0, 0, 0, 3, 0, 0, 0, 9][..],          // Produce v3, correlation id 9
        &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff],  // no client id, no transactional id, acks -1
        &[0, 0, 0, 0, 0, 0, 0, 1, 0, 1, b't'],  // timeout, one topic `t`
        &[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 61], // one partition 0 with 61 bytes
        &[7; 61],
    ]
    .concat();
    stream.write_all(&u32::try_from(body.len()).unwrap().to_be_bytes()).unwrap();
    stream.write_all(&body).unwrap();
    let mut answer = [0; 25];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer[23..], [0, 2], "{answer:?}");
}

#[test]
fn a_calibration_has_a_number_in_every_row_and_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    let arguments = ["calibrate", "--dir", path, "--seconds", "0.02", "--append-mib", "2"];
    let mut out = Vec::new();
    benches::calibrate(&arguments.map(Into::into), &mut out).unwrap();
    let seen: Value = serde_json::from_slice(&out).unwrap();
    for row in
        ["loopback", "fresh_append", "write_and_sync", "fresh_write_and_sync", "receive_write_and_sync"]
    {
        assert!(seen[row]["gb_per_s"].as_f64().unwrap() > 0.0, "{row}");
    }
    for row in ["ping_pong_us", "sync_us", "sync_paced_us"] {
        assert!(seen[row]["count"].as_u64().unwrap() > 0, "{row}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_wrong_argument_is_an_error_that_names_it() {
    let mut out = Vec::new();
    let arguments = ["blaster", "produce", "--in-flight", "0"].map(Into::into);
    let error = benches::blaster(&arguments, &mut out).unwrap_err().to_string();
    assert!(error.contains("--in-flight"), "{error}");
}
