//! A text of SQL cut into what is quoted, what is a comment and the rest. A piece follows upon the other, and together they
//! are the text.

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece<'a> {
    pub(crate) kind: PieceKind,
    pub(crate) text: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PieceKind {
    Plain,
    /// A text or a name, with its quotes.
    Quoted,
    Comment,
}

/// The pieces of a text.
pub(crate) fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = text;
    let mut before = b' ';
    let mut before_that = b' ';
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let escapes = matches!(before, b'e' | b'E') && !is_word(before_that);
        let (kind, len) = match start(rest.as_bytes(), before) {
            Some(kind) => (kind_of(kind), end(rest.as_bytes(), kind, escapes)),
            None => (PieceKind::Plain, plain(rest.as_bytes(), before)),
        };
        let (text, after) = rest.split_at_checked(len).unwrap_or((rest, ""));
        rest = after;
        let mut backwards = text.bytes().rev();
        if let Some(last) = backwards.next() {
            before_that = backwards.next().unwrap_or(before);
            before = last;
        }
        Some(Piece { kind, text })
    })
}

/// A quoted piece without its quotes.
pub(crate) fn unquoted(piece: &str) -> String {
    for quote in ['\'', '"'] {
        if let Some(inner) = piece.strip_prefix(quote) {
            let doubled = [quote, quote].iter().collect::<String>();
            return inner.strip_suffix(quote).unwrap_or(inner).replace(&doubled, &quote.to_string());
        }
    }
    piece.to_owned()
}

#[derive(Clone, Copy)]
enum Start {
    Line,
    Block,
    Quote(u8),
    /// `$tag$`, of this length.
    Dollar(usize),
}

const fn kind_of(start: Start) -> PieceKind {
    match start {
        Start::Line | Start::Block => PieceKind::Comment,
        Start::Quote(_) | Start::Dollar(_) => PieceKind::Quoted,
    }
}

/// Whether a quoted piece or a comment begins here.
fn start(bytes: &[u8], before: u8) -> Option<Start> {
    match bytes {
        [b'-', b'-', ..] => Some(Start::Line),
        [b'/', b'*', ..] => Some(Start::Block),
        [quote @ (b'\'' | b'"'), ..] => Some(Start::Quote(*quote)),
        [b'$', rest @ ..] if !is_word(before) => {
            let tag = rest.iter().position(|byte| !is_word(*byte))?;
            let named = rest.first().is_some_and(|byte| !byte.is_ascii_digit());
            (named && rest.get(tag) == Some(&b'$')).then_some(Start::Dollar(tag.saturating_add(2)))
        }
        _ => None,
    }
}

/// The length of what has begun, to its end or that of the text.
fn end(bytes: &[u8], start: Start, escapes: bool) -> usize {
    match start {
        Start::Line => bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len()),
        Start::Block => block_end(bytes),
        Start::Dollar(len) => {
            let (tag, body) = bytes.split_at_checked(len).unwrap_or((bytes, &[]));
            let found = body.windows(tag.len()).position(|window| window == tag);
            found.map_or(bytes.len(), |at| at.saturating_add(2 * len))
        }
        Start::Quote(quote) => {
            let mut at = 1;
            while let Some(byte) = bytes.get(at) {
                let doubled = *byte == quote && bytes.get(at.saturating_add(1)) == Some(&quote);
                if doubled || (escapes && *byte == b'\\') {
                    at = at.saturating_add(2);
                } else if *byte == quote {
                    return at.saturating_add(1);
                } else {
                    at = at.saturating_add(1);
                }
            }
            bytes.len()
        }
    }
}

/// Comments of this kind nest.
fn block_end(bytes: &[u8]) -> usize {
    let (mut depth, mut at) = (0_usize, 0_usize);
    while let Some(two) = bytes.get(at..at.saturating_add(2)) {
        match two {
            b"/*" => depth = depth.saturating_add(1),
            b"*/" => depth = depth.saturating_sub(1),
            _ => {
                at = at.saturating_add(1);
                continue;
            }
        }
        at = at.saturating_add(2);
        if depth == 0 {
            return at;
        }
    }
    bytes.len()
}

/// The length of what is neither quoted nor a comment.
fn plain(bytes: &[u8], mut before: u8) -> usize {
    let mut rest = bytes;
    while let [byte, after @ ..] = rest {
        if start(rest, before).is_some() {
            break;
        }
        before = *byte;
        rest = after;
    }
    bytes.len().saturating_sub(rest.len())
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &[(PieceKind, &str)]) {
        let found: Vec<_> = pieces(text).map(|piece| (piece.kind, piece.text)).collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn quotes_and_comments_are_pieces() {
        use PieceKind::{Comment, Plain, Quoted};
        check("a 'b''c' d", &[(Plain, "a "), (Quoted, "'b''c'"), (Plain, " d")]);
        check("\"a;\"\"b\"", &[(Quoted, "\"a;\"\"b\"")]);
        check(r"E'\'' x", &[(Plain, "E"), (Quoted, r"'\''"), (Plain, " x")]);
        check(r"'\' x", &[(Quoted, r"'\'"), (Plain, " x")]);
        check(r"name'\'", &[(Plain, "name"), (Quoted, r"'\'")]);
        check("$$a'b$$ $1 a$b$", &[(Quoted, "$$a'b$$"), (Plain, " $1 a$b$")]);
        check("$t$ $$ $t$;", &[(Quoted, "$t$ $$ $t$"), (Plain, ";")]);
        check("a--b'\nc", &[(Plain, "a"), (Comment, "--b'"), (Plain, "\nc")]);
        check("/* /* */ ' */b", &[(Comment, "/* /* */ ' */"), (Plain, "b")]);
        check("'no end", &[(Quoted, "'no end")]);
        assert_eq!(unquoted("'it''s'"), "it's");
    }

    proptest! {
        #[test]
        fn the_pieces_are_the_text(text in "[-'\"$;/*\\\\eéa1 \n]{0,40}") {
            let joined: String = pieces(&text).map(|piece| piece.text).collect();
            prop_assert_eq!(joined, text);
        }
    }
}
