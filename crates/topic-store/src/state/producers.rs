//! What is remembered of an idempotent producer in one partition: its epoch and its last five batches.

use std::collections::VecDeque;

use crate::entry::{ProducerRun, sequence_after};
use crate::ids::Timestamp;

/// How many batches a producer may have in flight, and so how many are remembered.
pub(crate) const WINDOW: usize = 5;

/// INVARIANT: `runs` has 1 to [`WINDOW`] elements, oldest first, all of `epoch`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Producer {
    pub(crate) epoch: i16,
    pub(crate) runs: VecDeque<Run>,
}

/// One remembered batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Run {
    pub(crate) first: i32,
    pub(crate) last: i32,
    pub(crate) base_offset: i64,
    pub(crate) appended: Timestamp,
}

/// What a batch is to the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// The next one: append it.
    Next,
    /// Was appended before: answer with what it got then.
    Duplicate(Run),
    /// Something is missing before it, or it is older than the window.
    OutOfOrder { expected: i32 },
    /// A newer epoch has taken over.
    Fenced { current: i16 },
}

/// Judges a batch. A producer without a window (new, or expired) may begin anywhere.
pub(crate) fn judge(producer: Option<&Producer>, run: &ProducerRun) -> Verdict {
    let Some(producer) = producer else { return Verdict::Next };
    if run.epoch < producer.epoch {
        return Verdict::Fenced { current: producer.epoch };
    }
    if run.epoch > producer.epoch {
        return if run.first == 0 { Verdict::Next } else { Verdict::OutOfOrder { expected: 0 } };
    }
    let same = |known: &&Run| known.first == run.first && known.last == run.last;
    if let Some(known) = producer.runs.iter().find(same) {
        return Verdict::Duplicate(*known);
    }
    let expected = producer.runs.back().map_or(0, |last| sequence_after(last.last, 1));
    if run.first == expected { Verdict::Next } else { Verdict::OutOfOrder { expected } }
}

impl Producer {
    pub(crate) const fn new(epoch: i16) -> Self {
        Self { epoch, runs: VecDeque::new() }
    }

    /// Remembers a batch that was appended.
    pub(crate) fn push(&mut self, run: &ProducerRun, base_offset: i64, appended: Timestamp) {
        if run.epoch != self.epoch {
            self.epoch = run.epoch;
            self.runs.clear();
        }
        if self.runs.len() == WINDOW {
            self.runs.pop_front();
        }
        self.runs.push_back(Run { first: run.first, last: run.last, base_offset, appended });
    }

    /// When it was last heard of.
    pub(crate) fn last_appended(&self) -> Timestamp {
        self.runs.back().map_or(Timestamp::new(i64::MIN), |run| run.appended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ProducerId;

    fn run(epoch: i16, first: i32, last: i32) -> ProducerRun {
        ProducerRun { id: ProducerId::new(1), epoch, first, last }
    }

    fn producer(runs: &[ProducerRun]) -> Producer {
        let mut producer = Producer::new(0);
        for (run, offset) in runs.iter().zip(0..) {
            producer.push(run, offset, Timestamp::new(offset));
        }
        producer
    }

    #[track_caller]
    fn check(producer: &Producer, epoch: i16, first: i32, last: i32, expect: Verdict) {
        assert_eq!(judge(Some(producer), &run(epoch, first, last)), expect);
    }

    #[test]
    fn the_window_answers_the_last_five_batches_and_refuses_gaps() {
        let runs: Vec<_> = (0..7).map(|n| run(0, n, n)).collect();
        let producer = producer(&runs);
        check(&producer, 0, 7, 9, Verdict::Next);
        check(&producer, 0, 8, 9, Verdict::OutOfOrder { expected: 7 });
        for n in 2..7 {
            let appended = Timestamp::new(n.into());
            check(
                &producer,
                0,
                n,
                n,
                Verdict::Duplicate(Run { first: n, last: n, base_offset: n.into(), appended }),
            );
        }
        check(&producer, 0, 1, 1, Verdict::OutOfOrder { expected: 7 });
    }

    #[test]
    fn epochs_fence_and_a_new_one_begins_at_zero() {
        let producer = producer(&[run(3, 0, 9)]);
        check(&producer, 2, 10, 10, Verdict::Fenced { current: 3 });
        check(&producer, 4, 10, 10, Verdict::OutOfOrder { expected: 0 });
        check(&producer, 4, 0, 10, Verdict::Next);
    }

    #[test]
    fn after_the_greatest_sequence_zero_is_next() {
        let producer = producer(&[run(0, i32::MAX - 1, i32::MAX)]);
        check(&producer, 0, 0, 4, Verdict::Next);
        check(&producer, 0, 1, 4, Verdict::OutOfOrder { expected: 0 });
    }

    #[test]
    fn an_unknown_producer_may_begin_anywhere() {
        assert_eq!(judge(None, &run(5, 1234, 1240)), Verdict::Next);
    }
}
