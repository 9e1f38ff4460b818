//! Zero-copy codecs of the Kafka protocol: messages, record batches, frames.
//!
//! This crate turns bytes into messages and messages into bytes, for clients, brokers, proxies and fuzzers. It is not
//! a client: it opens no sockets, starts no tasks and reads no clock. It knows the layout of messages, not their
//! meaning: whether a topic exists is for others to say.
//!
//! # In reading order
//!
//! 1. A [`FrameDecoder`] cuts frames out of a stream.
//! 2. A [`RequestFrame`] or [`ResponseFrame`] is what is in a frame: a header, whose version depends on the request,
//!    and a body. [`messages::Request`] and [`messages::Response`] are enums over the [`ApiKey`].
//! 3. Each message is a struct in [`messages`], the structs inside it are in its module. All of them implement
//!    [`Message`]: they are read and written in a version, and a version that cannot express them is an error.
//! 4. Fields are plain numbers, [`Str`], [`Blob`], [`Array`], [`Uuid`], [`ErrorCode`] and [`Records`]; `Option` where
//!    the protocol allows null in some version. [`TaggedFields`] keeps what a newer peer added.
//! 5. [`records`] reads, judges and builds the batches inside a records field. From the `records` of a request to its
//!    batches it is `records::batches(bytes)`, with the bytes from [`Records::as_slice`] or [`Records::into_bytes`].
//!
//! # Example
//!
//! A broker's turn: one frame in, one frame out.
//!
//! ```
//! use kolumn_kafka_wire::messages::{ApiVersionsResponse, Request, Response, api_versions_response::ApiVersion};
//! use kolumn_kafka_wire::{ApiKey, FrameDecoder, Limits, Part, RequestFrame, encode_response};
//!
//! let mut decoder = FrameDecoder::new(Limits::default());
//! // ApiVersions version 0, correlation id 5, client id "kcat"
//! decoder.extend(&[0, 0, 0, 14, 0, 18, 0, 0, 0, 0, 0, 5, 0, 4, b'k', b'c', b'a', b't']);
//!
//! let frame = decoder.next_frame()?.ok_or("the frame is complete")?;
//! let request = RequestFrame::decode_shared(&frame)?;
//! assert!(matches!(request.body, Request::ApiVersions(_)));
//! assert_eq!(request.header.client_id.as_deref(), Some("kcat"));
//!
//! let versions = ApiKey::all().filter_map(|key| Some((key, key.versions()?))).take(2);
//! let response = ApiVersionsResponse {
//!     api_keys: versions
//!         .map(|(key, range)| ApiVersion {
//!             api_key: key.code(),
//!             min_version: range.min,
//!             max_version: range.max,
//!             ..Default::default()
//!         })
//!         .collect(),
//!     ..Default::default()
//! };
//! let encoded = encode_response(request.header.correlation_id, 0, &Response::from(response))?;
//! assert_eq!(encoded.len(), 4 + 4 + 2 + 4 + 2 * 6);
//! let [Part::Bytes(bytes)] = encoded.parts() else { return Err("one part".into()) };
//! assert_eq!(bytes[..14], [0, 0, 0, 22, 0, 0, 0, 5, 0, 0, 0, 0, 0, 2]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it costs
//!
//! Decoding walks the input once, checks everything and allocates nothing; iterating over an [`Array`] decodes its
//! elements again. A message borrows from the frame. `decode_shared` makes byte strings and records slices of a
//! [`bytes::Bytes`], so that they outlive it without a copy. `into_owned` copies all, into structs that may be much
//! larger than the bytes were.
//!
//! Encoding walks the message twice: to count and find errors, then to fill one buffer. Payloads that are shared are
//! not copied: an [`Encoded`] is a list of parts. [`Records::Deferred`] leaves a gap in it, for records that the sender
//! takes from a file.
//!
//! # Features
//!
//! | feature | default | adds |
//! | --- | --- | --- |
//! | `std` | yes | needed by the codecs below; without it the crate is `no_std` with alloc |
//! | `gzip`, `snappy`, `lz4`, `zstd` | yes | the codecs of record batches |
//!
//! # Where to go next
//!
//! [`messages::FetchResponse`] is a message with everything in it; [`records`] continues where its `records` field
//! ends; the README in `schemas` explains what the messages are generated from.
#![cfg_attr(not(feature = "std"), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod api_key;
mod api_version;
mod dispatch;
mod error;
mod error_code;
mod frame;
mod header;
mod limits;
mod message;
pub mod messages;
mod primitive;
mod reader;
pub mod records;
mod writer;

pub use api_key::ApiKey;
pub use api_version::VersionRange;
pub use error::{DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind};
pub use error_code::ErrorCode;
pub use frame::FrameDecoder;
pub use header::{RequestFrame, ResponseFrame, encode_frame, encode_request, encode_response};
pub use limits::Limits;
pub use message::{Message, RequestMessage, ResponseMessage};
pub use primitive::{
    Array, Blob, Form, IntoIter, Iter, Records, Str, TaggedField, TaggedFields, Uuid, Value,
};
pub use reader::Reader;
pub use writer::{Encoded, Part, Writer};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
