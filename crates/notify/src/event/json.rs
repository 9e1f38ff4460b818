//! Writing JSON into a buffer, escaped as Go's `encoding/json` does it.
//!
//! `<`, `>`, `&` and the two line separators of Unicode are written as `\u003c` and so on, so that a record is the same
//! bytes as `MinIO`'s and can stand in HTML; a reader of JSON sees no difference.

/// Appends what stands for itself in JSON.
pub(super) fn push(out: &mut Vec<u8>, json: &str) {
    out.extend_from_slice(json.as_bytes());
}

/// Appends `before`, which is JSON, and the text as a JSON string.
pub(super) fn push_text(out: &mut Vec<u8>, before: &str, text: &str) {
    push(out, before);
    out.push(b'"');
    push_escaped(out, text);
    out.push(b'"');
}

/// Appends the inside of a JSON string.
pub(super) fn push_escaped(out: &mut Vec<u8>, text: &str) {
    let mut rest = text.as_bytes();
    // Few texts have anything to escape, and looking at all bytes without stopping is done many at a time.
    if !rest.iter().fold(false, |any, byte| any | may_need_escape(*byte)) {
        return out.extend_from_slice(rest);
    }
    while let Some(at) = rest.iter().position(|byte| may_need_escape(*byte)) {
        let Some((plain, tail)) = rest.split_at_checked(at) else { break };
        out.extend_from_slice(plain);
        let Some((byte, after)) = tail.split_first() else { break };
        rest = after;
        match byte {
            b'"' => push(out, "\\\""),
            b'\\' => push(out, "\\\\"),
            b'\n' => push(out, "\\n"),
            b'\r' => push(out, "\\r"),
            b'\t' => push(out, "\\t"),
            0x08 => push(out, "\\b"),
            0x0c => push(out, "\\f"),
            // U+2028 and U+2029 are e2 80 a8 and e2 80 a9.
            0xe2 => match after {
                [0x80, last @ (0xa8 | 0xa9), after @ ..] => {
                    push(out, if *last == 0xa8 { "\\u2028" } else { "\\u2029" });
                    rest = after;
                }
                _ => out.push(0xe2),
            },
            _ => {
                push(out, "\\u00");
                push_hex(out, u64::from(*byte), 2, b'a');
            }
        }
    }
    out.extend_from_slice(rest);
}

/// Appends a number.
pub(super) fn push_number(out: &mut Vec<u8>, value: u64) {
    let places = value.checked_ilog10().unwrap_or(0) + 1;
    push_digits(out, value, usize::try_from(places).unwrap_or(0));
}

/// Appends the last so many decimal digits of a number, with zeros in front.
pub(super) fn push_digits(out: &mut Vec<u8>, value: u64, width: usize) {
    out.resize(out.len() + width, b'0');
    let mut rest = value;
    for byte in out.iter_mut().rev().take(width) {
        let [digit, ..] = (rest % 10).to_le_bytes();
        *byte = b'0' + digit;
        rest /= 10;
    }
}

/// Appends the last so many hexadecimal digits of a number, with zeros in front; `ten` is the digit ten, `a` or `A`.
pub(super) fn push_hex(out: &mut Vec<u8>, value: u64, width: u32, ten: u8) {
    for place in (0..width).rev() {
        let [digit, ..] = (value >> (4 * place) & 0xf).to_le_bytes();
        out.push(if digit < 10 { b'0' + digit } else { ten + (digit - 10) });
    }
}

/// Whether a byte is escaped, or may begin a character that is.
#[expect(clippy::needless_bitwise_bool, reason = "without jumps, many bytes are looked at in one step")]
fn may_need_escape(byte: u8) -> bool {
    (byte < 0x20)
        | (byte == b'"')
        | (byte == b'\\')
        | (byte == b'<')
        | (byte == b'>')
        | (byte == b'&')
        | (byte == 0xe2)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        let mut out = Vec::new();
        push_text(&mut out, "", text);
        assert_eq!(String::from_utf8(out).unwrap(), expect);
    }

    #[test]
    fn strings_are_escaped_as_go_does_it() {
        check("", r#""""#);
        check("plain é 漢 🦀 \u{7f}", "\"plain é 漢 🦀 \u{7f}\"");
        check("a\"b\\c", r#""a\"b\\c""#);
        check("\n\r\t\u{8}\u{c}\0\u{1f}", r#""\n\r\t\b\f\u0000\u001f""#);
        check("<a>&", r#""\u003ca\u003e\u0026""#);
        check("\u{2028}\u{2029}\u{2027}\u{202a}…€", "\"\\u2028\\u2029\u{2027}\u{202a}…€\"");
    }

    #[test]
    fn numbers_have_no_zeros_in_front_and_digits_have() {
        let mut out = Vec::new();
        for value in [0, 9, 10, 84_452, u64::MAX] {
            push_number(&mut out, value);
            out.push(b' ');
        }
        push_digits(&mut out, 7, 3);
        out.push(b' ');
        push_hex(&mut out, 0x1821_78E8_B372_8CAC, 16, b'A');
        push_hex(&mut out, 0xab, 4, b'a');
        assert_eq!(out, b"0 9 10 84452 18446744073709551615 007 182178E8B3728CAC00ab");
    }

    proptest! {
        #[test]
        fn any_text_is_read_back_and_has_nothing_that_html_would_read(text in any::<String>()) {
            let mut out = Vec::new();
            push_text(&mut out, "", &text);
            prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
            prop_assert!(!out.iter().any(|byte| matches!(byte, b'<' | b'>' | b'&' | 0..0x20)));
        }
    }
}
