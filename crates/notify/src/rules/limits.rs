//! What a notification configuration may measure.

/// Bounds of a notification configuration that comes from outside.
///
/// How deep it may nest needs no bound: its grammar does not recur, and what is not in the grammar is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The most bytes of a document; 1 MiB unless told.
    pub document_len_max: usize,
    /// The most rules of a bucket; 1,000 unless told (AWS: 100).
    pub rules_max: usize,
    /// The most characters of a rule's identifier; 255 unless told, as in AWS.
    pub id_chars_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { document_len_max: 1 << 20, rules_max: 1000, id_chars_max: 255 }
    }
}
