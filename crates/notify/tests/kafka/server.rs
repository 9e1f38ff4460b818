//! One node of Apache Kafka with a listener for each way to connect, and a target for each.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use kolumn_notify::config::{Config, EnabledTarget, Environment, StoredConfig, TargetState};
use kolumn_notify::event::{EventName, Style, Timestamp};
use kolumn_notify::queue::{Delivery, Message};
use kolumn_notify::target::kafka::{KafkaOptions, KafkaTarget};
use krafka::Kafka as Client;
use krafka::admin::NewTopic;
use krafka::consumer::AutoOffsetReset;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

pub(crate) const TOPIC: &str = "bucket-events";
pub(crate) const PARTITIONS: i32 = 3;
pub(crate) const PASSWORD: &str = "the-password";

/// The listeners, in the order of their ports; the controller's comes last.
const LISTENERS: [(&str, &str); 6] = [
    ("OPEN", "PLAINTEXT"),
    ("SASL", "SASL_PLAINTEXT"),
    ("TLS", "SSL"),
    ("BOTH", "SASL_SSL"),
    ("MUTUAL", "SSL"),
    ("CONTROLLER", "PLAINTEXT"),
];

/// How a target connects: the listener's name, and what is configured beside brokers and topic.
#[derive(Debug, Clone)]
pub(crate) struct Way {
    pub(crate) listener: &'static str,
    pub(crate) keys: Vec<(&'static str, String)>,
}

/// A node, killed when it is dropped.
pub(crate) struct Kafka {
    dir: tempfile::TempDir,
    ports: Vec<u16>,
    process: Option<Child>,
}

impl Kafka {
    /// A node that runs, with the topic.
    pub(crate) async fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        certificates(dir.path());
        let mut kafka = Self { dir, ports: free_ports(LISTENERS.len()), process: None };
        fs::write(kafka.file("server.properties"), kafka.properties()).unwrap();
        kafka.format();
        kafka.run();
        kafka.create_topic(TOPIC, &[]).await;
        kafka
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn port(&self, listener: &str) -> u16 {
        self.ports[LISTENERS.iter().position(|(name, _)| *name == listener).unwrap()]
    }

    fn properties(&self) -> String {
        let listeners = |with: fn(&str, &str, u16) -> String, count: usize| {
            let of = LISTENERS.iter().zip(&self.ports).take(count);
            of.map(|((name, protocol), port)| with(name, protocol, *port)).collect::<Vec<_>>().join(",")
        };
        let place = |name: &str, _: &str, port| format!("{name}://localhost:{port}");
        let map = listeners(|name, protocol, _| format!("{name}:{protocol}"), LISTENERS.len());
        let login = "org.apache.kafka.common.security";
        format!(
            "process.roles=broker,controller
node.id=1
controller.quorum.voters=1@localhost:{controller}
listeners={listeners}
advertised.listeners={advertised}
controller.listener.names=CONTROLLER
inter.broker.listener.name=OPEN
listener.security.protocol.map={map}
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
{plain}{scram}
ssl.keystore.type=PEM
ssl.keystore.location={keystore}
ssl.truststore.type=PEM
ssl.truststore.location={authority}
listener.name.mutual.ssl.client.auth=required
log.dirs={logs}
num.partitions={PARTITIONS}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
",
            controller = self.port("CONTROLLER"),
            listeners = listeners(place, LISTENERS.len()),
            advertised = listeners(place, LISTENERS.len() - 1),
            plain = ["sasl", "both"]
                .map(|listener| format!(
                    "listener.name.{listener}.plain.sasl.jaas.config={login}.plain.PlainLoginModule required \
                     user_alice=\"{PASSWORD}\";\n"
                ))
                .concat(),
            scram = ["sasl", "both"]
                .iter()
                .flat_map(|listener| ["256", "512"].map(|bits| format!(
                    "listener.name.{listener}.scram-sha-{bits}.sasl.jaas.config={login}.scram.ScramLoginModule required;\n"
                )))
                .collect::<String>(),
            keystore = self.file("server.pem").display(),
            authority = self.file("ca.pem").display(),
            logs = self.file("logs").display(),
        )
    }

    fn format(&self) {
        let mut command = java();
        command.args(["kafka.tools.StorageTool", "format", "--cluster-id", "a2x1bW4tbm90aWZ5LXRlcw"]);
        command.arg("--config").arg(self.file("server.properties"));
        for bits in ["256", "512"] {
            command.args(["--add-scram", &format!("SCRAM-SHA-{bits}=[name=alice,password={PASSWORD}]")]);
        }
        let done = command.output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    /// Starts the node on what it has. It is ready when it answers, which a client waits for.
    pub(crate) fn run(&mut self) {
        let log = File::options().create(true).append(true).open(self.file("log")).unwrap();
        let mut command = java();
        command.arg("kafka.Kafka").arg(self.file("server.properties")).stdin(Stdio::null());
        command.stdout(log.try_clone().unwrap()).stderr(log);
        self.process = Some(command.spawn().unwrap());
    }

    /// As `kill -9` does.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// A client of the open listener. The node may just be starting.
    pub(crate) async fn client(&self) -> Client {
        let started = Instant::now();
        loop {
            match Client::builder(format!("localhost:{}", self.port("OPEN"))).connect().await {
                Ok(client) => return client,
                Err(error) if started.elapsed() > PATIENCE => {
                    let log = fs::read_to_string(self.file("log")).unwrap_or_default();
                    panic!("{error}: {log}");
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
            }
        }
    }

    pub(crate) async fn create_topic(&self, name: &str, configs: &[(&str, &str)]) {
        let started = Instant::now();
        loop {
            let mut topic = NewTopic::new(name, PARTITIONS, 1).unwrap();
            topic.configs.extend(configs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
            let created = self.client().await.admin().create_topics([topic], Default::default()).await;
            let created = created.and_then(|mut created| created.remove(name).unwrap());
            match created {
                Ok(()) => return,
                Err(error) if started.elapsed() > PATIENCE => panic!("{error}"),
                Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
            }
        }
    }

    pub(crate) async fn delete_topic(&self, name: &str) {
        let deleted = self.client().await.admin().delete_topics([name], Default::default()).await.unwrap();
        for (_, outcome) in deleted {
            outcome.unwrap();
        }
    }

    /// Keys and values of all records of a topic once there are so many, by partition and offset within it.
    pub(crate) async fn records(&self, topic: &str, count: usize) -> Vec<(String, String)> {
        let client = self.client().await;
        let builder = client.consumer_without_group().auto_offset_reset(AutoOffsetReset::Earliest);
        let consumer = builder.enable_auto_commit(false).build().await.unwrap();
        consumer.assign(topic, (0..PARTITIONS).collect()).await.unwrap();
        let mut found = Vec::new();
        let mut last = Instant::now();
        // A moment longer than it takes, so that more than is expected is seen as well.
        while found.len() < count || last.elapsed() < Duration::from_secs(1) {
            let records = consumer.poll(Duration::from_millis(500)).await.unwrap();
            if !records.is_empty() {
                last = Instant::now();
            }
            assert!(last.elapsed() < PATIENCE, "{} of {count} records", found.len());
            found.extend(records);
        }
        found.sort_by_key(|record| (record.partition, record.offset));
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let both = |record: &krafka::ConsumerRecord| {
            (text(record.key.as_deref().unwrap()), text(record.value.as_deref().unwrap()))
        };
        found.iter().map(both).collect()
    }

    /// What an operator would configure to connect in this way.
    pub(crate) fn options(&self, way: &Way) -> KafkaOptions {
        let variable = |key: &str| format!("MINIO_NOTIFY_KAFKA_{key}_PRIMARY");
        let mut variables = vec![
            (variable("ENABLE"), "on".to_owned()),
            (variable("BROKERS"), format!("localhost:{}", self.port(way.listener))),
            (variable("TOPIC"), TOPIC.to_owned()),
        ];
        variables.extend(way.keys.iter().map(|(key, value)| (variable(key), value.clone())));
        let variables = variables.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let config = Config::resolve(&Environment::new(variables), &StoredConfig::default());
        let TargetState::Enabled(enabled) = config.targets()[0].state() else { panic!("{config:?}") };
        let EnabledTarget::Kafka(found) = &**enabled else { panic!("{enabled:?}") };
        let mut options = KafkaOptions::new(found.target.clone());
        options.wait = Duration::from_secs(5);
        options
    }

    pub(crate) fn target(&self, way: &Way) -> KafkaTarget {
        let arn = "arn:minio:sqs::primary:kafka".parse().unwrap();
        KafkaTarget::new(arn, self.options(way), Style::Minio).unwrap()
    }
}

impl Drop for Kafka {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Way {
    pub(crate) fn open() -> Self {
        Self { listener: "OPEN", keys: Vec::new() }
    }
}

/// Deliveries with these keys, and their numbers as values.
pub(crate) fn deliveries(keys: impl IntoIterator<Item = String>) -> Vec<Delivery> {
    let delivery = |(number, key): (u64, String)| {
        let event = EventName::ObjectCreatedPut;
        Delivery::new(number, Message::new(event, key, number.to_string(), Timestamp::default()))
    };
    (0..).zip(keys).map(delivery).collect()
}

fn java() -> Command {
    let jars = std::env::var("KOLUMN_KAFKA_CLASSPATH");
    let jars = jars.unwrap_or_else(|_| panic!("`cargo xtask test --only kafka` sets KOLUMN_KAFKA_CLASSPATH"));
    let mut command = Command::new("java");
    command.args(["-Xmx512m", "-XX:+UseSerialGC", "-cp", &format!("{jars}/*")]);
    command
}

/// `ca.pem`; `server.pem`, which has key and certificate; a client's `client.cert.pem` and `client.key.pem`, and the same
/// of somebody whom nobody knows, `stranger`.
fn certificates(dir: &Path) {
    let authority = authority();
    let stranger = self::authority();
    fs::write(dir.join("ca.pem"), authority.pem()).unwrap();
    fs::write(dir.join("other-ca.pem"), stranger.pem()).unwrap();
    let (cert, key) = signed(&authority, "localhost");
    fs::write(dir.join("server.pem"), key + &cert).unwrap();
    for (name, issuer) in [("client", &authority), ("stranger", &stranger)] {
        let (cert, key) = signed(issuer, name);
        fs::write(dir.join(format!("{name}.cert.pem")), cert).unwrap();
        fs::write(dir.join(format!("{name}.key.pem")), key).unwrap();
    }
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate of this name and its key, in PEM.
fn signed(issuer: &CertifiedIssuer<'static, KeyPair>, name: &str) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let cert = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, issuer).unwrap();
    (cert.pem(), key.serialize_pem())
}

/// Ports that were free a moment ago.
fn free_ports(count: usize) -> Vec<u16> {
    let listeners: Vec<TcpListener> =
        (0..count).map(|_| TcpListener::bind(("127.0.0.1", 0)).unwrap()).collect();
    listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect()
}

/// How long a node may take to start, or to do anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);
