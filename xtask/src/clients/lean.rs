//! A broker without SQL: what it is built from, and that it serves.

use std::path::PathBuf;

use super::{Needs, Program, install};
use crate::{shell, test::Tally, tools, workspace::Workspace};

/// Looks for what must not be in the graph, builds the program and runs `lean.py` with it.
pub(crate) fn run(workspace: &Workspace, tally: &mut Tally) -> Result<(), String> {
    let arguments = ["tree", "--package", PACKAGE, NO_SQL, "--edges", "normal", "--prefix", "none"];
    let tree = shell::collect(&mut shell::cargo(&workspace.root, &arguments))?;
    let found = heavy(&tree);
    if !found.is_empty() {
        return Err(format!("`{PACKAGE}` without SQL depends on {}", found.join(", ")));
    }
    println!("ok: without SQL, the broker depends on {} crates and on no engine", names(&tree).len());
    tally.passed += 1;
    let broker = build(workspace)?;
    PROGRAM.run_on(&broker, workspace, false, tally)
}

/// Builds in the target folder that all builds share, where nearly everything lies already, and keeps a copy of the program.
fn build(workspace: &Workspace) -> Result<PathBuf, String> {
    let folder = install::folder(workspace);
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let copy = folder.join("broker-without-sql");
    shell::run(&mut shell::cargo(&workspace.root, &["build", "--bin", PACKAGE, NO_SQL]))?;
    let copied = std::fs::copy(workspace.target.join("debug").join(PACKAGE), &copy);
    // The next step that asks for a broker finds the one with SQL again.
    tools::broker(workspace)?;
    copied.map_err(|error| format!("{}: {error}", copy.display()))?;
    Ok(copy)
}

/// The packages of a tree that come with SQL only.
fn heavy(tree: &str) -> Vec<&str> {
    let comes_with_sql = |name: &&str| HEAVY.iter().any(|heavy| name.starts_with(heavy));
    names(tree).into_iter().filter(comes_with_sql).collect()
}

/// The packages of a tree, each once.
fn names(tree: &str) -> Vec<&str> {
    let mut names: Vec<&str> = tree.lines().filter_map(|line| line.split_whitespace().next()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

const PACKAGE: &str = "broker";
const NO_SQL: &str = "--no-default-features";
/// How the names of packages begin that come with SQL only.
const HEAVY: &[&str] = &["datafusion", "arrow-flight", "kolumn-sql", "sqlparser", "tonic"];
/// What is seen of the program.
const PROGRAM: Program = Program { file: "lean.py", needs: Needs::Kafka, normal: &[], long: &[] };

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(tree: &str, expect: &[&str]) {
        assert_eq!(heavy(tree), expect, "{tree}");
    }

    #[test]
    fn what_comes_with_sql_is_found_in_a_tree() {
        check("broker v0.1.0 (/w)\nbytes v1.0.0\narrow-array v59.0.0\n", &[]);
        check(
            "broker v0.1.0 (/w)\ndatafusion-sql v55.2.0 (*)\nsqlparser v0.63.0\n",
            &["datafusion-sql", "sqlparser"],
        );
        check("tonic v0.14.9\ntonic v0.14.9 (*)\n", &["tonic"]);
    }

    #[test]
    fn a_package_that_a_tree_repeats_is_counted_once() {
        assert_eq!(names("a v1\nb v1\n\na v1 (*)\n"), ["a", "b"]);
    }
}
