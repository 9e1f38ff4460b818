//! Headers before requests and responses, and whole frames made of header and body.

use bytes::Bytes;

use crate::api_key::ApiKey;
use crate::error::{DecodeError, EncodeError};
use crate::message::{Message, RequestMessage};
use crate::messages::{Request, RequestHeader, Response, ResponseHeader};
use crate::reader::Reader;
use crate::writer::{Encoded, Writer};

/// A request with its header, as in one frame.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RequestFrame<'a> {
    /// What stands before the request.
    pub header: RequestHeader<'a>,
    /// The request itself.
    pub body: Request<'a>,
}

/// A response with its header, as in one frame.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ResponseFrame<'a> {
    /// What stands before the response.
    pub header: ResponseHeader<'a>,
    /// The response itself.
    pub body: Response<'a>,
}

impl<'a> RequestHeader<'a> {
    /// The header of a request.
    #[must_use]
    pub fn new(key: ApiKey, version: i16, correlation_id: i32) -> Self {
        Self { request_api_key: key.code(), request_api_version: version, correlation_id, ..Self::default() }
    }

    /// What kind of request follows.
    #[must_use]
    pub fn api_key(&self) -> ApiKey {
        ApiKey::new(self.request_api_key)
    }

    /// Reads the header of a frame, in the version that its first fields call for.
    ///
    /// A key that this crate does not know is read as a classic header: enough to answer or to report it.
    ///
    /// # Errors
    /// If the bytes are not a header.
    pub fn read_frame(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let mut ahead = *reader;
        let located = |error: DecodeError| error.in_message(Self::NAME, 0);
        let key = ApiKey::new(ahead.i16().map_err(located)?);
        let version = ahead.i16().map_err(located)?;
        <Self as Message>::read(reader, key.request_header_version(version))
    }
}

impl<'a> RequestFrame<'a> {
    /// Reads a frame without its length; everything borrows from it, records share it.
    ///
    /// # Errors
    /// If the frame is not exactly one request that this crate knows.
    pub fn decode_shared(frame: &'a Bytes) -> Result<Self, DecodeError> {
        Self::read(Reader::shared(frame))
    }

    /// Reads a frame without its length; everything borrows from it.
    ///
    /// # Errors
    /// If the frame is not exactly one request that this crate knows.
    pub fn decode(frame: &'a [u8]) -> Result<Self, DecodeError> {
        Self::read(Reader::new(frame))
    }

    fn read(mut reader: Reader<'a>) -> Result<Self, DecodeError> {
        let header = RequestHeader::read_frame(&mut reader)?;
        let body = Request::read(header.api_key(), header.request_api_version, &mut reader)?;
        reader.finish()?;
        Ok(Self { header, body })
    }
}

impl<'a> ResponseFrame<'a> {
    /// Reads a frame without its length, given what it answers; everything borrows from it, records share it.
    ///
    /// # Errors
    /// If the frame is not exactly one such response.
    pub fn decode_shared(frame: &'a Bytes, key: ApiKey, version: i16) -> Result<Self, DecodeError> {
        let mut reader = Reader::shared(frame);
        let header =
            <ResponseHeader<'_> as Message>::read(&mut reader, key.response_header_version(version))?;
        let body = Response::read(key, version, &mut reader)?;
        reader.finish()?;
        Ok(Self { header, body })
    }
}

/// Encodes a request as a whole frame: length, header, body. The header's key and version are those of the body.
///
/// # Errors
/// If the version does not exist or cannot express the request.
pub fn encode_request<'a, R: RequestMessage<'a>>(
    correlation_id: i32,
    client_id: Option<&str>,
    version: i16,
    body: &R,
) -> Result<Encoded, EncodeError> {
    let header = RequestHeader {
        client_id: client_id.map(Into::into),
        ..RequestHeader::new(R::API_KEY, version, correlation_id)
    };
    encode_frame(&mut |writer| {
        Message::write(&header, writer, R::API_KEY.request_header_version(version))?;
        body.write(writer, version)
    })
}

/// Encodes a response as a whole frame: length, header, body.
///
/// # Errors
/// If the version does not exist or cannot express the response.
pub fn encode_response(
    correlation_id: i32,
    version: i16,
    body: &Response<'_>,
) -> Result<Encoded, EncodeError> {
    let header = ResponseHeader { correlation_id, ..ResponseHeader::default() };
    encode_frame(&mut |writer| {
        Message::write(&header, writer, body.api_key().response_header_version(version))?;
        body.write(writer, version)
    })
}

/// Puts the length before what `write` writes.
///
/// # Errors
/// What `write` returns, or if the frame is longer than an int32 can say.
pub fn encode_frame(
    write: &mut dyn FnMut(&mut Writer) -> Result<(), EncodeError>,
) -> Result<Encoded, EncodeError> {
    crate::writer::frame(write)
}
