//! What `cargo metadata` and `git` know about this workspace: packages, their dependencies, files.

use std::{
    collections::{BTreeSet, HashMap},
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::shell;

/// The workspace as cargo resolves it.
#[derive(Debug)]
pub(crate) struct Workspace {
    /// The folder of the root manifest.
    pub(crate) root: PathBuf,
    /// Where cargo puts what it builds.
    pub(crate) target: PathBuf,
    /// The members, then every package that they pull in.
    pub(crate) packages: Vec<Package>,
}

/// One package of the dependency graph.
#[derive(Debug)]
pub(crate) struct Package {
    id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    /// The licence expression, if the package declares one.
    pub(crate) licence: Option<String>,
    /// Whether it is a member of this workspace.
    pub(crate) member: bool,
    pub(crate) manifest: PathBuf,
    /// The names of its dependencies of every kind, with the kind (`normal`, `dev`, `build`).
    pub(crate) dependencies: Vec<(String, String)>,
    /// The ids of the packages that it is built with, as cargo resolves them: no dependencies of tests.
    built_with: Vec<String>,
    pub(crate) features: Vec<String>,
    pub(crate) binaries: Vec<String>,
}

impl Workspace {
    /// Asks cargo about the workspace that this program was built from or is run in.
    pub(crate) fn load() -> Result<Self, String> {
        let here = std::env::current_dir().map_err(|error| format!("the current folder: {error}"))?;
        let text = shell::collect(&mut shell::cargo(&here, &["metadata", "--format-version", "1"]))?;
        let metadata: Value =
            serde_json::from_str(&text).map_err(|error| format!("the output of cargo metadata: {error}"))?;
        let members: Vec<&str> = strings(&metadata, "workspace_members");
        let mut packages: Vec<Package> =
            list(&metadata, "packages").iter().map(|package| Package::from_json(package, &members)).collect();
        let resolved = metadata.get("resolve").unwrap_or(&Value::Null);
        let mut edges: HashMap<&str, Vec<String>> =
            list(resolved, "nodes").iter().map(|node| (string(node, "id"), built_with(node))).collect();
        for package in &mut packages {
            package.built_with = edges.remove(package.id.as_str()).unwrap_or_default();
        }
        Ok(Self {
            root: PathBuf::from(string(&metadata, "workspace_root")),
            target: PathBuf::from(string(&metadata, "target_directory")),
            packages,
        })
    }

    /// The packages that live in this workspace.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| package.member)
    }

    /// The names of all packages that one is built with, at any distance, itself included.
    pub(crate) fn reached_from(&self, name: &str) -> BTreeSet<&str> {
        let by_id: HashMap<&str, &Package> =
            self.packages.iter().map(|package| (package.id.as_str(), package)).collect();
        let mut open: Vec<&Package> = self.packages.iter().filter(|package| package.name == name).collect();
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        while let Some(package) = open.pop() {
            if seen.insert(&package.id) {
                open.extend(package.built_with.iter().filter_map(|id| by_id.get(id.as_str())));
            }
        }
        seen.iter().filter_map(|id| by_id.get(id)).map(|package| package.name.as_str()).collect()
    }

    /// Every file that git tracks or would track, relative to the root, that exists.
    pub(crate) fn files(&self) -> Result<Vec<PathBuf>, String> {
        let mut git = std::process::Command::new("git");
        git.current_dir(&self.root).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
        let listed = shell::collect(&mut git)?;
        let mut files: Vec<PathBuf> = listed
            .split('\0')
            .filter(|name| !name.is_empty())
            .map(PathBuf::from)
            .filter(|file| self.root.join(file).is_file())
            .collect();
        files.sort();
        files.dedup();
        Ok(files)
    }

    /// The text of a file, or `None` for one that is not UTF-8.
    pub(crate) fn text(&self, file: &Path) -> Result<Option<String>, String> {
        let bytes =
            std::fs::read(self.root.join(file)).map_err(|error| format!("{}: {error}", file.display()))?;
        Ok(String::from_utf8(bytes).ok())
    }
}

impl Package {
    fn from_json(package: &Value, members: &[&str]) -> Self {
        let dependencies = list(package, "dependencies")
            .iter()
            .map(|dependency| {
                let kind = dependency.get("kind").and_then(Value::as_str).unwrap_or("normal");
                (string(dependency, "name").to_owned(), kind.to_owned())
            })
            .collect();
        let features = package.get("features").and_then(Value::as_object);
        let binaries = list(package, "targets")
            .iter()
            .filter(|target| strings(target, "kind").contains(&"bin"))
            .map(|target| string(target, "name").to_owned())
            .collect();
        Self {
            id: string(package, "id").to_owned(),
            name: string(package, "name").to_owned(),
            version: string(package, "version").to_owned(),
            licence: package.get("license").and_then(Value::as_str).map(str::to_owned),
            member: members.contains(&string(package, "id")),
            manifest: PathBuf::from(string(package, "manifest_path")),
            dependencies,
            built_with: Vec::new(),
            features: features.map(|map| map.keys().cloned().collect()).unwrap_or_default(),
            binaries,
        }
    }
}

/// The ids of what a node of the resolved graph is built with.
fn built_with(node: &Value) -> Vec<String> {
    let of_a_build = |dependency: &&Value| {
        list(dependency, "dep_kinds")
            .iter()
            .any(|kind| kind.get("kind").and_then(Value::as_str) != Some("dev"))
    };
    list(node, "deps")
        .iter()
        .filter(of_a_build)
        .map(|dependency| string(dependency, "pkg").to_owned())
        .collect()
}

fn string<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn strings<'v>(value: &'v Value, key: &str) -> Vec<&'v str> {
    list(value, key).iter().filter_map(Value::as_str).collect()
}
