//! `cargo xtask tidy`: checks of this workspace that no compiler makes.
//!
//! Each check returns the faults it found, as lines that name a file; the command prints all and fails on any.

mod arrows;
mod builds;
mod documents;
mod faults;
mod licences;
mod sources;

use crate::workspace::Workspace;

/// Runs every check.
pub(crate) fn run() -> Result<(), String> {
    let workspace = Workspace::load()?;
    let mut found = arrows::check(&workspace)?;
    found.extend(builds::check(&workspace)?);
    found.extend(sources::check(&workspace)?);
    found.extend(licences::check(&workspace));
    found.extend(documents::check(&workspace)?);
    found.extend(faults::check(&workspace)?);
    if found.is_empty() { Ok(()) } else { Err(format!("tidy: {}\n{}", found.len(), found.join("\n"))) }
}
