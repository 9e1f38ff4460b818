//! Producing as fast as batches are acknowledged.

use std::io::{self, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use super::flight::Flight;
use super::{Counts, Outcome, Produce, seconds};
use crate::client::{self, Connection, Responses};
use crate::histogram::Histogram;
use crate::{batch, clock};

pub(super) fn run(arguments: &Produce) -> io::Result<Outcome> {
    let limits = Limits {
        duration: seconds("--seconds", arguments.seconds)?,
        batches: arguments.batches,
        warm_up: seconds("--warm-up", arguments.warm_up)?,
    };
    let topic = &arguments.target.topic;
    let mut connection = Connection::open(arguments.target.broker)?;
    let partitions = arguments.partitions.unwrap_or(arguments.connections);
    connection.create_topic(topic, partitions, &[])?;
    let batch = batch::build(size(arguments.record_bytes), size(arguments.batch_bytes), clock::unix_millis());
    let mut lanes = Vec::new();
    for index in 0..arguments.connections {
        let turns = Turns { next: index % partitions, step: arguments.connections, partitions };
        let bytes = client::produce_request(topic, 0, arguments.acks, &batch.bytes);
        let request = Request { bytes, batch_len: batch.bytes.len(), turns };
        let (stream, responses) = Connection::open(arguments.target.broker)?.split()?;
        let batch_len = u64::try_from(batch.bytes.len()).unwrap_or_default();
        let records = u64::try_from(batch.count).unwrap_or_default();
        let acknowledged = arguments.acks != 0;
        lanes.push((Sender { stream, request, acknowledged }, Receiver { responses, batch_len, records }));
    }
    let start = clock::now();
    let in_flight = size(arguments.in_flight);
    let seen = thread::scope(|scope| {
        let running: Vec<_> = lanes
            .into_iter()
            .map(|(sender, receiver)| scope.spawn(move || lane(sender, receiver, in_flight, start, limits)))
            .collect();
        running.into_iter().map(join).collect::<io::Result<Vec<Seen>>>()
    })?;
    let mut all = Seen::new(start);
    for one in seen {
        all.counts.add(one.counts);
        all.latency.merge(&one.latency);
        all.last = all.last.max(one.last);
    }
    let measured = all.last.saturating_duration_since(start + limits.warm_up);
    Ok(Outcome::new("produce", measured, all.counts, all.latency.percentiles()))
}

/// When a lane stops and from when it measures.
#[derive(Debug, Clone, Copy)]
struct Limits {
    duration: Duration,
    batches: Option<u64>,
    warm_up: Duration,
}

struct Sender {
    stream: TcpStream,
    request: Request,
    acknowledged: bool,
}

/// One request for all partitions: so that many of them cost the client's caches no more than one does.
struct Request {
    bytes: Vec<u8>,
    batch_len: usize,
    turns: Turns,
}

impl Request {
    fn next(&mut self) -> &[u8] {
        client::redirect(&mut self.bytes, self.batch_len, self.turns.next());
        &self.bytes
    }
}

/// The partitions that one of several connections sends to; each begins with another one.
#[derive(Debug, Clone, Copy)]
struct Turns {
    next: i32,
    /// How many connections there are.
    step: i32,
    partitions: i32,
}

impl Turns {
    fn next(&mut self) -> i32 {
        let now = self.next;
        self.next = (now + self.step) % self.partitions;
        now
    }
}

/// The receiving half of a connection whose requests are all alike.
pub(super) struct Receiver {
    pub(super) responses: Responses,
    pub(super) batch_len: u64,
    pub(super) records: u64,
}

/// What one connection saw.
pub(super) struct Seen {
    pub(super) counts: Counts,
    pub(super) latency: Histogram,
    /// The last acknowledgement.
    pub(super) last: Instant,
}

impl Seen {
    fn new(start: Instant) -> Self {
        Self { counts: Counts::default(), latency: Histogram::new(), last: start }
    }
}

fn lane(
    sender: Sender,
    receiver: Receiver,
    in_flight: usize,
    start: Instant,
    limits: Limits,
) -> io::Result<Seen> {
    if !sender.acknowledged {
        return unacknowledged(sender, &receiver, start, limits);
    }
    let Sender { stream, mut request, .. } = sender;
    in_two(stream, receiver, in_flight, start, limits.warm_up, |stream, flight| {
        let mut sent = 0;
        while limits.batches.map_or_else(|| start.elapsed() < limits.duration, |batches| sent < batches) {
            flight.begin(clock::now)?;
            stream.write_all(request.next())?;
            sent += 1;
        }
        Ok(())
    })
}

/// Runs `drive` on this thread and receives on another one, until all that was sent is acknowledged.
pub(super) fn in_two(
    mut stream: TcpStream,
    mut receiver: Receiver,
    in_flight: usize,
    start: Instant,
    warm_up: Duration,
    drive: impl FnOnce(&mut TcpStream, &Flight) -> io::Result<()>,
) -> io::Result<Seen> {
    let flight = Flight::new(in_flight);
    thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            let seen = receive(&mut receiver, &flight, start, start + warm_up);
            if seen.is_err() {
                flight.give_up();
                receiver.responses.abort();
            }
            seen
        });
        let sent = drive(&mut stream, &flight);
        flight.finish();
        if sent.is_err() {
            // The receiver must not wait for what was never sent; a socket closed already needs no closing.
            let _ = stream.shutdown(Shutdown::Both);
        }
        // What the receiver saw is the cause where both failed.
        let seen = join(receiving)?;
        sent.map(|()| seen)
    })
}

fn receive(
    receiver: &mut Receiver,
    flight: &Flight,
    start: Instant,
    measured_from: Instant,
) -> io::Result<Seen> {
    let mut seen = Seen::new(start);
    while flight.expects() {
        receiver.responses.produced()?;
        let now = clock::now();
        let measured = now >= measured_from;
        if let Some(begun) = flight.end()
            && measured
        {
            seen.latency.record(now.saturating_duration_since(begun));
        }
        seen.counts.request(receiver.records, receiver.batch_len, measured);
        seen.last = now;
    }
    Ok(seen)
}

/// Without acknowledgements only the rate of sending is known.
fn unacknowledged(
    mut sender: Sender,
    receiver: &Receiver,
    start: Instant,
    limits: Limits,
) -> io::Result<Seen> {
    let mut seen = Seen::new(start);
    let mut sent = 0;
    while limits.batches.map_or_else(|| start.elapsed() < limits.duration, |batches| sent < batches) {
        sender.stream.write_all(sender.request.next())?;
        seen.last = clock::now();
        seen.counts.request(receiver.records, receiver.batch_len, seen.last >= start + limits.warm_up);
        sent += 1;
    }
    Ok(seen)
}

fn join<T>(thread: thread::ScopedJoinHandle<'_, io::Result<T>>) -> io::Result<T> {
    thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))
}

fn size(value: u32) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(connections: i32, partitions: i32, expect: &[&[i32]]) {
        for (index, expect) in (0..connections).zip(expect) {
            let mut turns = Turns { next: index % partitions, step: connections, partitions };
            let seen: Vec<_> = expect.iter().map(|_| turns.next()).collect();
            assert_eq!(seen, *expect, "connection {index}");
        }
    }

    #[test]
    fn connections_take_turns_over_all_partitions_or_keep_to_one_each() {
        check(1, 3, &[&[0, 1, 2, 0]]);
        check(2, 5, &[&[0, 2, 4, 1, 3, 0], &[1, 3, 0, 2, 4, 1]]);
        check(2, 4, &[&[0, 2, 0], &[1, 3, 1]]);
        check(3, 3, &[&[0, 0], &[1, 1], &[2, 2]]);
        check(3, 2, &[&[0, 1], &[1, 0], &[0, 1]]);
    }
}
