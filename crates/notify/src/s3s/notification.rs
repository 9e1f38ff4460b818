//! Bucket notification configurations, as the types of the crate `s3s` have them.

use std::sync::Arc;

use s3s::dto::{
    Event, EventBridgeConfiguration, FilterRule, FilterRuleName, GetBucketNotificationConfigurationInput,
    GetBucketNotificationConfigurationOutput, LambdaFunctionConfiguration, NotificationConfiguration,
    NotificationConfigurationFilter, PutBucketNotificationConfigurationInput,
    PutBucketNotificationConfigurationOutput, QueueConfiguration, S3KeyFilter, TopicConfiguration,
};
use s3s::{S3, S3Error, S3ErrorCode, S3Request, S3Response, S3Result};

use super::Shared;
use super::look::check_bucket;
use crate::rules::{Admission, BucketRules, Draft, KeyFilter, Rule, RuleDraft, RuleError, RuleKind};

impl<S: S3> Shared<S> {
    pub(super) async fn put_bucket_notification_configuration(
        self: &Arc<Self>,
        req: S3Request<PutBucketNotificationConfigurationInput>,
    ) -> S3Result<S3Response<PutBucketNotificationConfigurationOutput>> {
        let bucket = req.input.bucket;
        check_bucket(&self.inner, &bucket).await?;
        let targets = self.hub.known_targets();
        let rules = self.hub.rules();
        let mut admission = Admission::new(self.dialect, &targets);
        if let Some(stored) = rules.bucket(&bucket) {
            admission = admission.with_stored(stored);
        }
        let admitted = admission.admit(draft(req.input.notification_configuration));
        let admitted = admitted.map_err(|error| refusal(&error))?;
        self.hub.set_rules(&bucket, admitted).await.map_err(S3Error::internal_error)?;
        Ok(S3Response::new(PutBucketNotificationConfigurationOutput::default()))
    }

    pub(super) async fn get_bucket_notification_configuration(
        self: &Arc<Self>,
        req: S3Request<GetBucketNotificationConfigurationInput>,
    ) -> S3Result<S3Response<GetBucketNotificationConfigurationOutput>> {
        let bucket = &req.input.bucket;
        check_bucket(&self.inner, bucket).await?;
        let rules = self.hub.rules().bucket(bucket).cloned().unwrap_or_default();
        Ok(S3Response::new(answer(&rules.canonical(&self.hub.known_targets()))))
    }
}

/// A refusal with the code and the status of its error.
pub(super) fn refusal(error: &RuleError) -> S3Error {
    let code = S3ErrorCode::from_bytes(error.code().as_bytes()).unwrap_or(S3ErrorCode::InvalidArgument);
    let mut refusal = S3Error::with_message(code, error.message());
    if let Ok(status) = hyper::StatusCode::from_u16(error.status()) {
        refusal.set_status_code(status);
    }
    refusal
}

fn draft(configuration: NotificationConfiguration) -> Draft {
    let queues = configuration.queue_configurations.into_iter().flatten().map(|one| {
        let one: QueueConfiguration = one;
        rule(RuleKind::Queue, one.id, one.queue_arn, one.events, one.filter)
    });
    let topics = configuration.topic_configurations.into_iter().flatten().map(|one| {
        let one: TopicConfiguration = one;
        rule(RuleKind::Topic, one.id, one.topic_arn, one.events, one.filter)
    });
    let functions = configuration.lambda_function_configurations.into_iter().flatten().map(|one| {
        let one: LambdaFunctionConfiguration = one;
        rule(RuleKind::CloudFunction, one.id, one.lambda_function_arn, one.events, one.filter)
    });
    let event_bridge = configuration.event_bridge_configuration.is_some();
    Draft { rules: queues.chain(topics).chain(functions).collect(), event_bridge }
}

fn rule(
    kind: RuleKind,
    id: Option<String>,
    destination: String,
    events: Vec<Event>,
    filter: Option<NotificationConfigurationFilter>,
) -> RuleDraft {
    let filters = filter.and_then(|filter| filter.key).and_then(|key| key.filter_rules);
    let text = |name: FilterRuleName| name.as_str().to_owned();
    let mut rule = RuleDraft::new(kind);
    rule.id = id;
    rule.destination = Some(destination);
    rule.events = events.into_iter().map(String::from).collect();
    rule.filter = filters
        .into_iter()
        .flatten()
        .map(|filter| (filter.name.map(text).unwrap_or_default(), filter.value.unwrap_or_default()))
        .collect();
    rule
}

fn answer(rules: &BucketRules) -> GetBucketNotificationConfigurationOutput {
    let (mut queues, mut topics, mut functions) = (Vec::new(), Vec::new(), Vec::new());
    for rule in rules.rules() {
        let events: Vec<Event> = rule.events().iter().map(|event| event.as_str().to_owned().into()).collect();
        let (id, filter, arn) = (Some(rule.id().to_owned()), filter(rule), rule.destination().to_string());
        match rule.kind() {
            RuleKind::Queue => queues.push(QueueConfiguration { events, filter, id, queue_arn: arn }),
            RuleKind::Topic => topics.push(TopicConfiguration { events, filter, id, topic_arn: arn }),
            RuleKind::CloudFunction => {
                functions.push(LambdaFunctionConfiguration { events, filter, id, lambda_function_arn: arn });
            }
        }
    }
    GetBucketNotificationConfigurationOutput {
        event_bridge_configuration: rules.event_bridge().then(EventBridgeConfiguration::default),
        lambda_function_configurations: some(functions),
        queue_configurations: some(queues),
        topic_configurations: some(topics),
    }
}

fn some<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}

fn filter(rule: &Rule) -> Option<NotificationConfigurationFilter> {
    let filter: &KeyFilter = rule.filter();
    let named = [(FilterRuleName::PREFIX, filter.prefix()), (FilterRuleName::SUFFIX, filter.suffix())];
    let named = named.into_iter().filter(|(_, value)| !value.is_empty()).map(|(name, value)| FilterRule {
        name: Some(FilterRuleName::from_static(name)),
        value: Some(value.to_owned()),
    });
    let rules = some(named.collect())?;
    Some(NotificationConfigurationFilter { key: Some(S3KeyFilter { filter_rules: Some(rules) }) })
}
