//! One side while a case is done to it: a fresh server, its topic, and what it uses.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::admin::{self, Resource};
use super::case::Case;
use super::disk::{self, Disk};
use super::launch::{self, Place, Programs};
use super::load::{Load, Seen};
use super::side::Side;
use super::verify::{self, Verified};
use crate::client::Connection;
use crate::clock;
use crate::process::{Server, Usage, free_address};

/// What all trials of a run have in common.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) programs: Programs,
    pub(super) dir: PathBuf,
    /// How long each load runs, with its warm-up.
    pub(super) seconds: f64,
    /// How long a consumer reads at most after each case.
    pub(super) verify_seconds: f64,
    pub(super) append_mib: u64,
}

impl Plan {
    /// What is sent before it counts: long enough for a virtual machine to have compiled what it runs.
    pub(super) fn warm_up(&self) -> f64 {
        self.seconds / 3.0
    }
}

/// What a side used during a load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Used {
    pub(super) wall_s: f64,
    pub(super) cpu_s: f64,
    pub(super) resident_max: u64,
    pub(super) written: u64,
    /// Flushes of the whole disk; `None` where they are not counted.
    pub(super) syncs: Option<u64>,
}

/// A load and what it cost.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Row {
    /// Empty if it is all of the case.
    pub(super) name: String,
    pub(super) seen: Seen,
    pub(super) used: Used,
}

/// A number that no load gives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Number {
    pub(super) name: String,
    pub(super) value: f64,
    pub(super) unit: String,
}

/// What a case gave on a side.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Measured {
    pub(super) rows: Vec<Row>,
    pub(super) numbers: Vec<Number>,
    pub(super) verified: Vec<Verified>,
    /// What the side would not do, and what was done instead.
    pub(super) notes: Vec<String>,
    pub(super) settings: Vec<(String, String)>,
    pub(super) stopped_well: bool,
}

impl Measured {
    pub(super) fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.name == name)
    }

    pub(super) fn number(&mut self, name: &str, value: f64, unit: &str) {
        self.numbers.push(Number { name: name.into(), value, unit: unit.into() });
    }

    /// What is wrong with what was measured.
    pub(super) fn faults(&self) -> Vec<String> {
        let errors = self.rows.iter().filter(|row| row.seen.errors > 0);
        let errors = errors.map(|row| format!("{} deliveries failed {}", row.seen.errors, row.name));
        let mut faults: Vec<_> = errors.map(|fault| fault.trim_end().to_owned()).collect();
        faults.extend(self.verified.iter().filter_map(Verified::fault));
        faults
    }
}

/// A server that runs, and what was measured on it so far.
#[derive(Debug)]
pub(super) struct Stage<'a> {
    pub(super) plan: &'a Plan,
    pub(super) case: Case,
    pub(super) side: Side,
    place: Place,
    server: Option<Server>,
    disk: Option<Disk>,
    pub(super) measured: Measured,
}

impl<'a> Stage<'a> {
    /// Starts a side on an empty directory, if there is room for the case.
    pub(super) fn open(plan: &'a Plan, case: Case, side: Side) -> io::Result<Self> {
        let data = plan.dir.join("data");
        remove_dir(&data)?;
        make_sure_of_room(disk::free(&plan.dir)?, case.room(side, plan.seconds))?;
        let place = Place {
            address: free_address()?,
            data,
            dir: plan.dir.clone(),
            partitions: case.partitions(),
            log_len_max: case.log_len_max(),
        };
        let mut measured = Measured::default();
        if let Some(version) = plan.programs.version(side) {
            measured.settings.push(("version".into(), version));
        }
        measured.settings.extend(launch::described(side, &plan.programs, &place));
        let disk = Disk::below(&plan.dir);
        let mut stage = Self { plan, case, side, place, server: None, disk, measured };
        let _ready = stage.start()?;
        Ok(stage)
    }

    /// Starts the server on the data that are there; how long until it answers.
    pub(super) fn start(&mut self) -> io::Result<Duration> {
        self.place.address = free_address()?;
        let command = launch::command(self.side, &self.plan.programs, &self.place)?;
        let log = self.plan.dir.join(format!("{}.log", self.side.name()));
        let begun = clock::now();
        self.server = Some(Server::start(command, self.place.address, &log)?);
        admin::wait_until_ready(self.place.address)?;
        Ok(begun.elapsed())
    }

    /// Stops the server and leaves its data.
    pub(super) fn stop(&mut self) -> io::Result<()> {
        if let Some(server) = self.server.take() {
            self.measured.stopped_well = server.stop()?;
        }
        Ok(())
    }

    /// Stops the server, removes its data and gives what was measured.
    pub(super) fn close(mut self) -> io::Result<Measured> {
        self.stop()?;
        remove_dir(&self.place.data)?;
        Ok(self.measured)
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.place.address
    }

    /// Creates a topic with the retention of the case, and waits for its leaders.
    pub(super) fn create_topic(&mut self, topic: &str, partitions: i32) -> io::Result<()> {
        let retention = self.case.retention().to_string();
        let mut wanted = vec![("retention.bytes", retention.as_str())];
        if self.side.is_kafka() {
            wanted.extend(KAFKA_TOPIC);
        }
        if self.side == Side::KafkaFlush {
            wanted.push(("flush.messages", "1"));
        }
        let mut connection = Connection::open(self.place.address)?;
        if let Err(error) = connection.create_topic(topic, partitions, &wanted) {
            let names: Vec<_> = wanted.iter().map(|(name, _)| *name).collect();
            self.note(format!("{}: {error}; the topic has been created without", names.join(", ")));
            Connection::open(self.place.address)?.create_topic(topic, partitions, &[])?;
        }
        admin::wait_for_topic(self.place.address, topic, partitions)?;
        self.tell_settings(topic);
        Ok(())
    }

    /// What the side says of its own settings; who does not answer such questions has said nothing.
    fn tell_settings(&mut self, topic: &str) {
        if self.measured.settings.iter().any(|(name, _)| name.starts_with(OF_TOPIC)) {
            return;
        }
        for resource in [Resource::Broker, Resource::Topic(topic)] {
            let told = admin::settings(self.place.address, resource).unwrap_or_default();
            for (name, value) in told.into_iter().filter(|(name, _)| TOLD.contains(&name.as_str())) {
                let name = match resource {
                    Resource::Broker => name,
                    Resource::Topic(_) => format!("{OF_TOPIC}{name}"),
                };
                if !self.measured.settings.iter().any(|(other, _)| *other == name) {
                    self.measured.settings.push((name, value));
                }
            }
        }
    }

    pub(super) fn note(&mut self, note: String) {
        if !self.measured.notes.contains(&note) {
            self.measured.notes.push(note);
        }
    }

    /// A load of this case's length.
    pub(super) fn load<'l>(&self, topic: &'l str, partitions: i32) -> Load<'l>
    where
        'a: 'l,
    {
        Load {
            programs: &self.plan.programs,
            address: self.place.address,
            topic,
            partitions,
            seconds: self.plan.seconds,
            warm_up: self.plan.warm_up(),
        }
    }

    /// Runs a load and keeps what it saw beside what the side used for it.
    pub(super) fn measure(&mut self, name: &str, load: impl FnOnce() -> io::Result<Seen>) -> io::Result<u64> {
        let (seen, used) = self.used(load)?;
        let records = seen.outcome.records_total;
        self.measured.rows.push(Row { name: name.into(), seen, used });
        Ok(records)
    }

    /// What a side uses while something is done.
    pub(super) fn used<T>(&self, act: impl FnOnce() -> io::Result<T>) -> io::Result<(T, Used)> {
        let flushes = || self.disk.as_ref().and_then(Disk::flushes);
        let (before, flushes_before, begun) = (self.usage()?, flushes(), clock::now());
        let done = act()?;
        let (wall, after, flushes_after) = (begun.elapsed(), self.usage()?, flushes());
        let used = Used {
            wall_s: wall.as_secs_f64(),
            cpu_s: after.cpu.saturating_sub(before.cpu).as_secs_f64(),
            resident_max: after.resident_max,
            written: after.written.saturating_sub(before.written),
            syncs: flushes_after.zip(flushes_before).map(|(after, before)| after.saturating_sub(before)),
        };
        Ok((done, used))
    }

    pub(super) fn usage(&self) -> io::Result<Usage> {
        self.server.as_ref().ok_or_else(|| io::Error::other("it does not run"))?.usage()
    }

    /// Reads back what a side with a log has acknowledged.
    pub(super) fn verify(&mut self, topic: &str, acknowledged: Option<u64>) -> io::Result<()> {
        if self.side == Side::Null {
            return Ok(());
        }
        let mut load = self.load(topic, self.case.partitions());
        load.seconds = self.plan.verify_seconds;
        let verified = verify::verify(&load, acknowledged)?;
        self.measured.verified.push(verified);
        Ok(())
    }
}

/// An error that names both figures.
fn make_sure_of_room(free: u64, wanted: u64) -> io::Result<()> {
    if free >= wanted {
        return Ok(());
    }
    let message = format!("it may write {wanted} bytes and {free} bytes are free");
    Err(io::Error::new(io::ErrorKind::StorageFull, message))
}

pub(super) fn remove_dir(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Kafka deletes whole segments, and a minute later: smaller ones at once keep to the retention within a case.
const KAFKA_TOPIC: [(&str, &str); 2] = [("segment.bytes", "268435456"), ("file.delete.delay.ms", "1000")];

/// In front of the names of a topic's settings.
const OF_TOPIC: &str = "topic: ";

/// The settings that decide what is compared.
const TOLD: [&str; 14] = [
    "retention.bytes",
    "retention.ms",
    "flush.messages",
    "flush.ms",
    "segment.bytes",
    "file.delete.delay.ms",
    "compression.type",
    "max.message.bytes",
    "min.insync.replicas",
    "num.io.threads",
    "num.network.threads",
    "log.flush.interval.messages",
    "log.flush.interval.ms",
    "log.retention.check.interval.ms",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_is_too_full_is_told_with_both_figures() {
        assert!(make_sure_of_room(10, 10).is_ok());
        let error = make_sure_of_room(123, 456).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(error.to_string().contains("456 bytes") && error.to_string().contains("123 bytes"));
    }
}
