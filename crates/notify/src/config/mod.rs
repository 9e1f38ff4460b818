//! Configuration of targets, as `MinIO` documents it.
//!
//! Two sources set keys of targets: variables of the environment, and the stored configuration, which commands change.
//! [`Config::resolve`] takes both together and says for each target whether it can be used, or all that is wrong.
//! Nothing here reads a file or the environment, or writes a log: it is given texts and gives back texts, errors and
//! warnings.
//!
//! - [`Subsystem`] and [`Key`] are the tables: which keys there are, of which type, with which default.
//! - [`Environment`] keeps the variables that are of interest.
//! - [`StoredConfig`] is what `set`, `reset` and `get` work on, and what is kept as text.
//! - [`Config`] is what holds, with typed settings for Kafka: [`KafkaConfig`].
//! - [`Arn`] names a target in the rules of a bucket.

mod arn;
mod environment;
mod error;
mod help;
mod kafka;
mod keys;
mod region;
mod resolve;
mod secret;
mod settings;
mod stored;
mod suggest;
mod target;
mod text;
mod value;

pub use self::arn::{Arn, ParseArnError, ParseTargetIdError, TargetId, TargetKind, UnknownTargetKind};
pub use self::environment::Environment;
pub use self::error::{ConfigError, ConfigErrorKind, ConfigErrors, Place, Warning};
pub use self::help::help;
pub use self::kafka::{ClientCertificate, Compression, KafkaConfig, Sasl, TlsConfig};
pub use self::keys::{Key, Sensitivity, Subsystem};
pub use self::resolve::{Config, Target, TargetState};
pub use self::secret::Secret;
pub use self::settings::{Setting, Source, TargetSettings};
pub use self::stored::{OutputStyle, StoredConfig};
pub use self::target::{EnabledTarget, QueueConfig, QueueDurability, QueueFull, TargetConfig};
pub use self::text::{LINES_MAX, TEXT_LEN_MAX};
pub(crate) use self::value::topic;
pub use self::value::{ClientAuth, Codec, HostPort, Mechanism, ParseHostPortError, ValueType, Version};
