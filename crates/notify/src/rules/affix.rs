//! Finding all strings of a set that a key begins with, or ends with, without comparing it with each.

use std::collections::BTreeMap;
use std::iter;

/// Strings with a value each. Those that a key begins with are found in `O(log n)` comparisons.
///
/// The strings are sorted, and each knows the longest other one that it begins with: its parent. The greatest string
/// that is not above the key begins with all that the key begins with; so these are its ancestors and perhaps itself,
/// and those among them that are no longer than what it shares with the key.
///
/// ```text
/// ""  <- "images/"  <- "images/2024/"  <- "images/2024/raw/"        key "images/2024/x.jpg": shares 12 bytes with
///     <- "logs/"                                                     "images/2024/", which with its ancestors matches
/// ```
///
/// INVARIANT: sorted; a parent stands before its children.
#[derive(Debug, Clone, Default)]
pub(super) struct AffixMap<V> {
    nodes: Vec<Node<V>>,
}

#[derive(Debug, Clone)]
struct Node<V> {
    text: Vec<u8>,
    parent: Option<usize>,
    value: V,
}

impl<V> AffixMap<V> {
    pub(super) fn new(entries: BTreeMap<Vec<u8>, V>) -> Self {
        let mut nodes: Vec<Node<V>> = Vec::with_capacity(entries.len());
        let mut ancestors: Vec<usize> = Vec::new();
        for (text, value) in entries {
            let is_ancestor =
                |at: usize| nodes.get(at).is_some_and(|node: &Node<V>| text.starts_with(&node.text));
            while ancestors.pop_if(|at| !is_ancestor(*at)).is_some() {}
            let parent = ancestors.last().copied();
            ancestors.push(nodes.len());
            nodes.push(Node { text, parent, value });
        }
        Self { nodes }
    }

    /// The values of the strings that the bytes begin with, the longest first. To find those that a key ends with, put
    /// the strings and the key in backwards.
    pub(super) fn beginnings_of<K>(&self, key: K) -> impl Iterator<Item = &V>
    where
        K: Iterator<Item = u8> + Clone,
    {
        let above = self.nodes.partition_point(|node| node.text.iter().copied().le(key.clone()));
        let last = above.checked_sub(1).and_then(|at| self.nodes.get(at));
        let shared = last.map_or(0, |node| node.text.iter().zip(key).take_while(|(a, b)| *a == b).count());
        iter::successors(last, |node| self.nodes.get(node.parent?))
            .filter(move |node| node.text.len() <= shared)
            .map(|node| &node.value)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[track_caller]
    fn check(strings: &[&str], key: &str, expect: &[&str]) {
        let entries = strings.iter().map(|text| (text.as_bytes().to_vec(), (*text).to_owned()));
        let map = AffixMap::new(entries.collect());
        let found: Vec<&String> = map.beginnings_of(key.bytes()).collect();
        assert_eq!(found, expect, "{key} in {strings:?}");
    }

    #[test]
    fn what_a_key_begins_with_is_found_the_longest_first() {
        let strings = ["", "images/", "images/2024/", "images/2024/raw/", "logs/", "imagine"];
        check(&strings, "images/2024/x.jpg", &["images/2024/", "images/", ""]);
        check(&strings, "images/2024/", &["images/2024/", "images/", ""]);
        check(&strings, "images/2024/zebra", &["images/2024/", "images/", ""]);
        check(&strings, "images/2024", &["images/", ""]);
        check(&strings, "imaginary", &[""]);
        check(&strings, "logs/a", &["logs/", ""]);
        check(&strings, "zzz", &[""]);
        check(&strings, "", &[""]);
    }

    #[test]
    fn a_key_that_begins_with_none_finds_nothing() {
        check(&[], "a", &[]);
        check(&["b"], "a", &[]);
        check(&["b"], "c", &[]);
        check(&["ab", "abc"], "a", &[]);
        check(&["ab", "abd"], "abc", &["ab"]);
    }

    #[test]
    fn a_thousand_unrelated_strings_are_not_compared() {
        let strings: Vec<String> = (0..1000).map(|nth| format!("{nth:04}/folder/")).collect();
        let map =
            AffixMap::new(strings.iter().map(|text| (text.as_bytes().to_vec(), text.as_str())).collect());
        let read = Cell::new(0);
        let key = "0517/folder/name".bytes().inspect(|_| read.set(read.get() + 1));
        assert_eq!(map.beginnings_of(key).collect::<Vec<_>>(), [&"0517/folder/"]);
        assert!(read.get() <= 11 * 13 + 13, "ten or eleven strings were compared, not {} bytes", read.get());
    }
}
