//! `cargo xtask bench`: builds the programs of a benchmark in the release profile and runs its driver.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{shell, tools, workspace::Workspace};

/// How near the broker is to the machine.
pub(crate) fn system(options: &[&str]) -> Result<(), String> {
    let workspace = Workspace::load()?;
    build(&workspace)?;
    drive(&workspace, Command::new(driver(&workspace, "system")).args(options))
}

/// How near SQL over topics is to its rivals on Parquet files.
pub(crate) fn sql(options: &[&str]) -> Result<(), String> {
    let workspace = Workspace::load()?;
    let python = rivals(&workspace)?;
    build(&workspace)?;
    drive(&workspace, Command::new(driver(&workspace, "sql")).arg("--python").arg(python).args(options))
}

/// Builds what the drivers start.
fn build(workspace: &Workspace) -> Result<(), String> {
    let built = ["build", "--release", "--package", "benches", "--bins", "--package", "broker"];
    shell::run(&mut shell::cargo(&workspace.root, &built))
}

fn driver(workspace: &Workspace, name: &str) -> PathBuf {
    workspace.target.join("release").join(name)
}

fn drive(workspace: &Workspace, command: &mut Command) -> Result<(), String> {
    shell::run(command.current_dir(&workspace.root))
}

/// A Python with the rivals and the client that asks the broker, in a virtual environment of its own. Kept until the list of
/// packages changes.
fn rivals(workspace: &Workspace) -> Result<PathBuf, String> {
    let list = workspace.root.join("benches/sql/requirements.txt");
    let wanted = read(&list)?;
    let folder = workspace.target.join("clients/venv-sql-benchmark");
    let (python, stamp) = (folder.join("bin/python"), folder.join("installed.txt"));
    if read(&stamp).is_ok_and(|installed| installed == wanted) && python.is_file() {
        return Ok(python);
    }
    // This one also brings Debian's package of virtual environments, if it is missing.
    tools::python(workspace)?;
    shell::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
    shell::run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(list))?;
    std::fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))?;
    Ok(python)
}

fn read(file: &Path) -> Result<String, String> {
    std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}
