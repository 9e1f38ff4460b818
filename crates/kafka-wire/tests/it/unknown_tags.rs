//! Tagged fields of newer peers survive decoding and encoding, between and after the known ones.

use kolumn_kafka_wire::messages::{FetchRequest, MetadataRequest};
use kolumn_kafka_wire::{Message as _, TaggedFields, Value as _};

#[test]
fn unknown_tags_are_kept_and_written_in_order() {
    let bytes = [0, 1, 0, 0, 3, 5, 2, b'h', b'i', 64, 0, 0x80, 0x01, 1, 7];
    let request = MetadataRequest::decode(&bytes, 9).unwrap();
    let tags: Vec<_> =
        request.unknown_tagged_fields.iter().map(|field| (field.tag, field.data.to_vec())).collect();
    assert_eq!(tags, [(5, b"hi".to_vec()), (64, vec![]), (128, vec![7])]);
    assert_eq!(request.encode_to_bytes(9).unwrap()[..], bytes);
    let owned = request.clone().into_owned();
    assert_eq!(owned, request);
    assert_eq!(owned.encode_to_bytes(9).unwrap()[..], bytes);
}

#[test]
fn unknown_and_known_tags_are_merged_ascending() {
    let mut request = FetchRequest { cluster_id: Some("c".into()), ..Default::default() };
    request.replica_state.replica_id = 5;
    request.unknown_tagged_fields.insert(7, vec![1, 2]);
    let known_first = request.encode_to_bytes(15).unwrap();
    let decoded = FetchRequest::decode(&known_first, 15).unwrap();
    assert_eq!(decoded, request);
    // in version 12, tag 1 is not known yet, and goes between 0 and 7
    let mut older = FetchRequest { cluster_id: Some("c".into()), ..Default::default() };
    older.unknown_tagged_fields.insert(7, vec![3]);
    older.unknown_tagged_fields.insert(1, vec![4]);
    let bytes = older.encode_to_bytes(12).unwrap();
    assert!(bytes.ends_with(&[3, 0, 2, 2, b'c', 1, 1, 4, 7, 1, 3]));
    assert_eq!(FetchRequest::decode(&bytes, 12).unwrap(), older);
}

#[test]
fn inserting_replaces_a_tag_and_keeps_the_order() {
    let mut tags = TaggedFields::new();
    for (tag, data) in [(9, 1), (3, 2), (9, 3), (6, 4)] {
        tags.insert(tag, vec![data]);
    }
    let all: Vec<_> = tags.iter().map(|field| (field.tag, field.data.to_vec())).collect();
    assert_eq!(all, [(3, vec![2]), (6, vec![4]), (9, vec![3])]);
    assert_eq!(tags.len(), 3);
}
