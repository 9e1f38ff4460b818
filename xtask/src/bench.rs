//! `cargo xtask bench system`: builds the system benchmark's programs in the release profile and runs its driver.

use std::process::Command;

use crate::{shell, workspace::Workspace};

/// Builds what the driver starts, then runs it with `options`.
pub(crate) fn system(options: &[&str]) -> Result<(), String> {
    let workspace = Workspace::load()?;
    let built = ["build", "--release", "--package", "benches", "--bins", "--package", "broker"];
    shell::run(&mut shell::cargo(&workspace.root, &built))?;
    let driver = workspace.target.join("release/system");
    shell::run(Command::new(driver).current_dir(&workspace.root).args(options))
}
