//! Reads the grammar that [`Draft::from_xml`] shows.

use super::cursor::Cursor;
use crate::rules::draft::{Draft, RuleDraft, check_count};
use crate::rules::error::RuleError;
use crate::rules::rule::RuleKind;

/// Reads a configuration; stops at the first rule above `rules_max`.
pub(in crate::rules) fn read(document: &[u8], rules_max: usize) -> Result<Draft, RuleError> {
    let document = std::str::from_utf8(document).map_err(|error| {
        RuleError::malformed("it is not UTF-8").within(format_args!("byte {}", error.valid_up_to()))
    })?;
    let document = document.strip_prefix('\u{feff}').unwrap_or(document);
    let mut draft = Draft::default();
    let mut cursor = Cursor::new(document);
    cursor.root("NotificationConfiguration", |cursor| {
        cursor.children(|cursor, name| {
            let kinds = [RuleKind::Queue, RuleKind::Topic, RuleKind::CloudFunction];
            match (kinds.into_iter().find(|kind| kind.element() == name), name) {
                (Some(kind), _) => {
                    check_count(draft.rules.len() + 1, rules_max)?;
                    let mut rule = RuleDraft::new(kind);
                    let read = read_rule(cursor, &mut rule);
                    draft.rules.push(rule);
                    read.map_err(|error| error.within(draft.places().last().unwrap_or_default()))
                }
                (None, "EventBridgeConfiguration") => {
                    draft.event_bridge = true;
                    cursor.children(|cursor, name| Err(cursor.unexpected(name)))
                }
                (None, _) => Err(cursor.unexpected(name)),
            }
        })
    })?;
    Ok(draft)
}

fn read_rule(cursor: &mut Cursor<'_>, rule: &mut RuleDraft) -> Result<(), RuleError> {
    let mut has_filter = false;
    cursor.children(|cursor, name| match name {
        "Id" => cursor.text_once(name, &mut rule.id),
        "Event" => {
            rule.events.push(cursor.text()?.trim().to_owned());
            Ok(())
        }
        "Filter" if !std::mem::replace(&mut has_filter, true) => read_filter(cursor, &mut rule.filter),
        _ if name == rule.kind.destination_element() => cursor.text_once(name, &mut rule.destination),
        _ => Err(cursor.unexpected(name)),
    })?;
    rule.destination = rule.destination.take().map(|arn| arn.trim().to_owned());
    Ok(())
}

fn read_filter(cursor: &mut Cursor<'_>, filter: &mut Vec<(String, String)>) -> Result<(), RuleError> {
    let mut has_key = false;
    cursor.children(|cursor, name| match name {
        "S3Key" if !std::mem::replace(&mut has_key, true) => cursor.children(|cursor, name| match name {
            "FilterRule" => {
                filter.push(read_filter_rule(cursor)?);
                Ok(())
            }
            _ => Err(cursor.unexpected(name)),
        }),
        _ => Err(cursor.unexpected(name)),
    })
}

/// The value is taken as it is: blanks are part of a prefix.
fn read_filter_rule(cursor: &mut Cursor<'_>) -> Result<(String, String), RuleError> {
    let (mut rule_name, mut value) = (None, None);
    cursor.children(|cursor, name| match name {
        "Name" => cursor.text_once(name, &mut rule_name),
        "Value" => cursor.text_once(name, &mut value),
        _ => Err(cursor.unexpected(name)),
    })?;
    match (rule_name, value) {
        (Some(name), Some(value)) => Ok((name.trim().to_owned(), value)),
        (None, _) => Err(cursor.malformed("a `FilterRule` without `Name`")),
        (_, None) => Err(cursor.malformed("a `FilterRule` without `Value`")),
    }
}
