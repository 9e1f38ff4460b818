//! What the leader of a consumer group has assigned to a member.
//!
//! ```text
//! | version int16 | count int32 | count * TOPIC | user data |
//! TOPIC => | length int16, name | count int32 | count * partition int32 |
//! ```

use bytes::Buf;

use crate::groups::AssignedTopic;

/// `None` if these bytes are no assignment, or if it has more topics and partitions together than are `left`, which is
/// lowered by what it has. Takes memory only for what is there.
pub(crate) fn topics(mut assignment: &[u8], left: &mut usize) -> Option<Vec<AssignedTopic>> {
    let _version = assignment.try_get_i16().ok().filter(|version| *version >= 0)?;
    let (mut topics, mut spent) = (Vec::new(), 0_usize);
    for _ in 0..count(&mut assignment)? {
        let len = usize::try_from(assignment.try_get_i16().ok()?).ok()?;
        let (name, rest) = assignment.split_at_checked(len)?;
        let name = str::from_utf8(name).ok()?;
        assignment = rest;
        let mut partitions = Vec::new();
        for _ in 0..count(&mut assignment)? {
            spent = spent.checked_add(1).filter(|spent| spent <= left)?;
            partitions.push(assignment.try_get_i32().ok()?);
        }
        spent = spent.checked_add(1).filter(|spent| spent <= left)?;
        topics.push(AssignedTopic { topic: name.into(), partitions });
    }
    *left = left.saturating_sub(spent);
    Some(topics)
}

fn count(input: &mut &[u8]) -> Option<u32> {
    u32::try_from(input.try_get_i32().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two topics, the first with two partitions, and user data.
    const ASSIGNMENT: &[u8] =
        b"\0\x01\0\0\0\x02\0\x01a\0\0\0\x02\0\0\0\x03\0\0\0\x04\0\x02bc\0\0\0\0\0\0\0\x01u";

    #[track_caller]
    fn check(assignment: &[u8], left: usize, expected: Option<&[(&str, &[i32])]>) {
        let mut remaining = left;
        let topics = topics(assignment, &mut remaining);
        let told = topics.as_ref().map(|topics| {
            let told = topics.iter().map(|topic| (&*topic.topic, &*topic.partitions));
            told.collect::<Vec<_>>()
        });
        assert_eq!(told.as_deref(), expected);
        let spent = expected.map_or(0, |topics| topics.iter().map(|(_, all)| 1 + all.len()).sum());
        assert_eq!(remaining, left - spent);
    }

    #[test]
    fn an_assignment_names_topics_and_partitions() {
        check(ASSIGNMENT, 4, Some(&[("a", &[3, 4]), ("bc", &[])]));
        check(b"\0\0\0\0\0\0", 0, Some(&[]));
    }

    #[test]
    fn an_assignment_with_more_than_is_allowed_is_left_out() {
        for left in 0..4 {
            check(ASSIGNMENT, left, None);
        }
    }

    #[test]
    fn bytes_that_end_early_or_claim_too_much_are_no_assignment() {
        // The user data, which is not read, may be cut.
        for len in 0..ASSIGNMENT.len() - 5 {
            check(&ASSIGNMENT[..len], 100, None);
        }
        check(b"\xff\xff\0\0\0\0", 100, None);
        check(b"\0\0\xff\xff\xff\xff", 100, None);
        check(b"\0\0\x7f\xff\xff\xff", usize::MAX, None);
        check(b"\0\0\0\0\0\x01\0\x01a\x7f\xff\xff\xff", usize::MAX, None);
        check(b"\0\0\0\0\0\x01\0\x01\xff\0\0\0\0", 100, None);
    }
}
