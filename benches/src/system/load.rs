//! The load programs: their arguments, and what they print.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::java;
use super::launch::Programs;
use crate::blaster::Outcome;
use crate::process::{self, Ended};

/// What a load program saw.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Seen {
    #[serde(flatten)]
    pub(super) outcome: Outcome,
    /// What the client itself has used of the processor; 0 where it does not say.
    #[serde(default)]
    pub(super) client_cpu_s: f64,
    /// Deliveries that failed.
    #[serde(default)]
    pub(super) errors: u64,
    /// Offsets that did not follow the one before.
    #[serde(default)]
    pub(super) gaps: u64,
    /// Where each partition ended; thousands of them, so they are not kept.
    #[serde(default, skip_serializing)]
    pub(super) next_offsets: BTreeMap<i32, i64>,
}

impl Seen {
    /// Where the partitions end together, if the client knows.
    pub(super) fn end(&self) -> Option<u64> {
        let ends = self.next_offsets.values().map(|offset| u64::try_from(*offset).unwrap_or_default());
        (!self.next_offsets.is_empty()).then(|| ends.sum())
    }
}

impl From<Outcome> for Seen {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, client_cpu_s: 0.0, errors: 0, gaps: 0, next_offsets: BTreeMap::new() }
    }
}

/// Where a load goes.
#[derive(Debug)]
pub(super) struct Load<'a> {
    pub(super) programs: &'a Programs,
    pub(super) address: SocketAddr,
    pub(super) topic: &'a str,
    pub(super) partitions: i32,
    /// How long to send, with the warm-up.
    pub(super) seconds: f64,
    pub(super) warm_up: f64,
}

impl Load<'_> {
    /// Runs the program with librdkafka; `extra` is what the case adds.
    pub(super) fn librdkafka(&self, mode: &str, extra: &[&str]) -> io::Result<Seen> {
        let mut command = self.librdkafka_command(mode)?;
        let times = ["--seconds", &self.seconds.to_string(), "--warm-up", &self.warm_up.to_string()];
        command.args(times).args(extra);
        parse(process::run(command, self.limit())?)
    }

    /// Consumes the topic from its beginning until so many records have come or the time is over.
    pub(super) fn consume(&self, records: u64, extra: &[&str]) -> io::Result<Seen> {
        let mut command = self.librdkafka_command("consume")?;
        command.args(["--from-offsets", "beginning", "--until", &records.to_string()]);
        command.args(["--seconds", &self.seconds.to_string()]).args(extra);
        parse(process::run(command, self.limit())?)
    }

    fn librdkafka_command(&self, mode: &str) -> io::Result<Command> {
        let load = self.programs.load.as_ref().ok_or_else(|| io::Error::other("`--load` was not given"))?;
        let mut command = Command::new(load);
        command.args([mode, "--broker", &self.address.to_string(), "--topic", self.topic]);
        command.args(["--partitions", &self.partitions.to_string()]);
        Ok(command)
    }

    /// Runs the blaster. It creates a topic that does not exist.
    pub(super) fn raw(&self, mode: &str, extra: &[&str]) -> io::Result<Seen> {
        let mut command = Command::new(self.programs.dir.join("blaster"));
        command.args([mode, "--broker", &self.address.to_string(), "--topic", self.topic]);
        command.args(["--seconds", &self.seconds.to_string()]).args(extra);
        if mode != "drain" {
            command.args(["--warm-up", &self.warm_up.to_string()]);
        }
        if mode == "produce" {
            command.args(["--partitions", &self.partitions.to_string()]);
        }
        parse(process::run(command, self.limit())?)
    }

    /// Runs Kafka's own producer tool.
    pub(super) fn java_produce(&self, records: u64, batch_bytes: u32) -> io::Result<Seen> {
        let mut command = self.programs.java(&["-Xmx512m"])?;
        command.args(["org.apache.kafka.tools.ProducerPerformance", "--topic", self.topic]);
        command.args(["--num-records", &records.to_string(), "--record-size", "1024", "--throughput", "-1"]);
        command.args(["--warmup-records", &(records / 5).to_string()]);
        command.args(["--bootstrap-server", &self.address.to_string(), "--command-property", "acks=all"]);
        command.arg(format!("batch.size={batch_bytes}"));
        command.args(["linger.ms=5", "buffer.memory=67108864", "max.request.size=2000000"]);
        let said = process::run(command, self.limit())?.success()?;
        java::producer(&String::from_utf8_lossy(&said), RECORD_BYTES).map(Seen::from)
    }

    /// Runs Kafka's own consumer tool, which is a member of a group.
    pub(super) fn java_consume(&self, records: u64) -> io::Result<Seen> {
        let mut command = self.programs.java(&["-Xmx512m"])?;
        command.args(["org.apache.kafka.tools.ConsumerPerformance", "--topic", self.topic]);
        command.args(["--num-records", &records.to_string(), "--timeout", "20000"]);
        command.args(["--bootstrap-server", &self.address.to_string()]);
        let said = process::run(command, self.limit())?.success()?;
        java::consumer(&String::from_utf8_lossy(&said), RECORD_BYTES).map(Seen::from)
    }

    /// A load that takes so much longer than it should has been left waiting.
    fn limit(&self) -> Duration {
        Duration::try_from_secs_f64(self.seconds * 2.0).unwrap_or_default() + GRACE
    }
}

/// What a program has seen counts even where it says that something was wrong: the numbers say so, too.
fn parse(ended: Ended) -> io::Result<Seen> {
    match serde_json::from_slice(&ended.out) {
        Ok(seen) => Ok(seen),
        Err(_) => Ok(serde_json::from_slice(&ended.success()?)?),
    }
}

/// Of a record's value in most cases.
pub(super) const RECORD_BYTES: u64 = 1024;

/// For what a side still owes when the sending ends.
const GRACE: Duration = Duration::from_mins(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_blaster_prints_has_no_fields_of_librdkafka() {
        let line = r#"{"mode":"produce","seconds":1.0,"requests":1,"records":2,"bytes":3,"bytes_total":4,"records_total":5,
            "gb_per_s":0.5,"records_per_s":2.0,"latency_us":{"count":1,"p50":1.0,"p99":2.0,"p999":3.0,"max":4.0}}"#;
        let seen: Seen = serde_json::from_str(line).unwrap();
        assert_eq!((seen.outcome.records_total, seen.errors, seen.end()), (5, 0, None));
        let more = line.replace("\"mode\"", r#""errors":7,"next_offsets":{"0":5,"3":6},"mode""#);
        let seen: Seen = serde_json::from_str(&more).unwrap();
        assert_eq!((seen.errors, seen.end()), (7, Some(11)));
    }
}
