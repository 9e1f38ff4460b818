//! What is configured of a Kafka target.

use std::path::PathBuf;
use std::time::Duration;

use super::Secret;
use super::error::ConfigErrorKind;
use super::keys::QUEUE_DIR;
use super::keys::kafka::{
    BATCH_COMMIT_TIMEOUT, BATCH_SIZE, BROKERS, CLIENT_TLS_CERT, CLIENT_TLS_KEY, COMPRESSION_CODEC,
    COMPRESSION_LEVEL, SASL, SASL_MECHANISM, SASL_PASSWORD, SASL_USERNAME, TLS, TLS_CA, TLS_CLIENT_AUTH,
    TLS_SKIP_VERIFY, TOPIC, VERSION,
};
use super::settings::Reader;
use super::value::{
    ClientAuth, Codec, HostPort, Mechanism, Version, brokers, codec, compression_level, count, duration,
    integer, topic,
};

/// The brokers, how to speak with them, and how events are sent.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct KafkaConfig {
    /// At least one, each once.
    pub brokers: Vec<HostPort>,
    /// Where events go that no rule has a topic for.
    pub topic: Option<String>,
    /// How the client says who it is.
    pub sasl: Option<Sasl>,
    /// How connections are encrypted.
    pub tls: Option<TlsConfig>,
    /// What a TLS server would ask for; without effect on a client.
    pub client_auth: ClientAuth,
    /// The version of the brokers, if it is told.
    pub version: Option<Version>,
    /// How many events are sent together at most; 0 leaves it to the target.
    pub batch_size: u32,
    /// How long a batch may wait to be filled.
    pub commit_timeout: Duration,
    /// How batches are compressed, if they are.
    pub compression: Option<Compression>,
}

/// How the client says who it is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sasl {
    /// How the password is proven.
    pub mechanism: Mechanism,
    /// The user; not empty.
    pub user: String,
    /// The password; not empty.
    pub password: Secret,
}

/// How connections are encrypted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsConfig {
    /// Whether a broker's certificate has to be valid.
    pub verify: bool,
    /// The PEM files of the client's certificate and of its key.
    pub client: Option<ClientCertificate>,
    /// The PEM file of the authorities that are trusted; the system's, if there is none.
    pub ca: Option<PathBuf>,
}

/// Files by which a client proves who it is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientCertificate {
    /// PEM of the certificate, and of those that it follows from.
    pub cert: PathBuf,
    /// PEM of its key.
    pub key: PathBuf,
}

impl ClientCertificate {
    /// These two files.
    #[must_use]
    pub fn new(cert: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self { cert: cert.into(), key: key.into() }
    }
}

/// How batches are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compression {
    /// The codec.
    pub codec: Codec,
    /// Its level; its own default if there is none.
    pub level: Option<i32>,
}

impl KafkaConfig {
    /// How long a batch may wait where nothing is configured.
    pub const COMMIT_TIMEOUT: Duration = Duration::from_secs(30);

    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let list = reader.read(&BROKERS, brokers).unwrap_or_default();
        let is_tls = reader.flag(&TLS);
        if let Some(scheme) = list.scheme {
            let is_told = match (scheme.is_secure, is_tls) {
                (true, false) => ": connections are not encrypted, because `tls` is off",
                (false, true) => ": connections are encrypted, because `tls` is on",
                _ => "",
            };
            reader.warn(
                &BROKERS,
                format!("`{}://` is left out; `tls` says whether TLS is used{is_told}", scheme.name),
            );
        }
        let topic = reader.read(&TOPIC, topic);
        if reader.text(&TOPIC).is_none() {
            reader.warn(&TOPIC, "without a topic only events of rules that name one can be sent");
        }
        let tls = read_tls(reader, is_tls);
        let sasl = read_sasl(reader, is_tls);
        let (batch_size, commit_timeout) = read_batch(reader);
        let client_auth = reader.read(&TLS_CLIENT_AUTH, str::parse::<ClientAuth>).unwrap_or_default();
        if client_auth != ClientAuth::default() {
            reader.warn(&TLS_CLIENT_AUTH, "it has no effect: it is for servers, and this is a client");
        }
        Self {
            brokers: list.addresses,
            topic,
            sasl,
            tls,
            client_auth,
            version: reader.read(&VERSION, str::parse),
            batch_size,
            commit_timeout,
            compression: read_compression(reader),
        }
    }
}

fn read_tls(reader: &mut Reader<'_>, is_tls: bool) -> Option<TlsConfig> {
    let file = |key| reader.text(key).map(PathBuf::from);
    let client = file(&CLIENT_TLS_CERT).zip(file(&CLIENT_TLS_KEY));
    let config = TlsConfig {
        verify: !reader.flag(&TLS_SKIP_VERIFY),
        client: client.map(|(cert, key)| ClientCertificate { cert, key }),
        ca: file(&TLS_CA),
    };
    if is_tls {
        if !config.verify {
            reader.warn(&TLS_SKIP_VERIFY, "whoever answers at the address of a broker is taken for one");
        }
        return Some(config);
    }
    for (key, is_set) in [
        (&TLS_SKIP_VERIFY, !config.verify),
        (&CLIENT_TLS_CERT, config.client.is_some()),
        (&TLS_CA, config.ca.is_some()),
    ] {
        if is_set {
            reader.warn(key, "it has no effect while `tls` is off");
        }
    }
    None
}

fn read_sasl(reader: &mut Reader<'_>, is_tls: bool) -> Option<Sasl> {
    let [user, password] = [&SASL_USERNAME, &SASL_PASSWORD].map(|key| (key, reader.text(key)));
    if !reader.flag(&SASL) {
        if let Some((key, _)) = [user, password].into_iter().find(|(_, value)| value.is_some()) {
            reader.warn(key, "it has no effect while `sasl` is off");
        }
        return None;
    }
    for (key, _) in [user, password].into_iter().filter(|(_, value)| value.is_none()) {
        reader.refuse(ConfigErrorKind::Missing, key, "it is needed while `sasl` is on");
    }
    let mechanism = reader.read(&SASL_MECHANISM, str::parse).unwrap_or_default();
    if mechanism == Mechanism::Plain && !is_tls {
        reader.warn(&SASL_MECHANISM, "without TLS the password can be read on the way to the brokers");
    }
    Some(Sasl { mechanism, user: user.1?.into(), password: Secret::new(password.1?) })
}

fn read_batch(reader: &mut Reader<'_>) -> (u32, Duration) {
    let max = u64::from(u32::MAX);
    let size = reader.read(&BATCH_SIZE, |value| count(value, max));
    let size = size.and_then(|size| u32::try_from(size).ok()).unwrap_or_default();
    let timeout = reader.read(&BATCH_COMMIT_TIMEOUT, duration).unwrap_or_default();
    let has_queue = reader.text(&QUEUE_DIR).is_some();
    if size > 1 && !has_queue {
        reader.refuse(ConfigErrorKind::Conflict, &BATCH_SIZE, "more than 1 needs `queue_dir`");
    }
    if !timeout.is_zero() && (size <= 1 || !has_queue) {
        let reason = "it needs `queue_dir`, and a `batch_size` of more than 1";
        reader.refuse(ConfigErrorKind::Conflict, &BATCH_COMMIT_TIMEOUT, reason);
    }
    (size, if timeout.is_zero() { KafkaConfig::COMMIT_TIMEOUT } else { timeout })
}

fn read_compression(reader: &mut Reader<'_>) -> Option<Compression> {
    let level = reader.read(&COMPRESSION_LEVEL, integer);
    let found = reader.read(&COMPRESSION_CODEC, codec).flatten();
    match (found, level) {
        (None, Some(_)) => reader.warn(&COMPRESSION_LEVEL, "it has no effect without `compression_codec`"),
        (Some(Codec::Snappy), Some(_)) => {
            reader.warn(&COMPRESSION_LEVEL, "it has no effect: snappy has no levels");
        }
        (Some(codec), Some(level)) => {
            if let Err(reason) = compression_level(codec, level) {
                reader.refuse(ConfigErrorKind::InvalidValue, &COMPRESSION_LEVEL, reason);
            }
        }
        (_, None) => {}
    }
    found.map(|codec| Compression { codec, level: level.filter(|_| codec != Codec::Snappy) })
}
