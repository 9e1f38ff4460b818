//! PostgreSQL's patterns of times, in the way the engine writes them.

/// A pattern of `to_char`, if all of it is known.
pub(crate) fn translated(pattern: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = pattern;
    'next: while let Some(first) = rest.chars().next() {
        if UNKNOWN
            .iter()
            .any(|name| rest.get(..name.len()).is_some_and(|head| head.eq_ignore_ascii_case(name)))
        {
            return None;
        }
        for (name, meaning) in PATTERNS {
            // Names are spelt in capitals where their spelling is that of what they give.
            let fits = rest
                .get(..name.len())
                .is_some_and(|head| if meaning.1 { head == *name } else { head.eq_ignore_ascii_case(name) });
            if fits {
                out.push_str(meaning.0);
                rest = rest.get(name.len()..).unwrap_or_default();
                continue 'next;
            }
        }
        if first == '"' {
            let (quoted, after) = rest.get(1..)?.split_once('"')?;
            out.push_str(quoted);
            rest = after;
        } else if first.is_alphanumeric() || first == '\\' {
            return None;
        } else {
            out.push(first);
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
        }
    }
    Some(out)
}

/// What begins like another one.
const UNKNOWN: &[&str] = &["Month", "SSSS"];

/// Names, longer ones first; what they mean, and whether their spelling matters.
const PATTERNS: &[(&str, (&str, bool))] = &[
    ("FMMonth", ("%B", true)),
    ("FMDay", ("%A", true)),
    ("YYYY", ("%Y", false)),
    ("IYYY", ("%G", false)),
    ("HH24", ("%H", false)),
    ("HH12", ("%I", false)),
    ("DDD", ("%j", false)),
    ("Mon", ("%b", true)),
    ("YY", ("%y", false)),
    ("MM", ("%m", false)),
    ("DD", ("%d", false)),
    ("HH", ("%I", false)),
    ("MI", ("%M", false)),
    ("SS", ("%S", false)),
    ("MS", ("%3f", false)),
    ("US", ("%6f", false)),
    ("IW", ("%V", false)),
    ("AM", ("%p", true)),
    ("PM", ("%p", true)),
    ("am", ("%P", true)),
    ("pm", ("%P", true)),
    ("Dy", ("%a", true)),
];

#[cfg(test)]
mod tests {
    use super::translated;

    #[test]
    fn patterns_are_translated_or_refused_whole() {
        for (pattern, expect) in [
            ("YYYY-MM-DD HH24:MI:SS.MS", Some("%Y-%m-%d %H:%M:%S.%3f")),
            ("yyyy\"T\"hh12 AM", Some("%YT%I %p")),
            ("FMMonth DD, YY", Some("%B %d, %y")),
            ("Month", None),
            ("Monday", None),
            ("SSSS", None),
            ("DDth", None),
            ("Q", None),
            ("\"open", None),
        ] {
            assert_eq!(translated(pattern).as_deref(), expect, "{pattern}");
        }
    }
}
