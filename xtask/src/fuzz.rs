//! The fuzz step: every target of `fuzz/` runs for some seconds, on the stable compiler and without sanitizers.

use std::process::Command;

use crate::{test::Tally, tools, workspace::Workspace};

/// Builds the targets and runs each for `seconds`. A crash is a failure, and its input is kept under the target folder.
pub(crate) fn smoke(workspace: &Workspace, seconds: u32, tally: &mut Tally) -> Result<(), String> {
    let targets = targets(workspace)?;
    let program = tools::cargo_fuzz(workspace)?;
    let build = workspace.target.join("fuzz");
    let cargo_fuzz = |words: &[&str]| {
        let mut command = Command::new(&program);
        command.current_dir(&workspace.root).env("CARGO_TARGET_DIR", &build).args(words);
        command
    };
    crate::shell::run(&mut cargo_fuzz(&["build", "--sanitizer", "none"]))?;
    let mut broken = Vec::new();
    for target in targets {
        let corpus = build.join("corpus").join(&target);
        let artefacts = build.join("artefacts").join(&target);
        for folder in [&corpus, &artefacts] {
            std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        let mut command = cargo_fuzz(&["run", "--sanitizer", "none", target.as_str()]);
        command.arg(&corpus).arg("--").arg(format!("-max_total_time={seconds}"));
        command.args(["-rss_limit_mb=2048", "-timeout=20", "-verbosity=0", "-print_final_stats=1"]);
        command.arg(format!("-artifact_prefix={}/", artefacts.display()));
        match crate::shell::run(&mut command) {
            Ok(()) => tally.passed += 1,
            Err(message) => {
                tally.failed += 1;
                broken.push(message);
            }
        }
    }
    if broken.is_empty() { Ok(()) } else { Err(broken.join("\n")) }
}

/// The names of the targets, which are the names of the files in `fuzz/fuzz_targets`.
fn targets(workspace: &Workspace) -> Result<Vec<String>, String> {
    let folder = workspace.root.join("fuzz/fuzz_targets");
    let entries = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| format!("{}: {error}", folder.display()))?.path();
        if path.extension().is_some_and(|extension| extension == "rs")
            && let Some(name) = path.file_stem()
        {
            names.push(name.to_string_lossy().into_owned());
        }
    }
    names.sort();
    if names.is_empty() { Err(format!("{}: no fuzz target", folder.display())) } else { Ok(names) }
}
