//! The power goes at any call; what was committed is there afterwards, once, in order.

use std::sync::Arc;

use bytes::Bytes;
use kolumn_journal::sim::{CallKind, SimDisk};
use kolumn_journal::{Durability, Journal, Mutant, OpenErrorKind, Options, Stepper};

use crate::support::{Chance, Recorder, Stepped, append, open, replayed, seeds, small};

/// What must, and what may, be found after the next crash.
#[derive(Debug, Default)]
struct Oracle {
    /// Entries that were committed, or found by an opening that went on to write.
    certain: Vec<Bytes>,
    /// Entries that were appended after them.
    maybe: Vec<Bytes>,
    /// With `Durability::Os`: only so many of the certain ones are covered by a checkpoint.
    covered: usize,
    epoch: Option<u32>,
    /// Whether a call was made to fail in this life.
    faulty: bool,
}

/// What a checkpoint stands for: how many entries, and a checksum of them.
fn fold(entries: &[Bytes]) -> Vec<u8> {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for entry in entries {
        for byte in entry.iter().copied().chain(u64::try_from(entry.len()).unwrap().to_le_bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    let mut payload = u64::try_from(entries.len()).unwrap().to_le_bytes().to_vec();
    payload.extend(hash.to_le_bytes());
    // Checkpoints have any length.
    payload.resize(16 + entries.len() % 9000, 0x77);
    payload
}

struct Run {
    sim: SimDisk,
    options: Options,
    chance: Chance,
    oracle: Oracle,
}

/// Calls that may be made to fail.
const FAULTS: [CallKind; 8] = [
    CallKind::Create,
    CallKind::Rename,
    CallKind::Remove,
    CallKind::SyncDir,
    CallKind::Preallocate,
    CallKind::Write,
    CallKind::Sync,
    CallKind::Read,
];

type Verdict = Result<(), String>;

impl Run {
    fn new(seed: u64, mutant: Mutant, durability: Durability) -> Self {
        let sim = SimDisk::new(seed);
        let mut options = small();
        options.seed = seed;
        options.mutant = mutant;
        options.durability = durability;
        let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        if seed.is_multiple_of(3) {
            sim.set_capacity(options.file_len * 4 + chance.below(1 << 18));
        }
        Self { sim, options, chance, oracle: Oracle::default() }
    }

    fn whole(mut self) -> Verdict {
        for _ in 0..6 {
            if self.chance.below(8) > 0 {
                let calls = 1 + self.chance.below(400);
                self.sim.cut_power_after(calls);
            }
            self.oracle.faulty = self.chance.below(8) == 0;
            if self.oracle.faulty {
                let kind = FAULTS[usize::try_from(self.chance.below(FAULTS.len() as u64)).unwrap()];
                self.sim.fail(kind, 1 + self.chance.below(40), std::io::ErrorKind::Other);
            }
            self.live()?;
            self.sim.crash();
        }
        self.oracle.faulty = false;
        self.live()
    }

    /// One life: open, compare, work until the power goes or enough was done.
    fn live(&mut self) -> Verdict {
        let refused = |run: &Self, error: kolumn_journal::OpenError| {
            if run.sim.is_off() || (run.oracle.faulty && error.kind() == OpenErrorKind::Io) {
                return Ok(());
            }
            if error.kind() == OpenErrorKind::Full && run.sim.used() > run.options.file_len * 3 {
                run.sim.set_capacity(u64::MAX);
                return Ok(());
            }
            Err(format!("refused: {error:?}"))
        };
        let opening = match open(&self.sim, &self.options) {
            Ok(opening) => opening,
            Err(error) => return refused(self, error),
        };
        let (count, found) = match self.compare(&opening) {
            Ok(found) => found,
            Err(why) => return if self.sim.is_off() || self.oracle.faulty { Ok(()) } else { Err(why) },
        };
        let epoch = opening.owner_epoch();
        let recorder = Arc::new(Recorder::default());
        let (journal, mut stepper) = match opening.start_stepped(recorder.clone()) {
            Ok(started) => started,
            Err(error) => return refused(self, error),
        };
        if self.oracle.epoch.is_some_and(|last| last >= epoch) {
            return Err(format!("owner epoch {epoch} was used before"));
        }
        self.oracle.epoch = Some(epoch);
        self.oracle.certain.truncate(count);
        self.oracle.certain.extend(found);
        self.oracle.maybe.clear();
        let result = self.work(&journal, &mut stepper, &recorder);
        if result.is_ok() && !self.sim.is_off() && !self.oracle.faulty && !recorder.failures.lock().is_empty()
        {
            return Err(format!("failed with the power on: {:?}", recorder.failures.lock()));
        }
        result
    }

    /// Compares what an opening finds with the oracle; returns how many entries there are, and those beyond the
    /// certain.
    fn compare(&self, opening: &kolumn_journal::Opening) -> Result<(usize, Vec<Bytes>), String> {
        let oracle = &self.oracle;
        let checkpoint = opening.checkpoint();
        let covered = match &checkpoint {
            None => 0,
            Some((_, payload)) => {
                let count = usize::try_from(u64::from_le_bytes(payload[..8].try_into().unwrap())).unwrap();
                let before =
                    oracle.certain.get(..count).ok_or("the checkpoint stands for more than was committed")?;
                if fold(before) != payload[..] {
                    return Err("the checkpoint does not stand for what was committed".to_owned());
                }
                count
            }
        };
        let mut next = covered;
        let mut beyond = Vec::new();
        opening
            .replay(|entry| {
                let expected =
                    oracle.certain.get(next).or_else(|| oracle.maybe.get(next - oracle.certain.len()));
                if entry.sequence != next as u64 || expected != Some(&entry.bytes) {
                    return Err(format!("entry {next} is another: sequence {}", entry.sequence));
                }
                if next >= oracle.certain.len() {
                    beyond.push(entry.bytes);
                }
                next += 1;
                Ok(())
            })
            .map_err(|error| format!("{error:?}"))?;
        let must =
            if self.options.durability == Durability::Os { oracle.covered } else { oracle.certain.len() };
        if next < must {
            return Err(format!("{next} entries found of {must}"));
        }
        Ok((next, beyond))
    }

    fn work(&mut self, journal: &Journal, stepper: &mut Stepper, recorder: &Recorder) -> Verdict {
        let before = self.oracle.certain.len();
        for _ in 0..self.chance.below(300) {
            match self.chance.below(20) {
                0..=9 => {
                    let len = if self.chance.below(4) == 0 {
                        self.chance.below(8192)
                    } else {
                        self.chance.below(300)
                    };
                    let fill = self.chance.next().to_le_bytes();
                    let bytes: Vec<u8> =
                        fill.iter().copied().cycle().take(usize::try_from(len).unwrap()).collect();
                    if append(journal, &bytes).is_ok() {
                        self.oracle.maybe.push(bytes.into());
                    }
                }
                10..=15 => drop(stepper.step()),
                16 => stepper.idle(),
                17 => self.checkpoint(journal)?,
                18 => {
                    let files = journal.files();
                    let chosen = usize::try_from(self.chance.below(files.len() as u64)).unwrap();
                    drop(journal.free(files[chosen].base));
                }
                _ => Self::read_back(journal, recorder)?,
            }
            let committed: Vec<Bytes> =
                recorder.entries.lock().iter().map(|(_, _, bytes)| bytes.clone()).collect();
            let new = before + committed.len() - self.oracle.certain.len();
            if new > self.oracle.maybe.len() {
                return Err("more was committed than appended".to_owned());
            }
            self.oracle.certain.extend(self.oracle.maybe.drain(..new));
            if self.oracle.certain[before..] != committed[..] {
                return Err("what was committed is not what was appended".to_owned());
            }
            if self.sim.is_off() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn checkpoint(&mut self, journal: &Journal) -> Verdict {
        let payload = fold(&self.oracle.certain);
        match journal.write_checkpoint(journal.durable_position(), &payload) {
            Ok(()) => self.oracle.covered = self.oracle.certain.len(),
            Err(_) if self.sim.is_off() || self.oracle.faulty => {}
            Err(error) if error.kind() == kolumn_journal::CheckpointErrorKind::Full => {}
            Err(error) if error.kind() == kolumn_journal::CheckpointErrorKind::ReadOnly => {}
            Err(error) => return Err(format!("no checkpoint: {error:?}")),
        }
        Ok(())
    }

    fn read_back(journal: &Journal, recorder: &Recorder) -> Verdict {
        let last = recorder.entries.lock().last().cloned();
        if let Some((sequence, position, bytes)) = last {
            match journal.read(position, bytes.len()) {
                Ok(read) if read != bytes => return Err(format!("entry {sequence} is read as another")),
                // The power may be off, or the file freed.
                Ok(_) | Err(_) => {}
            }
        }
        Ok(())
    }
}

#[track_caller]
fn check(share_percent: u64, durability: Durability) {
    for seed in 0..seeds(share_percent) {
        if let Err(why) = Run::new(seed, Mutant::None, durability).whole() {
            panic!("seed {seed}: {why}");
        }
    }
}

/// Whether one of many seeds shows the fault.
#[track_caller]
fn check_caught(mutant: Mutant, durability: Durability) {
    let caught = (0..400).any(|seed| Run::new(seed, mutant, durability).whole().is_err());
    assert!(caught, "no seed shows {mutant:?}");
}

#[test]
fn what_was_committed_survives_any_loss_of_power() {
    check(75, Durability::Sync);
}

#[test]
fn without_syncs_what_is_left_is_a_prefix_that_covers_the_checkpoint() {
    check(25, Durability::Os);
}

#[test]
fn what_an_opening_replayed_is_durable_once_it_has_started() {
    for seed in 0..20 {
        let sim = SimDisk::new(seed);
        let mut options = small();
        options.durability = Durability::Os;
        let mut log = Stepped::start(&sim, &options);
        // The first file is filled to its end, so that the next opening begins in the second.
        for _ in 0..14 {
            log.append(&[1; 4020]);
            log.step_all();
        }
        assert_eq!(log.journal.durable_position().value(), options.file_len);
        // The process ends, the machine goes on.
        drop(log);
        options.durability = Durability::Sync;
        drop(Stepped::start(&sim, &options));
        sim.crash();
        let found = replayed(&open(&sim, &options).unwrap());
        assert_eq!(found.len(), 14, "seed {seed}");
    }
}

#[test]
fn an_answer_before_the_sync_is_caught() {
    check_caught(Mutant::AnswersBeforeSync, Durability::Sync);
}

#[test]
fn a_recycled_group_taken_for_valid_is_caught() {
    check_caught(Mutant::TrustsRecycledGroups, Durability::Sync);
}

#[test]
fn a_checkpoint_ahead_of_its_log_is_caught() {
    check_caught(Mutant::CheckpointsAhead, Durability::Os);
}

#[test]
fn an_append_admitted_without_room_is_caught() {
    check_caught(Mutant::AdmitsUnreserved, Durability::Sync);
}

#[test]
fn one_seed_replays_the_whole_run() {
    let history = |seed| {
        let run = Run::new(seed, Mutant::None, Durability::Sync);
        let sim = run.sim.clone();
        run.whole().unwrap();
        (sim.calls(), sim.stats())
    };
    assert_eq!(history(5), history(5));
    assert_ne!(history(5), history(6));
}
