//! How each side is started, and with which settings.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::side::Side;
use crate::process::{self, Ended, free_address};

/// The programs that a run needs; what is not given is left out.
#[derive(Debug)]
pub(super) struct Programs {
    /// Where the other programs of this package are.
    pub(super) dir: PathBuf,
    pub(super) broker: PathBuf,
    /// Further arguments of the broker.
    pub(super) broker_args: Vec<String>,
    /// The folder with Kafka's jars.
    pub(super) kafka: Option<PathBuf>,
    pub(super) tansu: Option<PathBuf>,
    /// The load program with librdkafka.
    pub(super) load: Option<PathBuf>,
}

impl Programs {
    /// Why a side cannot be started.
    pub(super) fn missing(&self, side: Side) -> Option<String> {
        let is_file = |path: &Path| {
            if path.is_file() { None } else { Some(format!("there is no `{}`", path.display())) }
        };
        match side {
            Side::Sync | Side::Os => is_file(&self.broker),
            Side::Kafka | Side::KafkaFlush => match &self.kafka {
                Some(dir) if dir.is_dir() => None,
                Some(dir) => Some(format!("there is no `{}`", dir.display())),
                None => Some("`--kafka-classpath` was not given".into()),
            },
            Side::Tansu => match &self.tansu {
                Some(program) => is_file(program),
                None => Some("`--tansu` was not given".into()),
            },
            Side::Floor | Side::FloorOs => is_file(&self.dir.join("floor_broker")),
            Side::Null => is_file(&self.dir.join("null_broker")),
        }
    }

    /// A virtual machine for Java with Kafka's classes.
    pub(super) fn java(&self, options: &[&str]) -> io::Result<Command> {
        let jars =
            self.kafka.as_ref().ok_or_else(|| io::Error::other("`--kafka-classpath` was not given"))?;
        let mut command = Command::new("java");
        command.args(options).arg("-cp").arg(jars.join("*"));
        Ok(command)
    }

    /// Which release a rival is, as far as its files say.
    pub(super) fn version(&self, side: Side) -> Option<String> {
        match side {
            Side::Kafka | Side::KafkaFlush => {
                let names = fs::read_dir(self.kafka.as_ref()?).ok()?.filter_map(Result::ok);
                let mut names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
                names.find_map(|name| {
                    Some(format!("Kafka {}", name.strip_prefix("kafka-clients-")?.strip_suffix(".jar")?))
                })
            }
            Side::Tansu => {
                let mut command = Command::new(self.tansu.as_ref()?);
                command.arg("--version");
                let said = process::run(command, TOOL_MAX).and_then(Ended::success).ok()?;
                Some(String::from_utf8_lossy(&said).trim().to_owned()).filter(|said| !said.is_empty())
            }
            _ => None,
        }
    }
}

/// What a server is started for.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) address: SocketAddr,
    /// Empty, or what the same side left behind.
    pub(super) data: PathBuf,
    /// Where what is no data is kept: settings, what is made once for all.
    pub(super) dir: PathBuf,
    pub(super) partitions: i32,
    /// Bytes that the log of the product may take.
    pub(super) log_len_max: u64,
}

/// The command that starts a side, its files written.
pub(super) fn command(side: Side, programs: &Programs, place: &Place) -> io::Result<Command> {
    let address = place.address.to_string();
    Ok(match side {
        Side::Sync => broker(programs, place, "sync")?,
        Side::Os => broker(programs, place, "os")?,
        Side::Kafka | Side::KafkaFlush => kafka(side, programs, place)?,
        Side::Tansu => tansu(programs, &address)?,
        Side::Floor | Side::FloorOs => {
            let mut command = Command::new(programs.dir.join("floor_broker"));
            command.args(["--listen", &address, "--data-dir"]).arg(&place.data);
            command.args(["--partitions", &place.partitions.to_string()]);
            if side == Side::FloorOs {
                command.arg("--no-sync");
            }
            command
        }
        Side::Null => {
            let mut command = Command::new(programs.dir.join("null_broker"));
            command.args(["--listen", &address, "--partitions", &place.partitions.to_string()]);
            command
        }
    })
}

fn broker(programs: &Programs, place: &Place, durability: &str) -> io::Result<Command> {
    let config = place.dir.join(format!("{durability}.toml"));
    fs::write(&config, broker_settings(durability, place.log_len_max))?;
    let mut command = Command::new(&programs.broker);
    command.arg("--config").arg(&config).arg("--data-dir").arg(&place.data);
    command.args(["--listen", &place.address.to_string(), "--sql", "none"]).args(&programs.broker_args);
    Ok(command)
}

/// The limit of the log is why what retention no longer keeps is removed while a case runs; one case has more partitions than
/// a topic may have by default.
fn broker_settings(durability: &str, log_len_max: u64) -> String {
    format!(
        "[topics]\npartitions_max = 16000\n[storage]\ndurability = \"{durability}\"\nsize_limit = {log_len_max}\n"
    )
}

fn kafka(side: Side, programs: &Programs, place: &Place) -> io::Result<Command> {
    let properties = kafka_properties(side, place.address, free_address()?, &place.data);
    let file = place.dir.join(format!("{}.properties", side.name()));
    fs::write(&file, properties)?;
    if !place.data.exists() {
        copy_dir(&formatted(programs, place)?, &place.data)?;
    }
    let mut command = programs.java(&KAFKA_VM)?;
    command.arg("kafka.Kafka").arg(&file).current_dir(&place.dir);
    Ok(command)
}

/// What one node needs at all, and retention that is applied while a case runs; all else is Kafka's default.
fn kafka_properties(side: Side, address: SocketAddr, controller: SocketAddr, data: &Path) -> String {
    let mut text = format!(
        "process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{controller}
listeners=PLAINTEXT://{address},CONTROLLER://{controller}
advertised.listeners=PLAINTEXT://{address}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
log.retention.check.interval.ms=1000
",
        data.display()
    );
    if side == Side::KafkaFlush {
        text.push_str("log.flush.interval.messages=1\n");
    }
    text
}

/// A formatted empty data directory, made once: it says nothing of ports.
fn formatted(programs: &Programs, place: &Place) -> io::Result<PathBuf> {
    let template = place.dir.join("kafka-formatted");
    if template.join("meta.properties").exists() {
        return Ok(template);
    }
    let file = place.dir.join("kafka-formatted.properties");
    fs::write(&file, kafka_properties(Side::Kafka, place.address, free_address()?, &template))?;
    let mut command = programs.java(&[])?;
    command.args(["kafka.tools.StorageTool", "format", "--cluster-id", CLUSTER_ID, "--config"]).arg(&file);
    let _said = process::run(command, TOOL_MAX)?.success()?;
    Ok(template)
}

fn copy_dir(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_dir(&entry.path(), &target)?;
        } else {
            let _len = fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// The shell limits its memory: it frees nothing, and the machine has no more.
fn tansu(programs: &Programs, address: &str) -> io::Result<Command> {
    let program = programs.tansu.as_ref().ok_or_else(|| io::Error::other("`--tansu` was not given"))?;
    let url = format!("tcp://{address}");
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -v {TANSU_KIB_MAX}; exec \"$0\" \"$@\"")]).arg(program);
    command.args(["broker", "--listener-url", &url, "--advertised-listener-url", &url]);
    command.args(["--storage-engine", "memory://tansu/"]);
    Ok(command)
}

/// The settings of a side that are not its defaults, for the report: its files and arguments.
pub(super) fn described(side: Side, programs: &Programs, place: &Place) -> Vec<(String, String)> {
    let row = |name: &str, value: String| (name.to_owned(), value);
    match side {
        Side::Sync | Side::Os => {
            let settings = broker_settings(side.name(), place.log_len_max);
            let mut rows = vec![row("settings file", settings.trim().replace('\n', "; "))];
            rows.push(row("arguments", format!("--sql none {}", programs.broker_args.join(" "))));
            rows
        }
        Side::Kafka | Side::KafkaFlush => {
            let properties = kafka_properties(side, place.address, place.address, &place.data);
            let told = properties.lines().filter(|line| {
                ["log.retention", "log.flush", "group."].iter().any(|start| line.starts_with(start))
            });
            vec![
                row("virtual machine", KAFKA_VM.join(" ")),
                row("server.properties, besides one node's", told.collect::<Vec<_>>().join("; ")),
            ]
        }
        Side::Tansu => vec![row("storage", format!("memory://tansu/, at most {TANSU_KIB_MAX} KiB"))],
        Side::Floor => vec![row("arguments", "none".into())],
        Side::FloorOs => vec![row("arguments", "--no-sync".into())],
        Side::Null => Vec::new(),
    }
}

/// As Kafka's own start script has them, with the memory that was chosen.
const KAFKA_VM: [&str; 8] = [
    "-Xms2g",
    "-Xmx2g",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
];
const CLUSTER_ID: &str = "a2x1bW4tYmVuY2htYXJrcw";
const TANSU_KIB_MAX: u64 = 16 * 1024 * 1024;
const TOOL_MAX: Duration = Duration::from_mins(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_flushing_kafka_flushes_each_message() {
        let address = "127.0.0.1:1".parse().unwrap();
        let text = |side| kafka_properties(side, address, address, Path::new("data"));
        assert!(text(Side::KafkaFlush).contains("log.flush.interval.messages=1\n"));
        assert!(!text(Side::Kafka).contains("flush"));
        assert!(text(Side::Kafka).contains("\nlog.dirs=data\n"));
    }

    #[test]
    fn a_side_whose_program_is_missing_says_which() {
        let programs = Programs {
            dir: "nowhere".into(),
            broker: "nowhere/broker".into(),
            broker_args: Vec::new(),
            kafka: None,
            tansu: Some("nowhere/tansu".into()),
            load: None,
        };
        for (side, expect) in [
            (Side::Sync, "nowhere/broker"),
            (Side::Kafka, "--kafka-classpath"),
            (Side::Tansu, "nowhere/tansu"),
            (Side::Floor, "floor_broker"),
            (Side::Null, "null_broker"),
        ] {
            assert!(programs.missing(side).unwrap().contains(expect), "{side:?}");
        }
    }
}
