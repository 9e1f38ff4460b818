//! That the query engine is built once: what lies below it has the same features in every build that developers and CI make.
//!
//! Cargo resolves features for the packages that a command selects, and for every other set of them it builds a crate
//! again, with all that depend on it. One dependency of one test is enough for that.

use std::collections::{BTreeMap, BTreeSet};

use crate::{shell, workspace::Workspace};

/// Compares the features that each of [`BUILDS`] resolves with those of the [workspace that is tested together](WHOLE).
pub(super) fn check(workspace: &Workspace) -> Result<Vec<String>, String> {
    let below = workspace.reached_from(ENGINE);
    let whole = tree(workspace, WHOLE)?;
    let wanted = features(&whole, &below);
    let mut faults = Vec::new();
    for build in BUILDS {
        let tree = tree(workspace, build)?;
        let found = features(&tree, &below);
        faults
            .extend(built_again(&found, &wanted).iter().map(|fault| format!("cargo tree {build}: {fault}")));
    }
    Ok(faults)
}

fn tree(workspace: &Workspace, build: &str) -> Result<String, String> {
    let mut cargo = shell::cargo(&workspace.root, &["tree", "--prefix", "none", "--format", "{p}\t{f}"]);
    shell::collect(cargo.args(build.split_whitespace()))
}

/// The sets of features of packages: there may be one for the target and one for what runs while building.
type Features<'t> = BTreeMap<&'t str, BTreeSet<&'t str>>;

/// The features of those packages of a tree that lie below the engine.
fn features<'t>(tree: &'t str, below: &BTreeSet<&str>) -> Features<'t> {
    let mut found = Features::new();
    for (package, features) in tree.lines().filter_map(|line| line.split_once('\t')) {
        if package.split_whitespace().next().is_some_and(|name| below.contains(name)) {
            found.entry(package).or_default().insert(features.trim_end_matches(" (*)"));
        }
    }
    found
}

/// The packages that have a set of features which they do not have in the whole workspace.
fn built_again(found: &Features<'_>, wanted: &Features<'_>) -> Vec<String> {
    let mut faults = Vec::new();
    for (package, found) in found {
        let wanted = wanted.get(package).cloned().unwrap_or_default();
        if let Some(other) = found.difference(&wanted).next() {
            faults.push(format!("{package} has the features `{other}`, in the whole workspace {wanted:?}"));
        }
    }
    faults
}

/// The step `test` has two builds: the clients of notify's targets, what the notifier is made of, and the doubles of their
/// tests ask for features that nothing else needs.
const WHOLE: &str = "--workspace --exclude kolumn-notify --exclude notifier --edges normal,build,dev";
/// The tests of the library alone, with all its features and with none, and the program.
const BUILDS: &[&str] = &[
    "--package kolumn-sql --all-features --edges normal,build,dev",
    "--package kolumn-sql --no-default-features --edges normal,build,dev",
    "--package broker --edges normal,build",
];
/// What takes minutes to build.
const ENGINE: &str = "datafusion";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(found: &str, whole: &str, expect: usize) {
        let below = BTreeSet::from(["a", "b"]);
        let faults = built_again(&features(found, &below), &features(whole, &below));
        assert_eq!(faults.len(), expect, "{faults:?}");
    }

    #[test]
    fn a_package_with_features_of_its_own_in_one_build_is_told() {
        check("a v1\tstd\nb v1\t (*)", "a v1\tstd (*)\nb v1\t", 0);
        check("a v1\tstd\n", "a v1\tstd,x\n", 1);
        check("a v1\tstd\n", "a v1\tstd\na v1\tstd,x\n", 0);
        check("a v1\t\nb v2\t\n", "a v1\t\n", 1);
    }

    #[test]
    fn what_does_not_lie_below_the_engine_is_built_as_often_as_it_likes() {
        check("c v1\tstd\n", "a v1\t\n", 0);
    }
}
