//! `system.groups`: a row for each partition that a group has committed or a member is assigned, and one for a group
//! with neither.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int32Array, Int64Array, StringArray, TimestampMillisecondArray};
use datafusion::arrow::datatypes::{DataType, Field};
use kolumn_topic_store::{CommittedOffset, PartitionIndex, View};

use super::{Reader, Rows, millis};
use crate::groups::Group;

pub(super) struct GroupRows;

pub(super) struct Row {
    bucket: Arc<str>,
    group: Arc<Group>,
    place: Option<Place>,
}

/// A partition of which something is known for a group.
struct Place {
    topic: Arc<str>,
    partition: i32,
    committed: Option<CommittedOffset>,
    /// `None` if there is no such topic or partition: anything can be assigned.
    high_watermark: Option<i64>,
    /// The member that it is assigned to: an index into the group's.
    member: Option<usize>,
}

impl Rows for GroupRows {
    type Row = Row;

    fn fields() -> Vec<Field> {
        vec![
            Field::new("bucket", DataType::Utf8, false),
            Field::new("group_id", DataType::Utf8, false),
            Field::new("state", DataType::Utf8, false),
            Field::new("protocol_type", DataType::Utf8, true),
            Field::new("protocol", DataType::Utf8, true),
            Field::new("members", DataType::Int32, false),
            Field::new("topic", DataType::Utf8, true),
            Field::new("partition", DataType::Int32, true),
            Field::new("committed_offset", DataType::Int64, true),
            Field::new("committed_metadata", DataType::Utf8, true),
            millis("committed_at", true),
            Field::new("high_watermark", DataType::Int64, true),
            Field::new("lag", DataType::Int64, true),
            Field::new("member_id", DataType::Utf8, true),
            Field::new("client_id", DataType::Utf8, true),
            Field::new("client_host", DataType::Utf8, true),
        ]
    }

    fn rows(reader: Arc<Reader>) -> impl Iterator<Item = Row> + Send + 'static {
        reader.store.views().into_iter().flat_map(move |view| {
            let reader = Arc::clone(&reader);
            groups(&reader, &view).flat_map(move |group| rows_of(&reader, &view, &group))
        })
    }

    fn columns(rows: &[Row]) -> Vec<ArrayRef> {
        let groups = || rows.iter().map(|row| &*row.group);
        let places = || rows.iter().map(|row| row.place.as_ref());
        let commits = || places().map(|place| place?.committed.as_ref());
        let members = || rows.iter().map(|row| row.group.members.get(row.place.as_ref()?.member?));
        let count = |group: &Group| i32::try_from(group.members.len()).unwrap_or(i32::MAX);
        vec![
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.bucket))),
            Arc::new(StringArray::from_iter_values(groups().map(|group| &group.id))),
            Arc::new(StringArray::from_iter_values(groups().map(|group| &group.state))),
            Arc::new(groups().map(|group| known(&group.protocol_type)).collect::<StringArray>()),
            Arc::new(groups().map(|group| known(&group.protocol)).collect::<StringArray>()),
            Arc::new(Int32Array::from_iter_values(groups().map(count))),
            Arc::new(places().map(|place| Some(&*place?.topic)).collect::<StringArray>()),
            Arc::new(places().map(|place| Some(place?.partition)).collect::<Int32Array>()),
            Arc::new(commits().map(|commit| Some(commit?.offset.value())).collect::<Int64Array>()),
            Arc::new(commits().map(|commit| Some(&*commit?.metadata)).collect::<StringArray>()),
            Arc::new(
                commits()
                    .map(|commit| Some(commit?.committed.value()))
                    .collect::<TimestampMillisecondArray>(),
            ),
            Arc::new(places().map(|place| place?.high_watermark).collect::<Int64Array>()),
            Arc::new(places().map(|place| place?.lag()).collect::<Int64Array>()),
            Arc::new(members().map(|member| Some(&*member?.id)).collect::<StringArray>()),
            Arc::new(members().map(|member| Some(&*member?.client_id)).collect::<StringArray>()),
            Arc::new(members().map(|member| Some(&*member?.client_host)).collect::<StringArray>()),
        ]
    }
}

impl Place {
    /// How many offsets lie between what is committed and the end; none if more is committed than there is.
    fn lag(&self) -> Option<i64> {
        let committed = self.committed.as_ref()?.offset.value();
        Some(self.high_watermark?.saturating_sub(committed).max(0))
    }
}

/// What is empty is not known: of a group that nobody has joined.
fn known(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

/// The groups of a view by id: those with members, and those of whom only the store knows.
fn groups(reader: &Reader, view: &View) -> impl Iterator<Item = Arc<Group>> + Send + use<> {
    let told = reader.groups.groups(&view.bucket);
    let mut told: BTreeMap<String, Group> = told.into_iter().map(|group| (group.id.clone(), group)).collect();
    let stored = reader.store.groups(view.id);
    let names: BTreeSet<String> =
        stored.iter().map(ToString::to_string).chain(told.keys().cloned()).collect();
    names.into_iter().map(move |id| {
        let empty = |id| Group { id, state: "Empty".to_owned(), ..Group::default() };
        Arc::new(told.remove(&id).unwrap_or_else(|| empty(id)))
    })
}

/// What was committed for a partition, and the indexes of the members that it is assigned to.
type Commit = (Option<CommittedOffset>, Vec<usize>);

/// The rows of a group. One that has to do only with topics that may not be read is not shown.
fn rows_of(reader: &Reader, view: &View, group: &Arc<Group>) -> Vec<Row> {
    let mut commits: BTreeMap<(Arc<str>, i32), Commit> = BTreeMap::new();
    for (id, partition, committed) in reader.store.committed_offsets(view.id, &group.id) {
        // What is committed for a topic goes with it.
        if let Some(topic) = reader.store.topic_by_id(view.id, id) {
            commits.insert((Arc::clone(&topic.name), partition.value()), (Some(committed), Vec::new()));
        }
    }
    for (index, member) in group.members.iter().enumerate() {
        for (topic, partition) in &member.assigned {
            commits.entry((Arc::clone(topic), *partition)).or_default().1.push(index);
        }
    }
    let row = |place| Row { bucket: Arc::clone(&view.bucket), group: Arc::clone(group), place };
    if commits.is_empty() {
        return vec![row(None)];
    }
    let mut rows = Vec::with_capacity(commits.len());
    let mut asked: Option<(Arc<str>, bool)> = None;
    for ((topic, partition), (committed, members)) in commits {
        // The places of a topic come one after the other.
        let may_read = match &asked {
            Some((last, may_read)) if *last == topic => *may_read,
            _ => reader.may_read(view, &topic),
        };
        asked = Some((Arc::clone(&topic), may_read));
        if !may_read {
            continue;
        }
        let high_watermark = high_watermark(reader, view, &topic, partition);
        let place = |member| Place {
            topic: Arc::clone(&topic),
            partition,
            committed: committed.clone(),
            high_watermark,
            member,
        };
        if members.is_empty() {
            rows.push(row(Some(place(None))));
        }
        rows.extend(members.into_iter().map(|member| row(Some(place(Some(member))))));
    }
    rows
}

fn high_watermark(reader: &Reader, view: &View, topic: &str, partition: i32) -> Option<i64> {
    let topic = reader.store.topic(view.id, topic)?;
    let offsets = reader.store.offsets(topic.id, PartitionIndex::new(partition)).ok()?;
    Some(offsets.high_watermark.value())
}
