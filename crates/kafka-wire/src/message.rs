//! What every message can do: be read and written in each of its versions.

use bytes::Bytes;

use crate::api_key::ApiKey;
use crate::api_version::VersionRange;
use crate::error::{DecodeError, EncodeError, EncodeErrorKind, Reason};
use crate::primitive::{Form, Value};
use crate::reader::Reader;
use crate::writer::{self, Encoded, Writer};

/// A whole message: a request, a response, a header, or data that is stored inside records.
///
/// Implemented by generated types only. Reading and writing never panic and never recurse deeper than the schema.
pub trait Message<'a>: Value<'a> {
    /// The name in the protocol.
    const NAME: &'static str;
    /// The versions that can be read and written.
    const VERSIONS: VersionRange;
    /// The first version with compact lengths and tagged fields.
    const FLEXIBLE: Option<i16>;

    /// Reads the message and leaves the reader behind it.
    ///
    /// # Errors
    /// If the version does not exist or the bytes are not this message.
    fn read(reader: &mut Reader<'a>, version: i16) -> Result<Self, DecodeError> {
        let Some(form) = form::<Self>(version) else {
            return Err(reader.error(Reason::Version).in_message(Self::NAME, version));
        };
        Self::read_value(reader, form).map_err(|error| error.in_message(Self::NAME, version))
    }

    /// Writes the message.
    ///
    /// # Errors
    /// If the version does not exist or cannot express the message.
    fn write(&self, writer: &mut Writer, version: i16) -> Result<(), EncodeError> {
        match form::<Self>(version) {
            Some(form) => self.write_value(writer, form),
            None => Err(EncodeError::new(EncodeErrorKind::UnsupportedVersion)),
        }
        .map_err(|error| error.in_message(Self::NAME, version))
    }

    /// Decodes exactly these bytes; everything in the message borrows from them.
    ///
    /// # Errors
    /// As [`Message::read`], or if bytes are left over.
    fn decode(bytes: &'a [u8], version: i16) -> Result<Self, DecodeError> {
        decode_all(Reader::new(bytes), version)
    }

    /// Decodes exactly these bytes; byte strings and records in the message share the buffer.
    ///
    /// # Errors
    /// As [`Message::read`], or if bytes are left over.
    fn decode_shared(bytes: &'a Bytes, version: i16) -> Result<Self, DecodeError> {
        decode_all(Reader::shared(bytes), version)
    }

    /// How many bytes the encoded message has.
    ///
    /// # Errors
    /// If the message cannot be encoded in this version.
    fn encoded_len(&self, version: i16) -> Result<usize, EncodeError> {
        let counted = writer::count(true, &mut |writer| self.write(writer, version))?;
        Ok(counted.len())
    }

    /// Encodes with one allocation for what is copied; large shared payloads are parts of their own.
    ///
    /// # Errors
    /// If the message cannot be encoded in this version.
    fn encode(&self, version: i16) -> Result<Encoded, EncodeError> {
        Encoded::build(|writer| self.write(writer, version))
    }

    /// Encodes into one contiguous buffer.
    ///
    /// # Errors
    /// If the message cannot be encoded in this version, or has deferred records.
    fn encode_to_bytes(&self, version: i16) -> Result<Bytes, EncodeError> {
        Encoded::build_contiguous(|writer| self.write(writer, version))
    }
}

/// A request, which knows its API key and the response to it.
pub trait RequestMessage<'a>: Message<'a> {
    /// The key that announces it in the header.
    const API_KEY: ApiKey;
    /// What answers it, in the same version.
    type Response<'r>: ResponseMessage<'r>;
}

/// A response, which knows the API key of its request.
pub trait ResponseMessage<'a>: Message<'a> {
    /// The key of the request.
    const API_KEY: ApiKey;
}

fn form<'a, M: Message<'a>>(version: i16) -> Option<Form> {
    M::VERSIONS
        .contains(version)
        .then(|| Form::new(version, M::FLEXIBLE.is_some_and(|first| version >= first)))
}

fn decode_all<'a, M: Message<'a>>(mut reader: Reader<'a>, version: i16) -> Result<M, DecodeError> {
    let message = M::read(&mut reader, version)?;
    reader.finish().map_err(|error| error.in_message(M::NAME, version))?;
    Ok(message)
}
