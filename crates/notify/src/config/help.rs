//! What `help` says of sub-systems and keys.

use std::fmt::Write as _;

use super::ConfigErrors;
use super::keys::{Key, Sensitivity, Subsystem};
use super::text;

/// The answer to `help`: of all sub-systems for an empty text, of one for `notify_kafka`, of one key for
/// `notify_kafka brokers`.
///
/// # Errors
///
/// There is no such sub-system, or no such key.
pub fn help(text: &str) -> Result<String, ConfigErrors> {
    let (word, key) = text::first_word(text);
    let mut out = String::new();
    if word.is_empty() {
        for subsystem in Subsystem::all() {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{subsystem:<21} {}", subsystem.help());
        }
        return Ok(out);
    }
    let target = text::target(word)?;
    let subsystem = target.subsystem;
    if !key.is_empty() {
        let key = subsystem.key(key).ok_or_else(|| text::unknown_key(&target, key))?;
        describe(&mut out, subsystem, key);
        return Ok(out);
    }
    let id = if matches!(subsystem, Subsystem::Target(_)) { "[:id]" } else { "" };
    let _ = writeln!(out, "{subsystem}{id}  {}\n", subsystem.help());
    for key in subsystem.keys() {
        describe(&mut out, subsystem, key);
    }
    Ok(out)
}

/// `brokers*  (csv)  what it is for [default; remarks]  VARIABLE`.
fn describe(out: &mut String, subsystem: Subsystem, key: &'static Key) {
    let name = if key.is_required { format!("{}*", key.name) } else { key.name.into() };
    let mut remarks = Vec::new();
    if !key.default.is_empty() {
        remarks.push(format!("default {}", key.default));
    }
    if key.sensitivity == Sensitivity::Secret {
        remarks.push("never shown".into());
    }
    if key.is_own {
        remarks.push("not in MinIO".into());
    }
    let remarks = if remarks.is_empty() { String::new() } else { format!(" [{}]", remarks.join("; ")) };
    let id = if matches!(subsystem, Subsystem::Target(_)) { "[_<ID>]" } else { "" };
    let variables: Vec<String> = subsystem.variables(key).map(|name| format!("MINIO_{name}{id}")).collect();
    let _ = writeln!(out, "{name:<21} {:<10} {}{remarks}", format!("({})", key.value.label()), key.help);
    let _ = writeln!(out, "{:<32} {}", "", variables.join(", "));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_names_every_key_with_its_variable() {
        let all = help("").unwrap();
        for subsystem in Subsystem::all() {
            assert!(all.contains(subsystem.name()));
            let one = help(subsystem.name()).unwrap();
            for key in subsystem.keys() {
                assert!(one.contains(key.name) && one.contains(key.help), "{subsystem} {}", key.name);
            }
        }
    }

    #[test]
    fn help_of_a_key_is_that_of_the_table() {
        assert_eq!(
            help("notify_kafka brokers").unwrap(),
            "brokers*              (csv)      comma-separated list of brokers, `host:port`\n                                 \
             MINIO_NOTIFY_KAFKA_BROKERS[_<ID>]\n"
        );
        assert_eq!(
            help("notify_kafka broker").unwrap_err().to_string(),
            "key `broker` of `notify_kafka`: there is no such key; did you mean `brokers`?"
        );
    }
}
