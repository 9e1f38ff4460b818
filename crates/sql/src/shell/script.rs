//! Finds the ends of statements in a text. What a statement means is the server's business.

/// Cuts off the statements that a semicolon ends, without it; the rest is not ended yet. Statements that say nothing are left
/// out.
pub(super) fn split(text: &str) -> (Vec<&str>, &str) {
    let mut statements = Vec::new();
    let mut rest = text;
    while let Some(end) = end(rest) {
        let (statement, after) = rest.split_at(end);
        if !is_blank(statement) {
            statements.push(statement);
        }
        rest = after.strip_prefix(';').unwrap_or(after);
    }
    (statements, rest)
}

/// Whether a text holds nothing but blanks and comments.
pub(super) fn is_blank(text: &str) -> bool {
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let token = token(rest);
        if !(first.is_whitespace() || rest.starts_with("--") || rest.starts_with("/*")) {
            return false;
        }
        rest = rest.get(token..).unwrap_or_default();
    }
    true
}

/// Where the first semicolon is that is not in a quotation or a comment.
fn end(text: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        let rest = text.get(at..)?;
        if rest.starts_with(';') {
            return Some(at);
        }
        at += token(rest).max(1);
        if at > text.len() {
            return None;
        }
    }
}

/// The length of what the text begins with: a quotation, a comment, a word, or a character. One that is not closed takes all.
fn token(text: &str) -> usize {
    let first = text.chars().next();
    if let Some(rest) = text.strip_prefix("--") {
        return rest.find('\n').map_or(text.len(), |end| 2 + end + 1);
    }
    if text.starts_with("/*") {
        return comment(text);
    }
    match first {
        Some('\'') => quotation(text, 0, '\'', false),
        Some('"') => quotation(text, 0, '"', false),
        Some('e' | 'E') if text.get(1..).is_some_and(|rest| rest.starts_with('\'')) => {
            quotation(text, 1, '\'', true)
        }
        Some('$') => dollars(text),
        Some(c) if is_word(c) => text.find(|c| !is_word(c)).unwrap_or(text.len()),
        Some(c) => c.len_utf8(),
        None => 0,
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// A doubled quote within is two quotations, one after the other: for finding the end that is the same.
fn quotation(text: &str, start: usize, quote: char, escapes: bool) -> usize {
    let mut chars = text.char_indices().skip(start + 1);
    while let Some((at, c)) = chars.next() {
        if escapes && c == '\\' {
            chars.next();
        } else if c == quote {
            return at + 1;
        }
    }
    text.len()
}

/// A comment between `/*` and `*/`, which may hold others.
fn comment(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// A text between `$$` and `$$`, or `$tag$` and `$tag$`; a parameter such as `$1` is none.
fn dollars(text: &str) -> usize {
    let body = text.get(1..).unwrap_or_default();
    let tag = body.find(|c| !is_word(c)).unwrap_or(body.len());
    let is_tag = body.get(tag..).is_some_and(|rest| rest.starts_with('$'))
        && !body.starts_with(|c: char| c.is_ascii_digit());
    if !is_tag {
        return 1;
    }
    let open = tag + 2;
    let (mark, inner) = text.split_at(open);
    inner.find(mark).map_or(text.len(), |end| open + end + open)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, statements: &[&str], rest: &str) {
        assert_eq!(split(text), (statements.to_vec(), rest), "{text}");
    }

    #[test]
    fn statements_end_at_semicolons_outside_of_quotations_and_comments() {
        check("SELECT 1", &[], "SELECT 1");
        check("SELECT 1;", &["SELECT 1"], "");
        check("a; b;c", &["a", " b"], "c");
        check("select ';'; x", &["select ';'"], " x");
        check("select 'it''s;';", &["select 'it''s;'"], "");
        check("select \"a;b\";", &["select \"a;b\""], "");
        check("select 'a;", &[], "select 'a;");
        check("a -- ; b\n;", &["a -- ; b\n"], "");
        check("a -- ;", &[], "a -- ;");
        check("a /* ; /* ; */ ; */;", &["a /* ; /* ; */ ; */"], "");
        check("select e'\\';' ;", &["select e'\\';' "], "");
        check("select name'\\';", &["select name'\\'"], "");
        check("select $$;$$, $1;", &["select $$;$$, $1"], "");
        check("select $é$;$é$;", &["select $é$;$é$"], "");
        check("select 'ä;ö', ü;", &["select 'ä;ö', ü"], "");
        check("; ;-- nothing\n;a;", &["a"], "");
    }

    #[test]
    fn blanks_and_comments_are_no_statement() {
        assert!(is_blank(" \n-- x\n/* ; */ "));
        assert!(is_blank(""));
        assert!(!is_blank("-- x\n1"));
        assert!(!is_blank("'"));
    }
}
