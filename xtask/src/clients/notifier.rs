//! The notifier: S3 clients configure and feed it, and a Kafka consumer reads what it tells.

use super::{Needs, Program};
use crate::{shell, test::Tally, workspace::Workspace};

/// Builds the program in the dev profile and runs `notifier.py` with it.
pub(crate) fn run(workspace: &Workspace, tally: &mut Tally) -> Result<(), String> {
    shell::run(&mut shell::cargo(&workspace.root, &["build", "--package", "notifier"]))?;
    PROGRAM.run_on(&workspace.target.join("debug/notifier"), workspace, false, tally)
}

const PROGRAM: Program = Program { file: "notifier.py", needs: Needs::Storage, normal: &[], long: &[] };
