//! From the intended time of sending to the receipt by each consumer, at a fixed rate.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rdkafka::message::Message as _;

use crate::arguments::{EndToEnd, Span};
use crate::clock;
use crate::histogram::Histogram;
use crate::outcome::{Counts, Outcome};
use crate::payload::Mark;
use crate::produce::{Sender, Sent, join};
use crate::reader::Reader;

pub(crate) fn run(arguments: &EndToEnd) -> io::Result<Outcome> {
    let EndToEnd { target, span, sending, .. } = arguments;
    if usize::try_from(sending.record_bytes).is_ok_and(|len| len < Mark::LEN) {
        let error = format!("`--record-bytes` is less than the {} of a mark", Mark::LEN);
        return Err(io::Error::new(io::ErrorKind::InvalidInput, error));
    }
    let run = clock::unix_millis().unsigned_abs() ^ (u64::from(std::process::id()) << 44);
    let epoch = clock::now();
    let sender = Sender::new(target, sending, arguments.linger_ms, epoch, (0, 1))?;
    let readers = (0..arguments.consumers)
        .map(|_| Reader::from_end(target, FETCH_BYTES))
        .collect::<io::Result<Vec<Reader>>>()?;
    // The first fetches are on their way before the first record is.
    let start = clock::now() + SETTLING;
    let expected = AtomicU64::new(u64::MAX);
    let (sent, received) = thread::scope(|scope| {
        let expected = &expected;
        let receivers: Vec<_> = readers
            .into_iter()
            .map(|reader| {
                let receiver = Receiver::new(reader, Clock { epoch, start, span: *span, run });
                scope.spawn(move || receiver.run(expected))
            })
            .collect();
        let sent = sender.keep(arguments.rate, *span, start, Some(run));
        let acknowledged = sent.as_ref().map_or(0, |sent| sent.seen.counts.records_total);
        expected.store(acknowledged, Ordering::Relaxed);
        let received = receivers.into_iter().map(join).collect::<io::Result<Vec<Received>>>()?;
        sent.map(|sent| (sent, received))
    })?;
    Ok(outcome(&sent, &received, start + span.warm_up))
}

fn outcome(sent: &Sent, received: &[Received], measured_from: Instant) -> Outcome {
    let (mut counts, mut latency, mut last) = (Counts::default(), Histogram::new(), measured_from);
    let mut faults: Vec<String> = sent.fault().into_iter().collect();
    let (mut missing, mut gaps) = (0, 0);
    for one in received {
        counts.add(one.counts);
        latency.merge(&one.latency);
        last = last.max(one.last);
        missing += one.missing;
        gaps += one.gaps;
        faults.extend(one.fault.clone());
    }
    if missing > 0 {
        faults.push(format!("{missing} records were not received"));
    }
    if gaps > 0 {
        faults.push(format!("{gaps} offsets do not follow their predecessor"));
    }
    Outcome {
        latency_us: latency.percentiles(),
        acknowledgement_us: Some(sent.seen.latency.percentiles()),
        errors: sent.lost() + missing,
        gaps,
        next_offsets: sent.seen.next_offsets(),
        faults,
        ..Outcome::new("end-to-end", last.saturating_duration_since(measured_from), counts)
    }
}

/// What a receiver must know to measure.
#[derive(Debug, Clone, Copy)]
struct Clock {
    epoch: Instant,
    start: Instant,
    span: Span,
    run: u64,
}

/// One consumer on its thread.
struct Receiver {
    reader: Reader,
    clock: Clock,
    seen: Received,
}

/// What one consumer received.
struct Received {
    counts: Counts,
    latency: Histogram,
    /// The last receipt.
    last: Instant,
    missing: u64,
    gaps: u64,
    fault: Option<String>,
}

impl Receiver {
    fn new(reader: Reader, clock: Clock) -> Self {
        let seen = Received {
            counts: Counts::default(),
            latency: Histogram::new(),
            last: clock.start,
            missing: 0,
            gaps: 0,
            fault: None,
        };
        Self { reader, clock, seen }
    }

    /// Reads until it has as many records of the run as were acknowledged, which is known when all is sent.
    fn run(mut self, expected: &AtomicU64) -> io::Result<Received> {
        loop {
            let wanted = expected.load(Ordering::Relaxed);
            self.seen.missing = wanted.saturating_sub(self.seen.counts.records_total);
            if self.seen.missing == 0 {
                break;
            }
            let received = self.receive()?;
            if !received && wanted != u64::MAX {
                self.seen.fault = self.reader.silence();
                if self.seen.fault.is_some() {
                    break;
                }
            }
        }
        self.seen.gaps = self.reader.order().gaps;
        Ok(self.seen)
    }

    fn receive(&mut self) -> io::Result<bool> {
        let Some(message) = self.reader.next()? else { return Ok(false) };
        let now = clock::now();
        let value = message.payload().unwrap_or_default();
        if let Some(Mark { sent, run }) = Mark::read(value)
            && run == self.clock.run
        {
            let measured = now >= self.clock.start + self.clock.span.warm_up;
            if measured {
                let intended = self.clock.epoch + Duration::from_nanos(sent);
                self.seen.latency.record(now.saturating_duration_since(intended));
            }
            self.seen.counts.record(value.len(), measured);
            self.seen.last = now;
        }
        Ok(true)
    }
}

/// What a consumer asks for at once.
const FETCH_BYTES: u32 = 1_048_576;
/// How long consumers get to find their positions.
const SETTLING: Duration = Duration::from_millis(500);
