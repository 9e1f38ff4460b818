//! Where a suite is kept: downloads, builds, logs and what was seen, all below the target folder.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{shell, tools, workspace::Workspace};

/// The folders of one suite.
#[derive(Debug)]
pub(super) struct Home<'w> {
    pub(super) workspace: &'w Workspace,
    name: &'static str,
    /// Held as long as this lives: two runs of one suite would take each other's folders away.
    _lock: File,
}

impl<'w> Home<'w> {
    /// Makes the suite's folder, and empties that of its logs.
    pub(super) fn new(workspace: &'w Workspace, name: &'static str) -> Result<Self, String> {
        let folder = workspace.target.join("suites");
        make(&folder)?;
        let file = folder.join(format!("{name}.lock"));
        let lock = File::create(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        lock.try_lock()
            .map_err(|error| format!("another run of {name} holds {}: {error}", file.display()))?;
        let home = Self { workspace, name, _lock: lock };
        let logs = home.folder().join("logs");
        if logs.exists() {
            std::fs::remove_dir_all(&logs).map_err(|error| format!("{}: {error}", logs.display()))?;
        }
        make(&logs)?;
        Ok(home)
    }

    /// What the suite is downloaded and built in.
    pub(super) fn folder(&self) -> PathBuf {
        self.workspace.target.join("suites").join(self.name)
    }

    /// What is checked in for all suites.
    pub(super) fn checked_in(&self) -> PathBuf {
        self.workspace.root.join("tests/suites")
    }

    /// The list of what to expect.
    pub(super) fn list(&self) -> PathBuf {
        self.checked_in().join(format!("{}.txt", self.name))
    }

    /// The file for a run's output.
    pub(super) fn log(&self, id: &str) -> Result<PathBuf, String> {
        let plain: String =
            id.chars().map(|letter| if letter.is_alphanumeric() { letter } else { '_' }).collect();
        let folder = self.folder().join("logs");
        make(&folder)?;
        Ok(folder.join(plain + ".log"))
    }

    /// An empty folder for a broker.
    pub(super) fn scratch(&self) -> Result<PathBuf, String> {
        let folder = self.folder().join("broker");
        if folder.exists() {
            std::fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        make(&folder)?;
        Ok(folder)
    }

    /// Writes a file into the suite's folder.
    pub(super) fn keep(&self, name: &str, text: &str) -> Result<(), String> {
        let file = self.folder().join(name);
        std::fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))
    }

    /// An error unless a file of the suite's folder is the one that was chosen once.
    pub(super) fn checksum(&self, name: &str, sha256: &str) -> Result<(), String> {
        let found = shell::collect(Command::new("sha256sum").current_dir(self.folder()).arg(name))?;
        if found.split_whitespace().next() == Some(sha256) {
            return Ok(());
        }
        Err(format!("`{name}` has another checksum than `{sha256}`: {found}"))
    }

    /// Does `work` in the suite's emptied folder, unless it was done before under the same `stamp`.
    pub(super) fn once(
        &self,
        stamp: &str,
        work: impl FnOnce(&Path) -> Result<(), String>,
    ) -> Result<(), String> {
        let (folder, file) = (self.folder(), self.folder().join("ready.txt"));
        if std::fs::read_to_string(&file).is_ok_and(|text| text == stamp) {
            return Ok(());
        }
        if folder.exists() {
            std::fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        make(&folder)?;
        work(&folder)?;
        self.keep("ready.txt", stamp)
    }
}

/// Makes an empty virtual environment of Python.
pub(super) fn virtual_environment(folder: &Path) -> Result<(), String> {
    tools::debian(&["python3"])?;
    let make = || shell::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder));
    make().or_else(|_| {
        packages(&["python3-venv"])?;
        make()
    })
}

/// Installs the Debian packages of the header files that are missing.
pub(super) fn headers(wanted: &[(&str, &str)]) -> Result<(), String> {
    let missing: Vec<&str> = wanted
        .iter()
        .filter(|(header, _)| !Path::new("/usr/include").join(header).is_file())
        .map(|(_, package)| *package)
        .collect();
    if missing.is_empty() { Ok(()) } else { packages(&missing) }
}

fn packages(names: &[&str]) -> Result<(), String> {
    shell::run(tools::apt().args(["update", "-qq"]))?;
    shell::run(tools::apt().args(["install", "-qq", "--yes", "--no-install-recommends"]).args(names))
}

/// How many jobs a build may run at a time.
pub(super) fn jobs() -> String {
    std::thread::available_parallelism().map_or(1, usize::from).to_string()
}

fn make(folder: &Path) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}
