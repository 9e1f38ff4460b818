//! The programs that the test command needs and brings itself: foreign clients, `strace`, `valgrind`, `cargo-fuzz`.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    shell,
    workspace::{Package, Workspace},
};

/// Installs Debian packages for the programs that are missing; as root, or with `sudo`.
pub(crate) fn debian(programs: &[&str]) -> Result<(), String> {
    let missing: Vec<&str> = programs.iter().copied().filter(|program| !shell::exists(program)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let packages = missing.iter().map(|program| package_of(program));
    shell::run(apt().args(["update", "-qq"]))?;
    shell::run(apt().args(["install", "-qq", "--yes", "--no-install-recommends"]).args(packages))?;
    match missing.iter().find(|program| !shell::exists(program)) {
        None => Ok(()),
        Some(program) => Err(format!("`{program}` is still missing after apt-get installed its package")),
    }
}

/// The package that has a program; most are named after it.
fn package_of(program: &str) -> &str {
    PACKAGES.iter().find(|(named, _)| *named == program).map_or(program, |(_, package)| package)
}

/// A Python with kafka-python and its codecs, in a virtual environment of its own. Returns the interpreter.
pub(crate) fn python(workspace: &Workspace) -> Result<PathBuf, String> {
    let folder = workspace.target.join("clients/venv");
    let python = folder.join("bin/python");
    let stamp = folder.join("installed.txt");
    let wanted = PYTHON_PACKAGES.join("\n");
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) && python.is_file() {
        return Ok(python);
    }
    if !shell::exists("python3") {
        debian(&["python3"])?;
    }
    let made = shell::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder));
    if made.is_err() {
        shell::run(apt().args(["update", "-qq"]))?;
        shell::run(apt().args(["install", "-qq", "--yes", "--no-install-recommends", "python3-venv"]))?;
        shell::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
    }
    shell::run(Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(PYTHON_PACKAGES))?;
    std::fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))?;
    Ok(python)
}

/// The jars that a project of Maven names, with all that they need, in a folder that has nothing else.
pub(crate) fn jars(project: &Path, folder: &Path) -> Result<(), String> {
    let told = |error: std::io::Error| format!("{}: {error}", folder.display());
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(told)?;
    }
    std::fs::create_dir_all(folder).map_err(told)?;
    let mut maven = Command::new("mvn");
    maven.args(["--quiet", "--batch-mode", "--file"]).arg(project).arg(COPY_JARS);
    shell::run_quietly(maven.arg(format!("-DoutputDirectory={}", folder.display())))
}

/// `cargo-fuzz` of the pinned version, below the target folder. Returns the program.
pub(crate) fn cargo_fuzz(workspace: &Workspace) -> Result<PathBuf, String> {
    let folder = workspace.target.join("tools").join(format!("cargo-fuzz-{CARGO_FUZZ_VERSION}"));
    let program = folder.join("bin/cargo-fuzz");
    if !program.is_file() {
        let build = workspace.target.join("tools/build");
        let arguments =
            ["install", "cargo-fuzz", "--locked", "--version", CARGO_FUZZ_VERSION, "--debug", "--root"];
        shell::run(shell::cargo(Path::new("/"), &arguments).arg(&folder).env("CARGO_TARGET_DIR", build))?;
    }
    Ok(program)
}

/// The dev-profile broker that the foreign clients talk to.
pub(crate) fn broker(workspace: &Workspace) -> Result<PathBuf, String> {
    let built =
        workspace.members().any(|package: &Package| package.binaries.iter().any(|name| name == "broker"));
    if !built {
        return Err("no member of the workspace has a binary called `broker`".to_owned());
    }
    shell::run(&mut shell::cargo(&workspace.root, &["build", "--package", "broker"]))?;
    Ok(workspace.target.join("debug/broker"))
}

/// `apt-get`; as root, or with `sudo`.
pub(crate) fn apt() -> Command {
    let mut command = if shell::exists("sudo") && std::env::var("USER").is_ok_and(|user| user != "root") {
        let mut sudo = Command::new("sudo");
        sudo.args(["-n", "apt-get"]);
        sudo
    } else {
        Command::new("apt-get")
    };
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command
}

/// Programs whose packages have other names.
const PACKAGES: &[(&str, &str)] = &[
    ("go", "golang-go"),
    ("node", "nodejs"),
    ("javac", "default-jdk-headless"),
    ("mvn", "maven"),
    ("psql", "postgresql-client"),
    ("taskset", "util-linux"),
    ("perf", "linux-perf"),
];
const PYTHON_PACKAGES: &[&str] = &[
    "kafka-python==3.0.12",
    "crc32c==2.9.post0",
    "cramjam==2.14.0",
    "lz4==4.4.5",
    "python-snappy==0.7.3",
    "zstandard==0.25.0",
];
const COPY_JARS: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies";
const CARGO_FUZZ_VERSION: &str = "0.13.2";
