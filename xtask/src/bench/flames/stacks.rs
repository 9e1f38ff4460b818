//! Samples by call stack, as `perf script` lists them.

use std::collections::BTreeMap;

/// How often each stack was seen; the outermost frame, which is the thread, comes first.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    counts: BTreeMap<Vec<Frame>, u64>,
}

/// A function, or at the bottom of a stack the thread.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Frame {
    pub(super) name: String,
    pub(super) place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    Thread,
    User,
    Kernel,
}

impl Place {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::User => "user",
            Self::Kernel => "kernel",
        }
    }
}

impl Stacks {
    /// Parses what `perf script --fields comm,ip,sym` prints.
    ///
    /// ```text
    /// sample => thread "\n" ("\t" address symbol "\n")* "\n"      the innermost frame first
    /// ```
    pub(super) fn parse(text: &str) -> Self {
        let mut stacks = Self::default();
        let (mut thread, mut inner): (Option<&str>, Vec<Frame>) = (None, Vec::new());
        for line in text.lines().chain([""]) {
            match line.strip_prefix(['\t', ' ']) {
                Some(frame) => inner.extend(Frame::parse(frame)),
                None if line.is_empty() => {
                    if let Some(name) = thread.take() {
                        let name = name.trim().to_owned();
                        let mut stack = vec![Frame { name, place: Place::Thread }];
                        stack.extend(inner.drain(..).rev());
                        *stacks.counts.entry(stack).or_default() += 1;
                    }
                }
                None => thread = Some(line),
            }
        }
        stacks
    }

    /// All samples.
    pub(super) fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&[Frame], u64)> {
        self.counts.iter().map(|(stack, count)| (stack.as_slice(), *count))
    }

    /// Samples by the function that was running, the most frequent first.
    pub(super) fn own(&self) -> Vec<(&Frame, u64)> {
        self.ranked(<[Frame]>::last)
    }

    /// Samples by thread, the most frequent first.
    pub(super) fn threads(&self) -> Vec<(&Frame, u64)> {
        self.ranked(<[Frame]>::first)
    }

    /// Samples in which the kernel was running.
    pub(super) fn in_kernel(&self) -> u64 {
        self.own().iter().filter(|(frame, _)| frame.place == Place::Kernel).map(|(_, count)| count).sum()
    }

    fn ranked(&self, of: impl Fn(&[Frame]) -> Option<&Frame>) -> Vec<(&Frame, u64)> {
        let mut sums: BTreeMap<&Frame, u64> = BTreeMap::new();
        for (stack, count) in self.iter() {
            if let Some(frame) = of(stack) {
                *sums.entry(frame).or_default() += count;
            }
        }
        let mut ranked: Vec<_> = sums.into_iter().collect();
        ranked.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        ranked
    }
}

impl Frame {
    /// `address symbol`, the address in hexadecimal digits: the upper half of all addresses is the kernel's.
    fn parse(line: &str) -> Option<Self> {
        let (address, symbol) = line.trim().split_once(' ')?;
        let is_kernel = address.len() == 16 && address.starts_with('f');
        let place = if is_kernel { Place::Kernel } else { Place::User };
        Some(Self { name: without_hash(symbol.trim()).to_owned(), place })
    }

    /// The last two names of a path without their types: `Connection::received`.
    pub(super) fn short(&self) -> String {
        if self.place == Place::Thread {
            return self.name.clone();
        }
        let names = segments(&self.name);
        let names: Vec<&str> = names.into_iter().filter(|name| *name != "{{closure}}").collect();
        let last = names.get(names.len().saturating_sub(2)..).unwrap_or_default();
        let plain: Vec<&str> = last.iter().map(|name| plain(name)).filter(|name| !name.is_empty()).collect();
        if plain.is_empty() { self.name.clone() } else { plain.join("::") }
    }
}

/// Compilers end a symbol with `::h` and 16 digits.
fn without_hash(symbol: &str) -> &str {
    match symbol.rsplit_once("::h") {
        Some((name, hash)) if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => name,
        _ => symbol,
    }
}

/// The names of a path: what stands between `::` outside of brackets.
fn segments(path: &str) -> Vec<&str> {
    let (mut found, mut depth, mut rest, mut at) = (Vec::new(), 0_i32, path, 0);
    for (index, byte) in path.bytes().enumerate() {
        match byte {
            b'<' | b'(' | b'[' => depth += 1,
            b'>' | b')' | b']' => depth -= 1,
            b':' if depth == 0 && index >= at && path.get(index..index + 2) == Some("::") => {
                found.push(path.get(at..index).unwrap_or_default());
                at = index + 2;
                rest = path.get(at..).unwrap_or_default();
            }
            _ => {}
        }
    }
    found.push(rest);
    found
}

/// A name without its types; of `<A as B>` and `<A>` the last name of `A`.
fn plain(name: &str) -> &str {
    let Some(inner) = name.strip_prefix('<') else {
        return name.split('<').next().unwrap_or_default();
    };
    let inner = inner.split_once(" as ").map_or(inner, |(of, _)| of);
    let last = segments(inner.trim_end_matches('>')).pop().unwrap_or_default();
    last.split('<').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "tokio-runtime-w \n\tffffffff821e8f67 copy_to_user\n\t           f82ad <std::net::TcpStream as std::io::Read>::read::h0123456789abcdef\n\t    55d0c0de0000 [unknown]\n\n\
         journal \n\t    55d0c0de1234 kolumn_journal::writer::run\n\n\
         tokio-runtime-w \n\tffffffff821e8f67 copy_to_user\n\t           f82ad <std::net::TcpStream as std::io::Read>::read::h0123456789abcdef\n\t    55d0c0de0000 [unknown]\n\n\
         idle \n";

    #[test]
    fn samples_with_the_same_stack_are_counted_together() {
        let stacks = Stacks::parse(SCRIPT);
        assert_eq!((stacks.total(), stacks.in_kernel(), stacks.iter().count()), (4, 2, 3));
        let own: Vec<_> =
            stacks.own().iter().map(|(frame, count)| (frame.name.clone(), frame.place, *count)).collect();
        assert_eq!(own[0], ("copy_to_user".to_owned(), Place::Kernel, 2));
        assert!(own.contains(&("kolumn_journal::writer::run".to_owned(), Place::User, 1)));
        assert!(own.contains(&("idle".to_owned(), Place::Thread, 1)));
        let (stack, _) = stacks.iter().find(|(_, count)| *count == 2).unwrap();
        let names: Vec<_> = stack.iter().map(|frame| frame.name.as_str()).collect();
        let expect =
            ["tokio-runtime-w", "[unknown]", "<std::net::TcpStream as std::io::Read>::read", "copy_to_user"];
        assert_eq!(names, expect, "the outermost first");
        assert_eq!(stacks.threads()[0].0.name, "tokio-runtime-w");
    }

    #[test]
    fn nothing_sampled_is_no_stack() {
        assert_eq!(Stacks::parse("").total(), 0);
        assert_eq!(Stacks::parse("\n\n\t 1 a\n\n").total(), 0, "frames without a thread");
    }

    #[track_caller]
    fn check_short(name: &str, expect: &str) {
        let frame = Frame { name: name.into(), place: Place::User };
        assert_eq!(frame.short(), expect, "{name}");
    }

    #[test]
    fn a_short_name_is_the_end_of_a_path_without_types() {
        check_short("copy_to_user", "copy_to_user");
        check_short("kolumn_broker::server::Connection<T>::received", "Connection::received");
        check_short("<std::net::TcpStream as std::io::Read>::read", "TcpStream::read");
        check_short("<alloc::vec::Vec<a::B> as Drop>::drop", "Vec::drop");
        check_short("a::run::{{closure}}::{{closure}}", "a::run");
        check_short("core::ops::FnOnce::call_once{{vtable.shim}}", "FnOnce::call_once{{vtable.shim}}");
        check_short("{{closure}}", "{{closure}}");
        check_short("[unknown]", "[unknown]");
        check_short("<", "<");
    }

    #[test]
    fn only_a_hash_is_taken_from_the_end_of_a_symbol() {
        for (symbol, expect) in [
            ("a::b::h0123456789abcdef", "a::b"),
            ("a::hash", "a::hash"),
            ("a::h0123456789abcdeg", "a::h0123456789abcdeg"),
        ] {
            assert_eq!(without_hash(symbol), expect);
        }
    }
}
