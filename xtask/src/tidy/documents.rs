//! What the documents must name: every direct dependency with its reason, and the files that a reader expects.

use std::path::{Path, PathBuf};

use crate::workspace::Workspace;

/// Checks that the expected files exist and that `docs/dependencies.md` has a row for each workspace dependency.
pub(super) fn check(workspace: &Workspace) -> Result<Vec<String>, String> {
    let mut faults: Vec<String> = expected(workspace)
        .iter()
        .filter(|file| !workspace.root.join(file).is_file())
        .map(|file| format!("{}: is missing", file.display()))
        .collect();
    let manifest = workspace.text(Path::new("Cargo.toml"))?.unwrap_or_default();
    let reasons = workspace.text(Path::new("docs/dependencies.md"))?.unwrap_or_default();
    for name in workspace_dependencies(&manifest) {
        if !name.starts_with("kolumn-") && !reasons.contains(&format!("| `{name}` |")) {
            faults.push(format!("docs/dependencies.md: no row `{name}`"));
        }
    }
    Ok(faults)
}

/// The documents of the workspace and of each library.
fn expected(workspace: &Workspace) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = ROOT_FILES.iter().map(PathBuf::from).collect();
    for package in workspace.members() {
        let Some(folder) =
            package.manifest.parent().and_then(|folder| folder.strip_prefix(&workspace.root).ok())
        else {
            continue;
        };
        if folder.starts_with("crates") {
            files.extend(["README.md", "CHANGELOG.md"].map(|name| folder.join(name)));
        }
    }
    files
}

/// The keys of the table `[workspace.dependencies]`.
fn workspace_dependencies(manifest: &str) -> Vec<&str> {
    let lines = manifest.lines().skip_while(|line| line.trim() != "[workspace.dependencies]").skip(1);
    lines
        .take_while(|line| !line.starts_with('['))
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(" =").map(|(name, _)| name.trim()))
        .collect()
}

const ROOT_FILES: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "LICENSE",
    "docs/glossary.md",
    "docs/dependencies.md",
    "docs/known-faults.md",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dependencies_are_the_keys_of_their_table() {
        let manifest = "[workspace]\na = 1\n[workspace.dependencies]\n# data\nbytes = \"1\"\nzstd = { version = \"0\" }\n[profile]\nb = 1\n";
        assert_eq!(workspace_dependencies(manifest), ["bytes", "zstd"]);
    }
}
