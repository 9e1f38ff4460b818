//! Which crate of this workspace may know which, and which crates of others a library must not reach.

use std::path::Path;

use crate::workspace::{Package, Workspace};

/// Compares the dependencies between members with [`LIBRARIES`], and the uses of the codec by the store with the one
/// module that it may use.
pub(super) fn check(workspace: &Workspace) -> Result<Vec<String>, String> {
    let names: Vec<&str> = workspace.members().map(|package| package.name.as_str()).collect();
    let mut faults = Vec::new();
    for package in workspace.members() {
        let library = LIBRARIES.iter().find(|library| library.name == package.name);
        match library {
            Some(library) => {
                let reached = workspace.reached_from(library.name);
                faults.extend(library.forbidden_among(reached.into_iter()));
            }
            None if package.manifest.starts_with(workspace.root.join("crates")) => {
                faults.push(format!("{}: not in tidy's list of libraries", package.name));
            }
            None => {}
        }
        faults.extend(wrong_arrows(package, library, &names));
    }
    faults.extend(store_uses_of_the_codec(workspace)?);
    Ok(faults)
}

/// What one library may know.
#[derive(Debug)]
struct Library {
    name: &'static str,
    /// The members that it may depend on.
    knows: &'static [&'static str],
    /// Those that its tests may depend on besides.
    tests_know: &'static [&'static str],
    /// Crates that it must not be built with at any distance. A name that ends in `*` stands for all that begin so.
    never: &'static [&'static str],
}

impl Library {
    fn may_know(&self, member: &str, kind: &str) -> bool {
        self.knows.contains(&member) || (kind == "dev" && self.tests_know.contains(&member))
    }

    fn forbidden_among<'n>(&self, reached: impl Iterator<Item = &'n str>) -> Vec<String> {
        let forbidden = |name: &&str| {
            self.never.iter().any(|never| match never.strip_suffix('*') {
                Some(beginning) => name.starts_with(beginning),
                None => name == never,
            })
        };
        reached.filter(forbidden).map(|name| format!("{}: must not reach `{name}`", self.name)).collect()
    }
}

/// A package's dependencies on members that it may not have.
fn wrong_arrows(package: &Package, library: Option<&Library>, members: &[&str]) -> Vec<String> {
    let inside =
        package.dependencies.iter().filter(|(to, _)| members.contains(&to.as_str()) && *to != package.name);
    inside
        .filter(|(to, kind)| match library {
            Some(library) => !library.may_know(to, kind),
            None => DEVELOPMENT.contains(&to.as_str()) && kind != "dev",
        })
        .map(|(to, kind)| format!("{}: may not depend on `{to}` ({kind})", package.name))
        .collect()
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

const LIBRARIES: &[Library] = &[
    Library {
        name: "kolumn-kafka-wire",
        knows: &[],
        tests_know: &[],
        never: &["tokio", "arrow*", "datafusion*"],
    },
    Library {
        name: "kolumn-journal",
        knows: &[],
        tests_know: &[],
        never: &["tokio", "arrow*", "datafusion*"],
    },
    Library {
        name: "kolumn-topic-store",
        knows: &["kolumn-journal", "kolumn-kafka-wire"],
        tests_know: &[],
        never: ENGINES,
    },
    Library {
        name: "kolumn-sql",
        knows: &["kolumn-topic-store"],
        tests_know: &["kolumn-journal", "kolumn-kafka-wire"],
        never: &[],
    },
    Library {
        name: "kolumn-broker",
        knows: &["kolumn-kafka-wire", "kolumn-topic-store", "kolumn-journal"],
        tests_know: &[],
        never: ENGINES,
    },
    Library {
        name: "kolumn-notify",
        knows: &["kolumn-journal"],
        tests_know: &[],
        never: &["arrow*", "datafusion*"],
    },
];
/// What computes on columns and what serves answers. Columns themselves (arrow-array, -buffer, -data, -schema) are none of it.
const ENGINES: &[&str] = &[
    "datafusion*",
    "sqlparser",
    "arrow",
    "arrow-arith",
    "arrow-cast",
    "arrow-flight",
    "arrow-ipc",
    "arrow-ord",
    "arrow-row",
    "arrow-select",
    "arrow-string",
    "parquet",
    "tonic",
];
/// Members that only development may depend on.
const DEVELOPMENT: &[&str] = &["xtask", "benches", "broker"];
const CODEC: &str = "kolumn_kafka_wire";

#[cfg(test)]
mod tests {
    use super::*;

    const LIBRARY: Library =
        Library { name: "l", knows: &["a"], tests_know: &["b"], never: &["arrow", "datafusion*"] };

    #[test]
    fn a_test_may_know_more_than_what_it_tests() {
        assert!(LIBRARY.may_know("a", "normal") && LIBRARY.may_know("a", "dev"));
        assert!(LIBRARY.may_know("b", "dev"));
        assert!(!LIBRARY.may_know("b", "normal") && !LIBRARY.may_know("b", "build"));
        assert!(!LIBRARY.may_know("c", "dev"));
    }

    #[test]
    fn forbidden_crates_are_found_by_name_and_by_beginning() {
        let found = LIBRARY.forbidden_among(["arrow", "arrow-array", "bytes", "datafusion-sql"].into_iter());
        assert_eq!(found, ["l: must not reach `arrow`", "l: must not reach `datafusion-sql`"]);
    }

    #[test]
    fn the_store_may_use_the_records_module_of_the_codec_only() {
        let file = Path::new("a.rs");
        assert!(uses_outside_of_records(file, "use kolumn_kafka_wire::records::Batch;").is_empty());
        assert_eq!(uses_outside_of_records(file, "\nuse kolumn_kafka_wire::messages;").len(), 1);
        assert_eq!(uses_outside_of_records(file, "use kolumn_kafka_wire::{records, frame};").len(), 1);
    }
}
