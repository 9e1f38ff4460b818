//! Writes `crates/kafka-wire/src/messages` from the schemas, or checks that it is up to date.

mod ir;
mod rust;
mod schema;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Generates the messages. With `check`, changes nothing and fails if a file differs from what would be written.
pub(crate) fn run(check: bool) -> Result<(), String> {
    let root = workspace_root()?;
    let messages = root.join("crates/kafka-wire/src/messages");
    let files = generate(&root)?;
    let mut stale = Vec::new();
    for (name, text) in &files {
        let path = messages.join(name);
        if fs::read_to_string(&path).ok().as_ref() == Some(text) {
            continue;
        }
        stale.push(name.clone());
        if !check {
            write(&path, text)?;
        }
    }
    for name in existing(&messages)? {
        if !files.contains_key(&name) {
            if !check {
                let path = messages.join(&name);
                fs::remove_file(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            }
            stale.push(name);
        }
    }
    if check && !stale.is_empty() {
        return Err(format!("run `cargo xtask codegen`: stale are {}", stale.join(", ")));
    }
    Ok(())
}

/// File names and their contents, formatted.
fn generate(root: &Path) -> Result<BTreeMap<String, String>, String> {
    let schemas = schema::read_all(&root.join("crates/kafka-wire/schemas"))?;
    let mut files = BTreeMap::new();
    for message in schemas.iter().flat_map(|file| &file.messages) {
        let text = rust::message(message)?;
        files.insert(format!("{}.rs", rust::module_name(&message.name)), format_rust(root, &text)?);
    }
    files.insert("apis.rs".to_owned(), format_rust(root, &rust::apis(&schemas))?);
    files.insert("mod.rs".to_owned(), format_rust(root, &rust::index(&schemas))?);
    Ok(files)
}

fn format_rust(root: &Path, text: &str) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("rustfmt: {error}");
    let mut rustfmt = Command::new("rustfmt")
        .args(["--edition", "2024", "--config-path"])
        .arg(root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    if let Some(mut stdin) = rustfmt.stdin.take() {
        stdin.write_all(text.as_bytes()).map_err(failed)?;
    }
    let output = rustfmt.wait_with_output().map_err(failed)?;
    if !output.status.success() {
        return Err(format!("rustfmt refused generated code:\n{text}"));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("rustfmt: {error}"))
}

fn existing(directory: &Path) -> Result<Vec<String>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", directory.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        names.push(entry.map_err(failed)?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

fn workspace_root() -> Result<PathBuf, String> {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().map(Path::to_owned).ok_or_else(|| "xtask has no parent directory".to_owned())
}

#[cfg(test)]
mod tests {
    #[test]
    fn generated_messages_are_up_to_date() {
        super::run(true).unwrap();
    }
}
