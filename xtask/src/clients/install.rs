//! Installs the foreign clients below the target folder, from what is checked in below `tests/clients`.
//!
//! A folder there that has a lock file is a client's program. What was installed is kept until one of its files changes.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
    time::Instant,
};

use crate::{shell, tools, workspace::Workspace};

/// Where [`all`] installs.
pub(crate) fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target.join("clients")
}

/// Installs all clients that are missing or have changed, two at a time, and returns how many there are.
pub(crate) fn all(workspace: &Workspace) -> Result<u64, String> {
    tools::debian(PROGRAMS)?;
    // This one also brings Debian's package of virtual environments, if it is missing.
    tools::python(workspace)?;
    let clients = checked_in(workspace)?;
    let next = AtomicUsize::new(0);
    let work = || {
        let mut failures = Vec::new();
        while let Some(client) = clients.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(failure) = client.install(workspace) {
                failures.push(format!("{} cannot be installed: {failure}", client.home.display()));
            }
        }
        failures
    };
    let failures: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        let panicked = |_| vec!["an installing thread panicked".to_owned()];
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_else(panicked)).collect()
    });
    if failures.is_empty() {
        u64::try_from(clients.len()).map_err(|error| error.to_string())
    } else {
        Err(failures.join("\n"))
    }
}

/// Installs the one library of Python that this folder of `tests/clients` has a lock file of, if it is missing or has
/// changed. Returns the interpreter that can import it.
pub(crate) fn python(workspace: &Workspace, library: &str) -> Result<PathBuf, String> {
    // This one also brings Debian's package of virtual environments, if it is missing.
    tools::python(workspace)?;
    let sources = workspace.root.join(SOURCES).join(library);
    let clients = checked_in(workspace)?;
    let client = clients
        .iter()
        .find(|client| client.kind == Kind::Python && client.sources == sources)
        .ok_or_else(|| format!("{}: no lock file", sources.display()))?;
    client.install(workspace)?;
    Ok(client.home.join("bin/python"))
}

/// How a client is installed, in the order in which they start: the slow ones first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Rust,
    Go,
    Java,
    Node,
    Python,
}

/// One version of one client library.
#[derive(Debug)]
struct Client {
    kind: Kind,
    /// The folder of `tests/clients` that has its program.
    sources: PathBuf,
    /// The file that names exact versions.
    lock: PathBuf,
    /// Where it is installed.
    home: PathBuf,
}

impl Client {
    /// The client that a file of `tests/clients` is the lock of, if it is one.
    fn locked_by(file: &Path, workspace: &Workspace) -> Option<Self> {
        let library = file.strip_prefix(SOURCES).ok()?.parent()?.to_str()?;
        let name = file.file_name()?.to_str()?;
        let version = |before: &str, after: &str| name.strip_prefix(before)?.strip_suffix(after);
        let (kind, home) = if let Some(version) = version("requirements-", ".txt") {
            (Kind::Python, format!("venv-{library}-{version}"))
        } else if let Some(version) = version("pom-", ".xml") {
            (Kind::Java, format!("{library}/{version}"))
        } else {
            let kind = match name {
                "Cargo.lock" => Kind::Rust,
                "go.sum" => Kind::Go,
                "package-lock.json" => Kind::Node,
                _ => return None,
            };
            (kind, library.to_owned())
        };
        Some(Self {
            kind,
            sources: workspace.root.join(SOURCES).join(library),
            lock: workspace.root.join(file),
            home: folder(workspace).join(home),
        })
    }

    /// Installs it, unless that was done with the same files.
    fn install(&self, workspace: &Workspace) -> Result<(), String> {
        let stamp = self.home.join("installed.txt");
        let wanted = self.stamp(workspace)?;
        if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) && self.is_there() {
            return Ok(());
        }
        let started = Instant::now();
        std::fs::create_dir_all(&self.home).map_err(|error| format!("{}: {error}", self.home.display()))?;
        match self.kind {
            Kind::Rust => self.rust(),
            Kind::Go => self.go(),
            Kind::Java => self.java(),
            Kind::Node => self.node(),
            Kind::Python => self.python(),
        }?;
        std::fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))?;
        println!("{} took {:.1} s", self.home.display(), started.elapsed().as_secs_f64());
        Ok(())
    }

    /// Everything that an installed client depends on. Python's programs run from where they are checked in.
    fn stamp(&self, workspace: &Workspace) -> Result<String, String> {
        let mut files = vec![self.lock.clone()];
        if self.kind != Kind::Python {
            let all = workspace.files()?.into_iter().map(|file| workspace.root.join(file));
            files.extend(all.filter(|file| file.starts_with(&self.sources)));
        }
        let mut stamp = String::new();
        for file in files {
            let text =
                std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
            stamp.extend([&*file.to_string_lossy(), "\n", &text]);
        }
        Ok(stamp)
    }

    /// Whether what would be run is there: a virtual environment, for one, dies with the Python that it was made of.
    fn is_there(&self) -> bool {
        let program = match self.kind {
            Kind::Rust => self.home.join("debug").join(self.name()),
            Kind::Go => self.home.join(self.name()),
            Kind::Java => self.home.join("classes/Program.class"),
            Kind::Node => self.home.join("program.mjs"),
            Kind::Python => self.home.join("bin/python"),
        };
        program.is_file()
    }

    /// The name of the folder with the program, which a compiled program has as well.
    fn name(&self) -> &OsStr {
        self.sources.file_name().unwrap_or_default()
    }

    fn rust(&self) -> Result<(), String> {
        let mut cargo = shell::cargo(&self.sources, &["build", "--locked", "--quiet"]);
        shell::run_quietly(cargo.env("CARGO_TARGET_DIR", &self.home))
    }

    fn go(&self) -> Result<(), String> {
        let mut go = Command::new("go");
        go.current_dir(&self.sources).env("CGO_ENABLED", "0").args(["build", "-trimpath", "-o"]);
        shell::run_quietly(go.arg(self.home.join(self.name())).arg("."))
    }

    /// Maven copies the jars; the program is then compiled against them.
    fn java(&self) -> Result<(), String> {
        let (jars, classes) = (self.home.join("lib"), self.home.join("classes"));
        empty(&classes)?;
        tools::jars(&self.lock, &jars)?;
        let mut javac = Command::new("javac");
        javac.args(["-Xlint:all", "-Werror", "--class-path"]).arg(jars.join("*")).arg("-d").arg(classes);
        shell::run_quietly(javac.args(self.programs("java")?))
    }

    /// Node looks for packages beside the program, so the program is copied.
    fn node(&self) -> Result<(), String> {
        empty(&self.home)?;
        for extension in ["json", "mjs"] {
            for file in self.programs(extension)? {
                let copy = self.home.join(file.file_name().unwrap_or_default());
                std::fs::copy(&file, &copy).map_err(|error| format!("{}: {error}", copy.display()))?;
            }
        }
        let mut npm = Command::new("npm");
        npm.current_dir(&self.home);
        shell::run_quietly(npm.args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"]))
    }

    fn python(&self) -> Result<(), String> {
        let python = self.home.join("bin/python");
        shell::run_quietly(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&self.home))?;
        let mut pip = Command::new(python);
        shell::run_quietly(pip.args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(&self.lock))
    }

    /// The files of the program that have this extension, in order.
    fn programs(&self, extension: &str) -> Result<Vec<PathBuf>, String> {
        let listed = std::fs::read_dir(&self.sources)
            .map_err(|error| format!("{}: {error}", self.sources.display()))?;
        let mut files: Vec<PathBuf> = listed
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .filter(|path| path.extension().is_some_and(|found| found == extension))
            .collect();
        files.sort();
        Ok(files)
    }
}

/// The clients that `tests/clients` has programs for.
fn checked_in(workspace: &Workspace) -> Result<Vec<Client>, String> {
    let files = workspace.files()?;
    let mut clients: Vec<Client> =
        files.iter().filter_map(|file| Client::locked_by(file, workspace)).collect();
    clients.sort_by_key(|client| client.kind);
    if clients.is_empty() { Err(format!("no client has its lock file below {SOURCES}")) } else { Ok(clients) }
}

fn empty(folder: &Path) -> Result<(), String> {
    let told = |error: std::io::Error| format!("{}: {error}", folder.display());
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(told)?;
    }
    std::fs::create_dir_all(folder).map_err(told)
}

const SOURCES: &str = "tests/clients";
const AT_ONCE: usize = 2;
/// What builds and runs clients.
const PROGRAMS: &[&str] = &["kcat", "strace", "go", "node", "npm", "javac", "mvn"];

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace() -> Workspace {
        Workspace { root: "/w".into(), target: "/t".into(), packages: Vec::new() }
    }

    #[track_caller]
    fn check(file: &str, expect: Option<(Kind, &str)>) {
        let found = Client::locked_by(Path::new(file), &workspace());
        let found = found.as_ref().map(|client| (client.kind, client.home.to_str().unwrap()));
        assert_eq!(found, expect, "{file}");
    }

    #[test]
    fn a_lock_file_below_the_clients_names_a_client() {
        check("tests/clients/sarama/go.sum", Some((Kind::Go, "/t/clients/sarama")));
        check("tests/clients/rskafka/Cargo.lock", Some((Kind::Rust, "/t/clients/rskafka")));
        check("tests/clients/kafkajs/package-lock.json", Some((Kind::Node, "/t/clients/kafkajs")));
        check("tests/clients/java/pom-4.4.0.xml", Some((Kind::Java, "/t/clients/java/4.4.0")));
        check(
            "tests/clients/confluent/requirements-2.8.2.txt",
            Some((Kind::Python, "/t/clients/venv-confluent-2.8.2")),
        );
    }

    #[test]
    fn the_doors_of_sql_are_installed_like_a_client() {
        let home = "/t/clients/venv-doors-adbc-1.13.0";
        check("tests/clients/doors/requirements-adbc-1.13.0.txt", Some((Kind::Python, home)));
    }

    #[test]
    fn other_files_are_no_clients() {
        check("tests/clients/sarama/go.mod", None);
        check("tests/clients/java/Program.java", None);
        check("Cargo.lock", None);
        check("fuzz/Cargo.lock", None);
    }
}
