//! `cargo xtask bench`: builds the programs of a benchmark in the release profile and runs its driver, or pictures where the
//! broker's time goes.

pub(crate) mod flames;
pub(crate) mod rivals;

use std::{path::PathBuf, process::Command};

use crate::{shell, workspace::Workspace};

/// How near the broker is to the machine, and how far from its rivals. With `--without-rivals` nothing is installed, and the
/// sides and loads that need it are left out; all other options are the driver's.
pub(crate) fn system(options: &[&str]) -> Result<(), String> {
    let workspace = Workspace::load()?;
    let (with_rivals, options) = without_rivals(options);
    let mut command = Command::new(driver(&workspace, "system"));
    if with_rivals {
        command.arg("--kafka-classpath").arg(rivals::kafka(&workspace)?);
        command.arg("--tansu").arg(rivals::tansu(&workspace)?);
        command.arg("--load").arg(rivals::load(&workspace)?);
    }
    build(&workspace)?;
    drive(&workspace, command.args(options))
}

/// How near SQL over topics is to its rivals on Parquet files.
pub(crate) fn sql(options: &[&str]) -> Result<(), String> {
    let workspace = Workspace::load()?;
    let python = rivals::sql(&workspace)?;
    build(&workspace)?;
    drive(&workspace, Command::new(driver(&workspace, "sql")).arg("--python").arg(python).args(options))
}

/// Whether rivals take part, and the options of the driver.
fn without_rivals<'o>(options: &[&'o str]) -> (bool, Vec<&'o str>) {
    let of_driver: Vec<&str> = options.iter().copied().filter(|option| *option != WITHOUT_RIVALS).collect();
    (of_driver.len() == options.len(), of_driver)
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

/// For a machine without a network.
const WITHOUT_RIVALS: &str = "--without-rivals";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_driver_is_given_all_options_but_our_own() {
        assert_eq!(without_rivals(&["--quick", "--rounds", "3"]), (true, vec!["--quick", "--rounds", "3"]));
        assert_eq!(without_rivals(&["--quick", "--without-rivals"]), (false, vec!["--quick"]));
        assert_eq!(without_rivals(&[]), (true, vec![]));
    }
}
