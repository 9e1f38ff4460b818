//! From configuration to targets.

use std::sync::Arc;

use super::{BuildError, Target};
use crate::config::{Arn, EnabledTarget, KafkaConfig, TargetConfig, TargetKind, TargetSettings};

/// Makes the target that is configured, of a server in `region`, which may be empty. Nothing is connected.
///
/// # Errors
///
/// What is configured cannot be used, or this crate was built without that kind of target.
pub fn build(region: &str, enabled: &EnabledTarget) -> Result<Arc<dyn Target>, BuildError> {
    match enabled {
        EnabledTarget::Kafka(config) => kafka(&Arn::new(region, config.id.clone(), config.kind), config),
        EnabledTarget::Other(config) => {
            let arn = Arn::new(region, config.id.clone(), config.kind);
            match config.kind {
                TargetKind::Webhook => webhook(&arn, config),
                kind => Err(missing(kind)),
            }
        }
    }
}

#[cfg(feature = "kafka")]
fn kafka(arn: &Arn, config: &TargetConfig<KafkaConfig>) -> Result<Arc<dyn Target>, BuildError> {
    use super::kafka::{KafkaOptions, KafkaTarget};

    let options = KafkaOptions::new(config.target.clone());
    Ok(Arc::new(KafkaTarget::new(arn.clone(), options, config.style)?))
}

#[cfg(not(feature = "kafka"))]
fn kafka(arn: &Arn, _config: &TargetConfig<KafkaConfig>) -> Result<Arc<dyn Target>, BuildError> {
    Err(missing(arn.kind))
}

#[cfg(feature = "webhook")]
fn webhook(arn: &Arn, config: &TargetConfig<TargetSettings>) -> Result<Arc<dyn Target>, BuildError> {
    use super::webhook::{WebhookOptions, WebhookTarget};

    let options = WebhookOptions::from_settings(&config.target);
    Ok(Arc::new(WebhookTarget::new(arn.clone(), &options, config.style)?))
}

#[cfg(not(feature = "webhook"))]
fn webhook(arn: &Arn, _config: &TargetConfig<TargetSettings>) -> Result<Arc<dyn Target>, BuildError> {
    Err(missing(arn.kind))
}

fn missing(kind: TargetKind) -> BuildError {
    BuildError::new(format!("this program was built without targets of the kind `{kind}`"))
}
