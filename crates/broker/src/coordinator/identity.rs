//! Ids for new members: like nothing that was given out before, and not to be guessed.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use uuid::Uuid;

/// Draws ids out of a seed that differs from start to start.
#[derive(Debug)]
pub(super) struct MemberIds {
    seed: [u8; SEED_LEN],
    drawn: AtomicU64,
}

impl MemberIds {
    pub(super) fn new(seed: [u8; SEED_LEN]) -> Self {
        Self { seed, drawn: AtomicU64::new(0) }
    }

    /// The next id, behind the name by which people know the client.
    pub(super) fn draw(&self, name: &str) -> String {
        let count = self.drawn.fetch_add(1, Ordering::Relaxed);
        let half = |which: u8| {
            let mut hasher = DefaultHasher::new();
            (self.seed, count, which).hash(&mut hasher);
            hasher.finish()
        };
        let id = Uuid::from_u64_pair(half(0), half(1));
        let id = uuid::Builder::from_random_bytes(id.into_bytes()).into_uuid();
        let name = name.get(..name.floor_char_boundary(NAME_LEN_MAX)).unwrap_or_default();
        format!("{name}-{id}")
    }
}

/// Bytes of the seed.
pub(crate) const SEED_LEN: usize = 32;
/// An id is a text of the protocol, which has a bound; names longer than this are nobody's.
const NAME_LEN_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_within_a_start_and_between_starts() {
        let (one, two) = (MemberIds::new([1; SEED_LEN]), MemberIds::new([2; SEED_LEN]));
        let ids = [one.draw("a"), one.draw("a"), two.draw("a")];
        assert!(ids.iter().all(|id| id.starts_with("a-") && id.len() == 38), "{ids:?}");
        assert!(ids[0] != ids[1] && ids[0] != ids[2]);
        assert_eq!(MemberIds::new([1; SEED_LEN]).draw("a"), ids[0]);
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        let ids = MemberIds::new([0; SEED_LEN]);
        let id = ids.draw(&"ü".repeat(5_000));
        assert_eq!(id.len(), 1024 + 37);
        let id = ids.draw(&format!("a{}", "ü".repeat(5_000)));
        assert_eq!(id.len(), 1023 + 37);
    }
}
