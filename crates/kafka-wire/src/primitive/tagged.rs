//! Tagged fields: what a newer peer may add to any struct of a flexible version.

use alloc::vec::Vec;
use core::fmt;

use super::{Blob, Form, Value, varint};
use crate::error::{DecodeError, EncodeError, EncodeErrorKind, Reason};
use crate::reader::Reader;
use crate::writer::Writer;

/// The tagged fields of a struct that this crate does not know in the version at hand, ascending by tag.
///
/// They survive decoding and encoding. Known tagged fields are ordinary fields of the struct.
#[derive(Clone, Default)]
pub struct TaggedFields<'a>(Repr<'a>);

/// One unknown tagged field.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaggedField<'a> {
    /// Its number.
    pub tag: u32,
    /// Its value.
    pub data: Blob<'a>,
}

#[derive(Clone, Default)]
enum Repr<'a> {
    #[default]
    Empty,
    /// The section of the wire behind its count. INVARIANT: it was read before.
    Wire {
        reader: Reader<'a>,
        known: KnownTags,
        unknown: usize,
    },
    Owned(Vec<TaggedField<'a>>),
}

/// A set of the tags below 64 that were taken as known fields.
#[derive(Clone, Copy, Default)]
struct KnownTags(u64);

impl KnownTags {
    fn insert(&mut self, tag: u32) {
        self.0 |= 1_u64.checked_shl(tag).unwrap_or(0);
    }

    fn contains(self, tag: u32) -> bool {
        self.0 & 1_u64.checked_shl(tag).unwrap_or(0) != 0
    }
}

impl<'a> TaggedFields<'a> {
    /// None.
    #[must_use]
    pub const fn new() -> Self {
        Self(Repr::Empty)
    }

    /// Adds or replaces a field.
    pub fn insert(&mut self, tag: u32, data: impl Into<Blob<'a>>) {
        let mut fields: Vec<_> = self.iter().filter(|field| field.tag != tag).collect();
        let place = fields.partition_point(|field| field.tag < tag);
        fields.insert(place, TaggedField { tag, data: data.into() });
        self.0 = Repr::Owned(fields);
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Empty => 0,
            Repr::Wire { unknown, .. } => *unknown,
            Repr::Owned(fields) => fields.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The fields, ascending by tag.
    pub fn iter(&self) -> impl Iterator<Item = TaggedField<'a>> + '_ {
        let (mut reader, known, owned) = match &self.0 {
            Repr::Empty => (Reader::new(&[]), KnownTags::default(), Default::default()),
            Repr::Wire { reader, known, .. } => (*reader, *known, Default::default()),
            Repr::Owned(fields) => (Reader::new(&[]), KnownTags::default(), fields.as_slice()),
        };
        let wire = core::iter::from_fn(move || {
            (reader.remaining() > 0).then(|| read_field(&mut reader)).and_then(Result::ok)
        });
        wire.filter(move |field| !known.contains(field.tag)).chain(owned.iter().cloned())
    }

    /// Reads the section of a struct without known tagged fields.
    pub(crate) fn read_unknown(reader: &mut Reader<'a>, form: Form) -> Result<Self, DecodeError> {
        Self::read(reader, form, &mut |_, _| Ok(false))
    }

    /// `TAGGED_FIELDS => count:UNSIGNED_VARINT (tag:UNSIGNED_VARINT length:UNSIGNED_VARINT byte*length)*count`
    ///
    /// `known` gets each tag with a reader of its data and says whether it took the field.
    pub(crate) fn read(
        reader: &mut Reader<'a>,
        form: Form,
        known: &mut dyn FnMut(u32, &mut Reader<'a>) -> Result<bool, DecodeError>,
    ) -> Result<Self, DecodeError> {
        if !form.flexible {
            return Ok(Self::new());
        }
        let count = varint::read_u32(reader)?;
        if count == 0 {
            return Ok(Self::new());
        }
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        // a tag and a length take a byte each
        if count > reader.remaining() / 2 {
            return Err(reader.error(Reason::Count { claimed: count, left: reader.remaining() }));
        }
        let start = *reader;
        let mut taken = KnownTags::default();
        let mut unknown = 0;
        let mut before = None;
        for _ in 0..count {
            let tag = varint::read_u32(reader)?;
            if let Some(before) = before.filter(|before| *before >= tag) {
                return Err(reader.error(Reason::TagOrder { tag, before }));
            }
            before = Some(tag);
            let mut data = read_data(reader)?;
            if known(tag, &mut data)? {
                data.finish()?;
                taken.insert(tag);
            } else {
                unknown += 1;
            }
        }
        if unknown == 0 {
            return Ok(Self::new());
        }
        Ok(Self(Repr::Wire { reader: start.until(reader), known: taken, unknown }))
    }

    /// Writes the section of a struct, known and unknown fields merged.
    pub(crate) fn write(
        &self,
        writer: &mut Writer,
        form: Form,
        known: &[KnownTag<'_>],
    ) -> Result<(), EncodeError> {
        if !form.flexible {
            return if self.is_empty() {
                Ok(())
            } else {
                Err(EncodeError::not_in_version("unknown_tagged_fields"))
            };
        }
        let mut known = known.iter().filter(|field| field.present).peekable();
        let count = self.len().saturating_add(known.clone().count());
        write_u32(writer, count)?;
        if count == 0 {
            return Ok(());
        }
        let mut before = None;
        for field in self.iter() {
            while let Some(known) = known.next_if(|known| known.tag < field.tag) {
                known.write(writer, &mut before)?;
            }
            check_order(field.tag, &mut before)?;
            varint::write_u32(writer, field.tag);
            write_u32(writer, field.data.len())?;
            match &field.data {
                Blob::Borrowed(bytes) => writer.bytes(bytes),
                Blob::Shared(bytes) => writer.shared(bytes),
            }
        }
        known.try_for_each(|known| known.write(writer, &mut before))
    }

    pub(crate) fn into_owned(self) -> TaggedFields<'static> {
        if self.is_empty() {
            return TaggedFields::new();
        }
        let own = |field: TaggedField<'a>| TaggedField { tag: field.tag, data: field.data.into_owned() };
        TaggedFields(Repr::Owned(self.iter().map(own).collect()))
    }
}

/// A tagged field that is an ordinary field of its struct.
pub(crate) struct KnownTag<'s> {
    pub(crate) tag: u32,
    /// Whether this version has it and its value is not the default.
    pub(crate) present: bool,
    pub(crate) write: &'s dyn Fn(&mut Writer) -> Result<(), EncodeError>,
}

impl KnownTag<'_> {
    fn write(&self, writer: &mut Writer, before: &mut Option<u32>) -> Result<(), EncodeError> {
        check_order(self.tag, before)?;
        varint::write_u32(writer, self.tag);
        let len = writer.measure(self.write)?;
        write_u32(writer, len)?;
        (self.write)(writer)
    }
}

fn check_order(tag: u32, before: &mut Option<u32>) -> Result<(), EncodeError> {
    if before.is_some_and(|before| before >= tag) {
        return Err(EncodeError::new(EncodeErrorKind::DuplicateTag));
    }
    *before = Some(tag);
    Ok(())
}

fn write_u32(writer: &mut Writer, value: usize) -> Result<(), EncodeError> {
    let value = i32::try_from(value).map_err(|_| EncodeError::new(EncodeErrorKind::TooLong))?;
    varint::write_u32(writer, value.unsigned_abs());
    Ok(())
}

fn read_data<'a>(reader: &mut Reader<'a>) -> Result<Reader<'a>, DecodeError> {
    let len = varint::read_u32(reader)?;
    reader.take_reader(usize::try_from(len).unwrap_or(usize::MAX))
}

fn read_field<'a>(reader: &mut Reader<'a>) -> Result<TaggedField<'a>, DecodeError> {
    let tag = varint::read_u32(reader)?;
    let mut data = read_data(reader)?;
    let data = data.blob(data.remaining())?;
    Ok(TaggedField { tag, data })
}

impl PartialEq for TaggedFields<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && (self.is_empty() || self.iter().eq(other.iter()))
    }
}

impl fmt::Debug for TaggedFields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|field| (field.tag, field.data))).finish()
    }
}
