//! Arrays: a checked view of the wire that is decoded while it is walked, or elements in memory.

use alloc::vec::{self, Vec};
use core::iter::FusedIterator;
use core::marker::PhantomData;
use core::{fmt, slice};

use super::{Classic, Form, Value, check_null, null_not_allowed, read_len};
use crate::error::{DecodeError, EncodeError, Reason};
use crate::reader::Reader;
use crate::writer::Writer;

/// The elements of an array field.
///
/// Decoding walks the elements once, which finds every error, and keeps only where they lie; iterating decodes
/// them again, without allocating. For encoding it is made of a vector or a slice.
///
/// ```
/// use kolumn_kafka_wire::Array;
///
/// let replicas = Array::from(vec![1, 2, 3]);
/// assert_eq!(replicas.len(), 3);
/// assert_eq!(replicas.iter().max(), Some(3));
/// ```
#[derive(Clone)]
pub struct Array<'a, T>(Repr<'a, T>);

#[derive(Clone)]
enum Repr<'a, T> {
    /// INVARIANT: `count` elements were read from exactly these bytes.
    Wire(Wire<'a, T>),
    Slice(&'a [T]),
    Owned(Vec<T>),
}

#[derive(Clone)]
struct Wire<'a, T> {
    reader: Reader<'a>,
    count: usize,
    form: Form,
    element: PhantomData<T>,
}

impl<T> Array<'_, T> {
    /// No elements.
    #[must_use]
    pub const fn new() -> Self {
        Self(Repr::Slice(&[]))
    }

    /// How many elements there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Wire(wire) => wire.count,
            Repr::Slice(slice) => slice.len(),
            Repr::Owned(vec) => vec.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements, unless the array is a view of the wire.
    #[must_use]
    pub fn as_slice(&self) -> Option<&[T]> {
        match &self.0 {
            Repr::Wire(_) => None,
            Repr::Slice(slice) => Some(slice),
            Repr::Owned(vec) => Some(vec),
        }
    }
}

impl<'a, T: Value<'a>> Array<'a, T> {
    /// Yields the elements by value: decoded from the wire, or cloned.
    #[must_use]
    pub fn iter(&self) -> Iter<'_, 'a, T> {
        Iter(match &self.0 {
            Repr::Wire(wire) => Source::Wire(wire.clone()),
            Repr::Slice(slice) => Source::Slice(slice.iter()),
            Repr::Owned(vec) => Source::Slice(vec.iter()),
        })
    }

    pub(crate) fn read_nullable(
        reader: &mut Reader<'a>,
        form: Form,
        null_allowed: bool,
    ) -> Result<Option<Self>, DecodeError> {
        let array = match read_len(reader, form, Classic::Int32)? {
            None => None,
            Some(count) => Some(Self::read_elements(reader, form, count)?),
        };
        check_null(array, reader, null_allowed)
    }

    pub(crate) fn write_nullable(
        value: Option<&Self>,
        writer: &mut Writer,
        form: Form,
        null_allowed: bool,
    ) -> Result<(), EncodeError> {
        match value {
            Some(array) => array.write_value(writer, form),
            None if !null_allowed => Err(null_not_allowed()),
            None if form.flexible => writer.compact_len(None),
            None => writer.classic_len(None),
        }
    }

    fn read_elements(reader: &mut Reader<'a>, form: Form, count: usize) -> Result<Self, DecodeError> {
        let element_len_min = T::LEN.unwrap_or(1);
        if count.checked_mul(element_len_min).is_none_or(|len| len > reader.remaining()) {
            return Err(reader.error(Reason::Count { claimed: count, left: reader.remaining() }));
        }
        let start = *reader;
        let mut walk = reader.borrowing();
        if let Some(len) = T::LEN {
            walk.take(count * len)?;
        } else {
            for index in 0..count {
                T::read_value(&mut walk, form).map_err(|error| error.at_index(index))?;
            }
        }
        reader.set_position_of(&walk);
        Ok(Self(Repr::Wire(Wire { reader: start.until(reader), count, form, element: PhantomData })))
    }
}

/// `ARRAY => count:INT32 element*count`, or `COMPACT_ARRAY => count+1:UNSIGNED_VARINT element*count`
impl<'a, T: Value<'a>> Value<'a> for Array<'a, T> {
    type Owned = Array<'static, T::Owned>;

    fn read_value(reader: &mut Reader<'a>, form: Form) -> Result<Self, DecodeError> {
        Ok(Self::read_nullable(reader, form, false)?.unwrap_or_default())
    }

    fn write_value(&self, writer: &mut Writer, form: Form) -> Result<(), EncodeError> {
        if form.flexible {
            writer.compact_len(Some(self.len()))?;
        } else {
            writer.classic_len(Some(self.len()))?;
        }
        // plain loops: this is compiled for every struct of the protocol
        let mut index = 0;
        match self.as_slice() {
            Some(elements) => {
                for element in elements {
                    element.write_value(writer, form).map_err(|error| error.at_index(index))?;
                    index += 1;
                }
            }
            None => {
                for element in self {
                    element.write_value(writer, form).map_err(|error| error.at_index(index))?;
                    index += 1;
                }
            }
        }
        Ok(())
    }

    fn into_owned(self) -> Array<'static, T::Owned> {
        let mut owned = Vec::with_capacity(self.len());
        for element in self {
            owned.push(element.into_owned());
        }
        Array(Repr::Owned(owned))
    }
}

impl<T> Default for Array<'_, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> From<Vec<T>> for Array<'_, T> {
    fn from(elements: Vec<T>) -> Self {
        Self(Repr::Owned(elements))
    }
}

impl<'a, T> From<&'a [T]> for Array<'a, T> {
    fn from(elements: &'a [T]) -> Self {
        Self(Repr::Slice(elements))
    }
}

impl<'a, T> From<&'a Vec<T>> for Array<'a, T> {
    fn from(elements: &'a Vec<T>) -> Self {
        Self(Repr::Slice(elements))
    }
}

impl<'a, T, const N: usize> From<&'a [T; N]> for Array<'a, T> {
    fn from(elements: &'a [T; N]) -> Self {
        Self(Repr::Slice(elements))
    }
}

impl<T> FromIterator<T> for Array<'_, T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        Self(Repr::Owned(elements.into_iter().collect()))
    }
}

impl<'a, T: Value<'a> + PartialEq> PartialEq for Array<'a, T> {
    fn eq(&self, other: &Self) -> bool {
        let mut others = other.iter();
        for element in self {
            if others.next() != Some(element) {
                return false;
            }
        }
        others.next().is_none()
    }
}

impl<'a, T: Value<'a> + fmt::Debug> fmt::Debug for Array<'a, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Walks the elements of an [`Array`].
pub struct Iter<'s, 'a, T>(Source<'s, 'a, T>);

enum Source<'s, 'a, T> {
    Wire(Wire<'a, T>),
    Slice(slice::Iter<'s, T>),
}

impl<'a, T: Value<'a>> Wire<'a, T> {
    fn next(&mut self) -> Option<T> {
        self.count = self.count.checked_sub(1)?;
        let element = T::read_value(&mut self.reader, self.form);
        debug_assert!(element.is_ok(), "the elements of a view were read before");
        if element.is_err() {
            self.count = 0;
        }
        element.ok()
    }
}

impl<'a, T: Value<'a>> Iterator for Iter<'_, 'a, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        match &mut self.0 {
            Source::Wire(wire) => wire.next(),
            Source::Slice(elements) => elements.next().cloned(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = match &self.0 {
            Source::Wire(wire) => wire.count,
            Source::Slice(elements) => elements.len(),
        };
        (len, Some(len))
    }
}

impl<'a, T: Value<'a>> ExactSizeIterator for Iter<'_, 'a, T> {}
impl<'a, T: Value<'a>> FusedIterator for Iter<'_, 'a, T> {}

impl<T> fmt::Debug for Iter<'_, '_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter").finish_non_exhaustive()
    }
}

/// Walks the elements of an [`Array`] that it took over.
pub struct IntoIter<'a, T>(OwnedSource<'a, T>);

enum OwnedSource<'a, T> {
    Wire(Wire<'a, T>),
    Slice(slice::Iter<'a, T>),
    Owned(vec::IntoIter<T>),
}

impl<'a, T: Value<'a>> Iterator for IntoIter<'a, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        match &mut self.0 {
            OwnedSource::Wire(wire) => wire.next(),
            OwnedSource::Slice(elements) => elements.next().cloned(),
            OwnedSource::Owned(elements) => elements.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = match &self.0 {
            OwnedSource::Wire(wire) => wire.count,
            OwnedSource::Slice(elements) => elements.len(),
            OwnedSource::Owned(elements) => elements.len(),
        };
        (len, Some(len))
    }
}

impl<'a, T: Value<'a>> ExactSizeIterator for IntoIter<'a, T> {}
impl<'a, T: Value<'a>> FusedIterator for IntoIter<'a, T> {}

impl<T> fmt::Debug for IntoIter<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntoIter").finish_non_exhaustive()
    }
}

impl<'s, 'a, T: Value<'a>> IntoIterator for &'s Array<'a, T> {
    type Item = T;
    type IntoIter = Iter<'s, 'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, T: Value<'a>> IntoIterator for Array<'a, T> {
    type Item = T;
    type IntoIter = IntoIter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        IntoIter(match self.0 {
            Repr::Wire(wire) => OwnedSource::Wire(wire),
            Repr::Slice(slice) => OwnedSource::Slice(slice.iter()),
            Repr::Owned(vec) => OwnedSource::Owned(vec.into_iter()),
        })
    }
}
