//! Which crate of this workspace may know which.

use std::path::Path;

use crate::workspace::Workspace;

/// Compares the dependencies between members with [`ALLOWED`], and the uses of the codec by the store with the one
/// module that it may use.
pub(super) fn check(workspace: &Workspace) -> Result<Vec<String>, String> {
    let names: Vec<&str> = workspace.members().map(|package| package.name.as_str()).collect();
    let mut faults = Vec::new();
    for package in workspace.members() {
        let library = package.manifest.starts_with(workspace.root.join("crates"));
        let allowed = ALLOWED.iter().find(|(name, _)| *name == package.name).map(|(_, allowed)| *allowed);
        if library && allowed.is_none() {
            faults.push(format!("{}: not in tidy's list of arrows", package.name));
        }
        let inside =
            package.dependencies.iter().filter(|(to, _)| names.contains(&to.as_str()) && *to != package.name);
        for (to, kind) in inside {
            let wrong = match allowed {
                Some(allowed) => !allowed.contains(&to.as_str()),
                None => DEVELOPMENT.contains(&to.as_str()) && kind != "dev",
            };
            if wrong {
                faults.push(format!("{}: may not depend on `{to}` ({kind})", package.name));
            }
        }
    }
    faults.extend(store_uses_of_the_codec(workspace)?);
    Ok(faults)
}

/// The store keeps record batches as they are sent, so it reads them; it knows nothing of requests.
fn store_uses_of_the_codec(workspace: &Workspace) -> Result<Vec<String>, String> {
    let mut faults = Vec::new();
    for file in workspace.files()? {
        if !file.starts_with("crates/topic-store") || file.extension() != Some("rs".as_ref()) {
            continue;
        }
        let text = workspace.text(&file)?.unwrap_or_default();
        faults.extend(uses_outside_of_records(&file, &text));
    }
    Ok(faults)
}

fn uses_outside_of_records(file: &Path, text: &str) -> Vec<String> {
    let lines = text.lines().enumerate();
    lines
        .filter(|(_, line)| line.split(CODEC).skip(1).any(|rest| !rest.starts_with("::records")))
        .map(|(index, _)| {
            format!("{}:{}: `{CODEC}` outside of its module `records`", file.display(), index + 1)
        })
        .collect()
}

/// Every library, and the members that it may depend on.
const ALLOWED: &[(&str, &[&str])] = &[
    ("kolumn-kafka-wire", &[]),
    ("kolumn-journal", &[]),
    ("kolumn-topic-store", &["kolumn-journal", "kolumn-kafka-wire"]),
    ("kolumn-broker", &["kolumn-kafka-wire", "kolumn-topic-store", "kolumn-journal"]),
];
/// Members that only development may depend on.
const DEVELOPMENT: &[&str] = &["xtask", "benches", "broker"];
const CODEC: &str = "kolumn_kafka_wire";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_may_use_the_records_module_of_the_codec_only() {
        let file = Path::new("a.rs");
        assert!(uses_outside_of_records(file, "use kolumn_kafka_wire::records::Batch;").is_empty());
        assert_eq!(uses_outside_of_records(file, "\nuse kolumn_kafka_wire::messages;").len(), 1);
        assert_eq!(uses_outside_of_records(file, "use kolumn_kafka_wire::{records, frame};").len(), 1);
    }
}
