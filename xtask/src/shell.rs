//! Running other programs: with their output passed on, scanned line by line, or collected.

use std::{
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, Stdio},
};

/// A cargo command in the workspace's root, with the cargo that runs this program.
pub(crate) fn cargo(root: &Path, arguments: &[&str]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(root).args(arguments);
    command
}

/// Runs a program whose output goes where ours goes; an exit code other than 0 is an error.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let shown = shown(command);
    println!("$ {shown}");
    let status = command.stdin(Stdio::null()).status().map_err(|error| format!("`{shown}`: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{shown}` failed: {status}")) }
}

/// Runs a program whose output matters only if it fails: then its last lines are in the error.
pub(crate) fn run_quietly(command: &mut Command) -> Result<(), String> {
    let shown = shown(command);
    println!("$ {shown}");
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("`{shown}`: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let told = [output.stdout, output.stderr].concat();
    let told = String::from_utf8_lossy(&told);
    let lines: Vec<&str> = told.lines().collect();
    let last = lines.get(lines.len().saturating_sub(LINES_TOLD)..).unwrap_or_default();
    Err(format!("`{shown}` failed: {}\n{}", output.status, last.join("\n")))
}

/// Like [`run`], but every line of the program's standard output is printed and given to `line`.
pub(crate) fn run_scanned(command: &mut Command, mut line: impl FnMut(&str)) -> Result<(), String> {
    let shown = shown(command);
    println!("$ {shown}");
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("`{shown}`: {error}"))?;
    if let Some(output) = child.stdout.take() {
        for text in BufReader::new(output).split(b'\n') {
            let text = text.map_err(|error| format!("output of `{shown}`: {error}"))?;
            let text = String::from_utf8_lossy(&text);
            println!("{text}");
            line(&text);
        }
    }
    let status = child.wait().map_err(|error| format!("`{shown}`: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{shown}` failed: {status}")) }
}

/// Runs a program and returns what it wrote to its standard output.
pub(crate) fn collect(command: &mut Command) -> Result<String, String> {
    let shown = shown(command);
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("`{shown}`: {error}"))?;
    if !output.status.success() {
        return Err(format!("`{shown}` failed: {}", output.status));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("output of `{shown}`: {error}"))
}

/// Whether a program of this name can be run at all.
pub(crate) fn exists(program: &str) -> bool {
    let Some(path) = std::env::var_os("PATH") else { return false };
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn shown(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|word| word.to_string_lossy().into_owned()));
    if let Some(first) = words.first_mut()
        && let Some(name) = Path::new(first.as_str()).file_name()
    {
        *first = name.to_string_lossy().into_owned();
    }
    words.join(" ")
}

/// How much of a failed program's output an error repeats.
const LINES_TOLD: usize = 30;
