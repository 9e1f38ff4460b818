//! The licences of every package in the dependency graph, against a list of those that may be linked in.

use crate::workspace::Workspace;

/// Every package must offer at least one way to use it under the licences of [`ALLOWED`].
pub(super) fn check(workspace: &Workspace) -> Vec<String> {
    let mut faults = Vec::new();
    for package in &workspace.packages {
        let fits = package.licence.as_deref().is_some_and(|licence| allows(&tokens(licence)));
        if !fits {
            let licence = package.licence.as_deref().unwrap_or("none");
            faults.push(format!("{} {}: licence `{licence}` is not allowed", package.name, package.version));
        }
    }
    faults
}

/// ```text
/// expression => term ("OR" term)*      term => factor ("AND" factor)*
/// factor     => name ["WITH" exception] | "(" expression ")"
/// ```
fn allows(tokens: &[String]) -> bool {
    let mut parser = Parser { tokens, next: 0 };
    let fits = parser.expression();
    fits && parser.next == tokens.len()
}

struct Parser<'t> {
    tokens: &'t [String],
    next: usize,
}

impl Parser<'_> {
    fn expression(&mut self) -> bool {
        let mut fits = self.term();
        while self.take("OR") || self.take("/") {
            fits |= self.term();
        }
        fits
    }

    fn term(&mut self) -> bool {
        let mut fits = self.factor();
        while self.take("AND") {
            fits &= self.factor();
        }
        fits
    }

    fn factor(&mut self) -> bool {
        if self.take("(") {
            let fits = self.expression();
            return self.take(")") && fits;
        }
        let mut name = self.tokens.get(self.next).cloned().unwrap_or_default();
        self.next += 1;
        if self.take("WITH") {
            name.push_str(" WITH ");
            name.push_str(self.tokens.get(self.next).map(String::as_str).unwrap_or_default());
            self.next += 1;
        }
        ALLOWED.contains(&name.as_str())
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.tokens.get(self.next).is_some_and(|next| next == token);
        self.next += usize::from(found);
        found
    }
}

fn tokens(licence: &str) -> Vec<String> {
    let spaced = licence.replace('(', " ( ").replace(')', " ) ").replace('/', " / ");
    spaced.split_whitespace().map(str::to_owned).collect()
}

const ALLOWED: &[&str] = &[
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "MIT",
    "MIT-0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "ISC",
    "Unicode-3.0",
    "Zlib",
    "0BSD",
    "CC0-1.0",
    "Unlicense",
    // Of data only: Mozilla's list of authorities.
    "CDLA-Permissive-2.0",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(licence: &str, expect: bool) {
        assert_eq!(allows(&tokens(licence)), expect, "{licence}");
    }

    #[test]
    fn licence_expressions_are_judged_as_they_are_read() {
        check("MIT", true);
        check("MIT/Apache-2.0", true);
        check("GPL-3.0", false);
        check("GPL-3.0 OR Apache-2.0", true);
        check("MIT AND GPL-3.0", false);
        check("(MIT OR GPL-2.0) AND Unicode-3.0", true);
        check("Apache-2.0 WITH LLVM-exception OR GPL-2.0", true);
        check("Apache-2.0 WITH Something-else", false);
        check("(MIT", false);
        check("", false);
    }
}
