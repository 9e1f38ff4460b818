//! Producing: as fast as records are acknowledged, or at a fixed rate.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};

use crate::arguments::{Produce, Sending, Span, Target};
use crate::outcome::Outcome;
use crate::payload::{Mark, Payload};
use crate::reports::{Reports, Seen};
use crate::schedule::Schedule;
use crate::{client, clock};

pub(crate) fn run(arguments: &Produce) -> io::Result<Outcome> {
    let Produce { target, span, sending, .. } = arguments;
    let clients = u32::from(arguments.producers);
    let epoch = clock::now();
    let senders = (0..clients)
        .map(|at| Sender::new(target, sending, arguments.linger_ms, epoch, (at, clients)))
        .collect::<io::Result<Vec<Sender>>>()?;
    let start = clock::now();
    let sent = thread::scope(|scope| {
        let running: Vec<_> = (0..)
            .zip(senders)
            .map(|(at, sender)| {
                let rate = arguments.rate / clients + u32::from(at < arguments.rate % clients);
                scope.spawn(move || {
                    if arguments.rate == 0 {
                        sender.flood(*span, start)
                    } else {
                        sender.keep(rate, *span, start, None)
                    }
                })
            })
            .collect();
        running.into_iter().map(join).collect::<io::Result<Vec<Sent>>>()
    })?;
    let mut all = Sent { handed: 0, seen: Seen::new(start, target.partitions) };
    for one in &sent {
        all.handed += one.handed;
        all.seen.merge(&one.seen);
    }
    let lost = all.lost();
    Ok(Outcome {
        latency_us: all.seen.latency.percentiles(),
        errors: lost,
        next_offsets: all.seen.next_offsets(),
        faults: all.fault().into_iter().collect(),
        ..Outcome::new("produce", all.seen.measured(), all.seen.counts)
    })
}

/// What became of what a sender was handed.
pub(crate) struct Sent {
    handed: u64,
    pub(crate) seen: Seen,
}

impl Sent {
    /// Records without an acknowledgement.
    pub(crate) fn lost(&self) -> u64 {
        self.handed.saturating_sub(self.seen.counts.records_total)
    }

    /// What to tell about them.
    pub(crate) fn fault(&self) -> Option<String> {
        let cause = self.seen.fault.as_deref().unwrap_or("no cause was told");
        (self.lost() > 0).then(|| format!("{} of {} records were lost: {cause}", self.lost(), self.handed))
    }
}

/// One producer and where its records go.
pub(crate) struct Sender {
    producer: Arc<BaseProducer<Reports>>,
    topic: String,
    payload: Payload,
    partitions: u16,
    partition: u16,
    /// Records that go to a partition before the next one's turn, when nothing limits the rate.
    stay: u32,
    handed: u64,
}

impl Sender {
    /// The producer `at` of so many, which begins at its share of the partitions.
    pub(crate) fn new(
        target: &Target,
        sending: &Sending,
        linger_ms: f64,
        epoch: Instant,
        (at, clients): (u32, u32),
    ) -> io::Result<Self> {
        let first = u32::from(target.partitions) * at / clients;
        Ok(Self {
            producer: Arc::new(client::producer(target, sending, linger_ms, epoch, clients)?),
            topic: target.topic.clone(),
            payload: Payload::new(usize::try_from(sending.record_bytes).unwrap_or(usize::MAX)),
            partitions: target.partitions,
            partition: u16::try_from(first).unwrap_or_default(),
            stay: (sending.batch_bytes / sending.record_bytes).max(1),
            handed: 0,
        })
    }

    /// Sends as fast as records are acknowledged.
    fn flood(mut self, span: Span, start: Instant) -> io::Result<Sent> {
        self.producer.context().begin(start, span.warm_up);
        self.with_reports(|sender| sender.fill(start + span.seconds))?;
        Ok(self.finish())
    }

    /// Sends on schedule. With a `run`, values carry a mark of it.
    pub(crate) fn keep(
        mut self,
        rate: u32,
        span: Span,
        start: Instant,
        run: Option<u64>,
    ) -> io::Result<Sent> {
        self.producer.context().begin(start, span.warm_up);
        // There may be more producers than records a second.
        if rate > 0 {
            self.with_reports(|sender| sender.follow(Schedule::new(rate), span, start, run))?;
        }
        Ok(self.finish())
    }

    /// Sends while another thread receives the reports.
    fn with_reports(&mut self, send: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        let sending = AtomicBool::new(true);
        let producer = Arc::clone(&self.producer);
        thread::scope(|scope| {
            scope.spawn(|| {
                while sending.load(Ordering::Relaxed) {
                    producer.poll(POLL);
                }
            });
            let outcome = send(self);
            sending.store(false, Ordering::Relaxed);
            outcome
        })
    }

    /// Keeps the queue of records under way full. A batch goes to one partition and the next to the next, as clients do with
    /// records that have no key.
    fn fill(&mut self, end: Instant) -> io::Result<()> {
        let (mut now, mut stayed) = (clock::now(), 0);
        while now < end {
            for _ in 0..RECORDS_A_READING {
                if !self.hand_over(now, &[])? {
                    clock::sleep(QUEUE_FULL_PAUSE);
                    break;
                }
                stayed += 1;
                if stayed >= self.stay {
                    stayed = 0;
                    self.next_partition();
                }
            }
            now = clock::now();
        }
        Ok(())
    }

    /// Hands over what is due at each tick, one record after the other to the next partition.
    fn follow(&mut self, schedule: Schedule, span: Span, start: Instant, run: Option<u64>) -> io::Result<()> {
        for tick in 0.. {
            let intended = start + schedule.at(tick);
            if intended >= start + span.seconds {
                break;
            }
            let mark =
                run.map(|run| Mark { sent: self.producer.context().since_epoch(intended), run }.to_bytes());
            let head = mark.as_ref().map_or(&[][..], |mark| &mark[..]);
            clock::sleep_until(intended);
            for _ in 0..schedule.due(tick) {
                // A full queue makes records late, and their intended time says by how much.
                while !self.hand_over(intended, head)? {
                    clock::sleep(QUEUE_FULL_PAUSE);
                }
                self.next_partition();
            }
        }
        Ok(())
    }

    /// Gives the library a record whose value begins with `head`; false if its queue is full.
    fn hand_over(&mut self, sent: Instant, head: &[u8]) -> io::Result<bool> {
        let stamp = usize::try_from(self.producer.context().since_epoch(sent)).unwrap_or(usize::MAX);
        let record: BaseRecord<'_, (), [u8], usize> = BaseRecord::with_opaque_to(&self.topic, stamp)
            .payload(self.payload.next(head))
            .partition(i32::from(self.partition));
        match self.producer.send(record) {
            Ok(()) => {
                self.handed += 1;
                Ok(true)
            }
            Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), _)) => Ok(false),
            Err((error, _)) => Err(io::Error::other(error)),
        }
    }

    fn next_partition(&mut self) {
        self.partition = (self.partition + 1) % self.partitions;
    }

    /// Waits until all records are acknowledged or lost.
    fn finish(self) -> Sent {
        // What is left when the time is over is counted as lost.
        let _ = self.producer.flush(client::LOST_AFTER + POLL);
        Sent { handed: self.handed, seen: self.producer.context().seen().clone() }
    }
}

pub(crate) fn join<T>(thread: thread::ScopedJoinHandle<'_, io::Result<T>>) -> io::Result<T> {
    thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))
}

/// How many records are handed over between two readings of the clock, which cost as much as a record does.
const RECORDS_A_READING: u32 = 16;
/// How long a producer waits for room in its queue: that holds tens of milliseconds of work at any rate seen.
const QUEUE_FULL_PAUSE: Duration = Duration::from_millis(1);
/// How long a thread waits for reports at once, and so how late it sees that it is needed no more. The binding looks again and
/// again in the last millisecond of each wait, so this is long.
const POLL: Duration = Duration::from_millis(250);
