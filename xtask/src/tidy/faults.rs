//! `docs/known-faults.md`: each fault that comparable systems had is answered by a test, a reason, or a missing feature.

use std::{collections::HashSet, path::Path};

use crate::workspace::Workspace;

/// Checks that every id of [`ROWS`] has exactly one row, and that each row's answer is one of the three kinds.
pub(super) fn check(workspace: &Workspace) -> Result<Vec<String>, String> {
    let text = workspace.text(Path::new(DOCUMENT))?.unwrap_or_default();
    let functions = functions(workspace)?;
    let mut faults = judge(&text, &|name| functions.contains(name));
    let rows: Vec<&str> = rows(&text).map(|(id, _)| id).collect();
    for id in ROWS.split_whitespace() {
        match rows.iter().filter(|row| **row == id).count() {
            1 => {}
            0 => faults.push(format!("{DOCUMENT}: no row `{id}`")),
            many => faults.push(format!("{DOCUMENT}: {many} rows `{id}`")),
        }
    }
    Ok(faults)
}

/// The faults of the rows themselves; `exists` says whether a test of that name is in the tree.
fn judge(text: &str, exists: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut faults = Vec::new();
    for (id, answer) in rows(text) {
        let reason = ["cannot occur: ", "later: "].iter().find_map(|word| answer.split_once(word));
        let tests: Vec<&str> = answer.split('`').skip(1).step_by(2).collect();
        match reason {
            Some((_, reason)) if reason.split_whitespace().count() < 2 => {
                faults.push(format!("{DOCUMENT}: row {id}: the reason says nothing"));
            }
            None if tests.is_empty() => {
                faults.push(format!("{DOCUMENT}: row {id}: neither a test nor a reason"));
            }
            // What is missing may be half of a row: the tests of the other half are there all the same.
            _ => faults.extend(
                tests
                    .iter()
                    .filter(|name| !exists(name))
                    .map(|name| format!("{DOCUMENT}: row {id}: no test `{name}` in the tree")),
            ),
        }
    }
    faults
}

/// The id and the last column of each row of the tables.
fn rows(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| {
        let mut columns = line.strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim);
        let id = columns.next()?;
        let answer = columns.next_back()?;
        let numbered = id.chars().next().is_some_and(|first| first.is_ascii_uppercase())
            && id.chars().nth(1).is_some_and(|second| second.is_ascii_digit());
        numbered.then_some((id, answer))
    })
}

/// The names of the functions in all Rust files that are, or contain, tests, and in the foreign clients' programs.
fn functions(workspace: &Workspace) -> Result<HashSet<String>, String> {
    let mut names = HashSet::new();
    for file in workspace.files()? {
        let word = match file.extension().and_then(|extension| extension.to_str()) {
            Some("rs") => "fn ",
            Some("py") => "def ",
            _ => continue,
        };
        let text = workspace.text(&file)?.unwrap_or_default();
        for rest in text.split(word).skip(1) {
            let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
            names.insert(name.to_owned());
        }
    }
    Ok(names)
}

const DOCUMENT: &str = "docs/known-faults.md";
const ROWS: &str = "A1 A2 A4 A5 A7 A8 A10 A11 A13 A14 A16 A17 A19 A20 A22 A23 A25 A26 \
     B1 B2 B4 B5 B7 B8 B10 B11 B13 B14 B16 B17 B19 B20 B22 B23 B25 B26 C1 C2 C4 C5 C7 C8 C10 C11 C13 C14 C16 C17 \
     D1 D2 D4 D5 D7 D8 D10 D11 D13 D14 D16 D17 D19 D20 D22 D23 D25 \
     E1 E2 E4 E5 E7 E8 E10 E11 E13 E14 E16 E17 E19 E20 E22 E23 F1 F2 F4 F5 F7 G1 G2 H1 H2 H10 H11 I1 I2 I4 I5";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(row: &str, faults: usize) {
        let table = format!("| id | fault | answer |\n| --- | --- | --- |\n{row}\n");
        let found = judge(&table, &|name| name == "a_count_is_bounded");
        assert_eq!(found.len(), faults, "{found:?}");
    }

    #[test]
    fn a_row_is_answered_by_a_test_a_reason_or_a_missing_feature() {
        check("| A1 | counts | `a_count_is_bounded` |", 0);
        check("| A1 | counts | `a_count_is_trusted` |", 1);
        check("| A1 | counts | `a_count_is_bounded`, `another` |", 1);
        check("| A1 | counts | cannot occur: there are no counts |", 0);
        check("| A1 | counts | later: consumer groups |", 0);
        check("| A1 | counts | `a_count_is_bounded`; later: consumer groups |", 0);
        check("| A1 | counts | `a_count_is_trusted`; later: consumer groups |", 1);
        check("| A1 | counts | later: |", 1);
        check("| A1 | counts | we are careful |", 1);
    }
}
