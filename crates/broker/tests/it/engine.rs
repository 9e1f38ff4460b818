//! The engine of a connection without sockets: the same bytes give the same requests, however they are cut.

use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes};
use kolumn_broker::connection::{
    Chunk, Connection, ConnectionErrorKind, ConnectionLimits, ReceivedRequest, Response, SlotId,
};
use proptest::prelude::*;

type Engine = Connection<Bytes>;

fn served(api_key: i16, api_version: i16) -> Option<usize> {
    ((0..10).contains(&api_key) && api_version >= 0).then_some(if api_key == 0 { usize::MAX } else { 500 })
}

fn start() -> Instant {
    tokio::time::Instant::now().into_std()
}

fn engine(change: impl FnOnce(&mut ConnectionLimits)) -> Engine {
    let mut limits = ConnectionLimits::default();
    limits.frame_len_max = 1_000;
    change(&mut limits);
    Connection::new(limits, served, start())
}

fn frame(key: i16, version: i16, correlation: i32, body_len: usize) -> Vec<u8> {
    let mut frame = Vec::new();
    frame.put_i32(i32::try_from(8 + body_len).expect("short"));
    frame.put_i16(key);
    frame.put_i16(version);
    frame.put_i32(correlation);
    frame.resize(12 + body_len, 0xab);
    frame
}

#[derive(Debug, PartialEq)]
enum Seen {
    Request(Bytes),
    Error(ConnectionErrorKind),
}

/// Feeds bytes in pieces, answering each request at once so that no limit is met.
fn feed(engine: &mut Engine, bytes: &[u8], cuts: &[usize]) -> Vec<Seen> {
    let mut seen = Vec::new();
    let mut rest = bytes;
    let mut cuts = cuts.iter().copied().cycle();
    loop {
        loop {
            match engine.next_request() {
                Ok(Some(ReceivedRequest { slot, frame, .. })) => {
                    seen.push(Seen::Request(frame));
                    engine.skip(slot);
                }
                Ok(None) => break,
                Err(error) => {
                    seen.push(Seen::Error(error.kind()));
                    return seen;
                }
            }
        }
        if rest.is_empty() {
            return seen;
        }
        let want = engine.receive_want().expect("it wants more");
        let len = cuts.next().unwrap_or(1).clamp(1, rest.len()).min(want);
        let (piece, later) = rest.split_at(len);
        rest = later;
        engine.receive_buf(want).put_slice(piece);
        if let Err(error) = engine.received(start()) {
            // What was complete before is still handed out, then the error again.
            while let Ok(Some(request)) = engine.next_request() {
                seen.push(Seen::Request(request.frame));
            }
            seen.push(Seen::Error(error.kind()));
            return seen;
        }
    }
}

fn some_frame() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => (0..10_i16, 0..3_i16, any::<i32>(), 0..400_usize).prop_map(|(k, v, c, l)| frame(k, v, c, l)),
        1 => (8..20_i16, any::<i16>()).prop_map(|(k, v)| frame(k, v, 1, 10)),
        1 => prop::collection::vec(any::<u8>(), 0..20),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn bytes_cut_anywhere_give_the_same_events(
        frames in prop::collection::vec(some_frame(), 0..8),
        cuts in prop::collection::vec(1..300_usize, 1..10),
    ) {
        let bytes = frames.concat();
        let whole = feed(&mut engine(|_| {}), &bytes, &[usize::MAX]);
        let single = feed(&mut engine(|_| {}), &bytes, &[1]);
        let cut = feed(&mut engine(|_| {}), &bytes, &cuts);
        prop_assert_eq!(&whole, &single);
        prop_assert_eq!(&whole, &cut);
    }

    #[test]
    fn answers_in_any_order_leave_in_the_order_of_requests(
        order in Just((0..12_usize).collect::<Vec<_>>()).prop_shuffle(),
        skipped in prop::collection::vec(any::<bool>(), 12),
        takes in prop::collection::vec(1..40_usize, 1..8),
    ) {
        let mut engine = engine(|_| {});
        let slots = open(&mut engine, 12);
        let mut written = Vec::new();
        let mut takes = takes.iter().copied().cycle();
        for index in order {
            if skipped[index] {
                engine.skip(slots[index]);
            } else {
                engine.respond(slots[index], answer(index));
            }
            write(&mut engine, takes.next().unwrap_or(1), &mut written);
        }
        while engine.has_output() {
            write(&mut engine, takes.next().unwrap_or(1), &mut written);
        }
        let expected: Vec<u8> =
            (0..12).filter(|index| !skipped[*index]).flat_map(plain).collect();
        prop_assert_eq!(written, expected);
        prop_assert_eq!((engine.in_flight(), engine.held_len()), (0, 0));
    }
}

fn open(engine: &mut Engine, count: i32) -> Vec<SlotId> {
    let bytes: Vec<u8> = (0..count).flat_map(|id| frame(1, 1, id, 5)).collect();
    engine.receive_buf(bytes.len()).put_slice(&bytes);
    engine.received(start()).expect("good frames");
    let mut slots = Vec::new();
    while let Some(request) = engine.next_request().expect("good frames") {
        slots.push(request.slot);
    }
    slots
}

fn plain(index: usize) -> Vec<u8> {
    let text = format!("<{index}>{}", "r".repeat(index * 3));
    text.into_bytes()
}

/// The same bytes, part in memory, part as a range.
fn answer(index: usize) -> Response<Bytes> {
    let bytes = Bytes::from(plain(index));
    let mut response = Response::new();
    response.push_bytes(bytes.slice(..2));
    let rest = bytes.slice(2..);
    let len = rest.len();
    response.push_range(rest, len);
    response
}

/// Hands out up to twice what the socket then takes.
fn write(engine: &mut Engine, take: usize, written: &mut Vec<u8>) {
    let mut handed = Vec::new();
    while handed.len() < take * 2 {
        match engine.transmit(take) {
            Some(Chunk::Bytes(bytes)) => handed.extend_from_slice(&bytes),
            Some(Chunk::Range { source, start, len }) => {
                handed.extend_from_slice(&source[start..start + len]);
            }
            None => break,
        }
    }
    let taken = handed.len().min(take);
    written.extend_from_slice(&handed[..taken]);
    engine.sent(taken, start());
}

#[test]
fn a_claimed_length_reserves_nothing() {
    let mut engine = engine(|limits| limits.frame_len_max = 100 << 20);
    let head = &frame(0, 0, 1, 0)[4..];
    let bytes = [&(90_i32 << 20).to_be_bytes()[..], head].concat();
    engine.receive_buf(bytes.len()).put_slice(&bytes);
    engine.received(start()).expect("within the limit");
    assert!(engine.receive_want().expect("more") <= 8 << 10, "growth follows what has arrived");
    assert!(engine.receive_buf(1).capacity() < 64 << 10);
    assert_eq!(engine.held_len(), 12);
}

#[test]
fn an_idle_connection_holds_no_buffer() {
    let mut engine = engine(|_| {});
    assert_eq!(engine.receive_buf(0).capacity(), 0);
    for slot in open(&mut engine, 3) {
        engine.skip(slot);
    }
    assert_eq!((engine.receive_buf(0).capacity(), engine.held_len()), (0, 0));
}

#[test]
fn requests_in_flight_are_bounded_until_their_answers_are_written() {
    let mut engine = engine(|limits| limits.in_flight_max = 4);
    let slots = open(&mut engine, 6);
    assert_eq!((slots.len(), engine.receive_want()), (4, None));
    for (index, slot) in slots.into_iter().enumerate() {
        engine.respond(slot, answer(index));
    }
    assert!(engine.next_request().expect("good frames").is_none(), "answered is not written");
    let mut written = Vec::new();
    while engine.has_output() {
        write(&mut engine, 7, &mut written);
    }
    assert!(engine.next_request().expect("good frames").is_some());
}

#[test]
fn answers_in_memory_hold_back_further_requests() {
    let mut engine = engine(|limits| limits.answer_len_max = 100);
    let bytes: Vec<u8> = (0..2).flat_map(|id| frame(1, 1, id, 5)).collect();
    engine.receive_buf(bytes.len()).put_slice(&bytes);
    engine.received(start()).expect("good frames");
    let slot = engine.next_request().expect("good").expect("a request").slot;
    let mut large = Response::new();
    large.push_bytes(Bytes::from(vec![0; 101]));
    engine.respond(slot, large);
    assert!(engine.next_request().expect("good").is_none());
    assert!(!engine.wants_answers());
    engine.sent(50, start());
    assert!(engine.next_request().expect("good").is_some());
}

#[test]
fn silence_ends_a_connection_unless_it_waits_for_us() {
    let mut engine = engine(|limits| limits.idle_timeout = Duration::from_mins(1));
    let late = start() + Duration::from_hours(1);
    let slots = open(&mut engine, 1);
    assert!(!engine.handle_timeout(late), "its request is being answered");
    engine.respond(slots[0], answer(3));
    assert!(!engine.handle_timeout(late + Duration::from_secs(59)));
    assert!(engine.handle_timeout(late + Duration::from_mins(1)), "it does not take its answer");
}

#[test]
fn with_every_place_taken_no_byte_is_asked_for() {
    let mut engine = engine(|limits| limits.in_flight_max = 4);
    let slots = open(&mut engine, 4);
    assert_eq!((engine.held_len(), engine.partial_len()), (4 * 13, 0), "nothing else is in the buffer");
    assert_eq!(engine.receive_want(), None);
    engine.skip(slots[2]);
    assert_eq!(engine.receive_want(), None, "it waits for those before it");
    engine.skip(slots[0]);
    assert!(engine.receive_want().is_some());
    engine.stop_receiving();
    assert_eq!(engine.receive_want(), None, "nor after the end was announced");
}
