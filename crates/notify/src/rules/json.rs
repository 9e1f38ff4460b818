//! Notification configurations as the AWS CLI and SDKs write them in JSON.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::bucket_rules::BucketRules;
use super::draft::{Draft, RuleDraft, places};
use super::error::RuleError;
use super::rule::{Rule, RuleKind};

/// Reads a configuration.
pub(super) fn read(document: &[u8]) -> Result<Draft, RuleError> {
    let document: Document = serde_json::from_slice(document)
        .map_err(|error| RuleError::malformed(format!("read as JSON: {error}")))?;
    let queues = document.queues.into_iter().map(|rule| (RuleKind::Queue, rule));
    let topics = document.topics.into_iter().map(|rule| (RuleKind::Topic, rule));
    let functions = document.functions.into_iter().map(|rule| (RuleKind::CloudFunction, rule));
    let rules: Vec<(RuleKind, JsonRule)> = queues.chain(topics).chain(functions).collect();
    let places: Vec<String> = places(rules.iter().map(|(kind, _)| *kind)).collect();
    let drafts = rules.into_iter().zip(places);
    let drafts =
        drafts.map(|((kind, rule), place)| rule.into_draft(kind).map_err(|error| error.within(place)));
    Ok(Draft { rules: drafts.collect::<Result<_, _>>()?, event_bridge: document.event_bridge.is_some() })
}

/// Writes a configuration; what it writes is read again as the same, but ordered by the kinds of rules.
pub(super) fn write(rules: &BucketRules) -> String {
    let mut document = Map::new();
    for kind in [RuleKind::Queue, RuleKind::Topic, RuleKind::CloudFunction] {
        let of_kind: Vec<Value> =
            rules.rules().iter().filter(|rule| rule.kind() == kind).map(write_rule).collect();
        if !of_kind.is_empty() {
            document.insert(list_name(kind).into(), of_kind.into());
        }
    }
    if rules.event_bridge() {
        document.insert("EventBridgeConfiguration".into(), Map::new().into());
    }
    Value::from(document).to_string()
}

fn write_rule(rule: &Rule) -> Value {
    let mut object = Map::new();
    if !rule.id().is_empty() {
        object.insert("Id".into(), rule.id().into());
    }
    object.insert(arn_name(rule.kind()).into(), rule.destination().to_string().into());
    object.insert("Events".into(), rule.events().iter().map(|event| event.as_str()).collect());
    if !rule.filter().is_empty() {
        let named = rule.filter().named();
        let rules: Value =
            named.map(|(name, value)| serde_json::json!({"Name": name, "Value": value})).collect();
        object.insert("Filter".into(), serde_json::json!({"Key": {"FilterRules": rules}}));
    }
    object.into()
}

fn list_name(kind: RuleKind) -> &'static str {
    match kind {
        RuleKind::Queue => "QueueConfigurations",
        RuleKind::Topic => "TopicConfigurations",
        RuleKind::CloudFunction => "LambdaFunctionConfigurations",
    }
}

fn arn_name(kind: RuleKind) -> &'static str {
    match kind {
        RuleKind::Queue => "QueueArn",
        RuleKind::Topic => "TopicArn",
        RuleKind::CloudFunction => "LambdaFunctionArn",
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(rename = "QueueConfigurations", default)]
    queues: Vec<JsonRule>,
    #[serde(rename = "TopicConfigurations", default)]
    topics: Vec<JsonRule>,
    #[serde(rename = "LambdaFunctionConfigurations", alias = "CloudFunctionConfigurations", default)]
    functions: Vec<JsonRule>,
    #[serde(rename = "EventBridgeConfiguration")]
    event_bridge: Option<EventBridge>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EventBridge {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "PascalCase")]
struct JsonRule {
    id: Option<String>,
    queue_arn: Option<String>,
    topic_arn: Option<String>,
    #[serde(alias = "CloudFunctionArn")]
    lambda_function_arn: Option<String>,
    events: Vec<String>,
    filter: Option<JsonFilter>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonFilter {
    #[serde(rename = "Key", alias = "S3Key")]
    key: Option<JsonKey>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonKey {
    #[serde(rename = "FilterRules", default)]
    rules: Vec<JsonFilterRule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "PascalCase")]
struct JsonFilterRule {
    name: String,
    value: String,
}

impl JsonRule {
    fn into_draft(self, kind: RuleKind) -> Result<RuleDraft, RuleError> {
        let arns = [
            (RuleKind::Queue, self.queue_arn),
            (RuleKind::Topic, self.topic_arn),
            (RuleKind::CloudFunction, self.lambda_function_arn),
        ];
        let mut draft = RuleDraft::new(kind);
        for (of, arn) in arns {
            if of == kind {
                draft.destination = arn;
            } else if arn.is_some() {
                return Err(RuleError::malformed(format!("it has `{}`", arn_name(of))));
            }
        }
        draft.id = self.id;
        draft.events = self.events;
        let filter_rules = self.filter.and_then(|filter| filter.key).map(|key| key.rules).unwrap_or_default();
        draft.filter = filter_rules.into_iter().map(|rule| (rule.name, rule.value)).collect();
        Ok(draft)
    }
}
