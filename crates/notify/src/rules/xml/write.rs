//! Writes the form in which `MinIO` and AWS answer.

use quick_xml::escape::partial_escape;

use crate::rules::bucket_rules::BucketRules;
use crate::rules::rule::Rule;

/// Writes a configuration; what it writes is read again as the same.
pub(in crate::rules) fn write(rules: &BucketRules) -> String {
    let mut xml = String::from(r#"<?xml version="1.0" encoding="UTF-8"?>"#);
    xml.push('\n');
    xml.push_str(r#"<NotificationConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">"#);
    for rule in rules.rules() {
        element(&mut xml, rule.kind().element(), |xml| write_rule(xml, rule));
    }
    if rules.event_bridge() {
        element(&mut xml, "EventBridgeConfiguration", |_| {});
    }
    xml.push_str("</NotificationConfiguration>");
    xml
}

fn write_rule(xml: &mut String, rule: &Rule) {
    for event in rule.events() {
        text(xml, "Event", event.as_str());
    }
    if !rule.filter().is_empty() {
        element(xml, "Filter", |xml| {
            element(xml, "S3Key", |xml| {
                for (name, value) in rule.filter().named() {
                    element(xml, "FilterRule", |xml| {
                        text(xml, "Name", name);
                        text(xml, "Value", value);
                    });
                }
            });
        });
    }
    text(xml, "Id", rule.id());
    text(xml, rule.kind().destination_element(), &rule.destination().to_string());
}

fn element(xml: &mut String, name: &str, inside: impl FnOnce(&mut String)) {
    xml.extend(["<", name, ">"]);
    inside(xml);
    xml.extend(["</", name, ">"]);
}

fn text(xml: &mut String, name: &str, text: &str) {
    element(xml, name, |xml| xml.push_str(&partial_escape(text)));
}
