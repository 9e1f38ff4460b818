//! The body of an upload, at whose end the intent is written.
//!
//! A storage can commit an upload only after it has seen the whole body. So the intent is written when the last bytes are
//! there and before the storage gets them: however long the upload takes, its intent is under way only while it is
//! committed, it has the size, and an upload that breaks off has none.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::Stream;
use parking_lot::Mutex;
use s3s::dto::StreamingBlob;
use s3s::stream::{ByteStream, RemainingLength};
use s3s::{S3Error, S3Result, StdError};

use super::begun::Begun;

/// Writes the intent of an upload of so many bytes.
pub(super) type Opener = Box<dyn FnOnce(u64) -> Opening + Send>;
/// An intent that is being written.
pub(super) type Opening = Pin<Box<dyn Future<Output = S3Result<Option<Begun>>> + Send>>;

/// What became of the intent.
pub(super) enum Passage {
    /// The end was not reached.
    Waiting,
    /// It is written, if it is wanted; the body had so many bytes.
    Begun(Option<Box<Begun>>, u64),
    /// It could not be written, and so the storage was not given the end.
    Refused(S3Error),
}

/// The side of the one who gave the body away.
pub(super) struct Gate {
    passage: Arc<Mutex<Passage>>,
}

impl Gate {
    /// Puts a gate before the end of a body, whose length may be known.
    pub(super) fn before_end(body: &mut Option<StreamingBlob>, len: Option<u64>, opener: Opener) -> Self {
        let passage = Arc::new(Mutex::new(Passage::Waiting));
        if let Some(inner) = body.take() {
            let len = inner.remaining_length().exact().and_then(|len| u64::try_from(len).ok()).or(len);
            let state = Mutex::new(State::Closed(opener));
            let gated = Gated { inner, len, counted: 0, state, passage: Arc::clone(&passage) };
            *body = Some(StreamingBlob::new(gated));
        }
        Self { passage }
    }

    pub(super) fn passage(self) -> Passage {
        std::mem::replace(&mut *self.passage.lock(), Passage::Waiting)
    }
}

struct Gated {
    inner: StreamingBlob,
    len: Option<u64>,
    counted: u64,
    /// Never locked by two: it makes the future of the opening shareable, as bodies have to be.
    state: Mutex<State>,
    passage: Arc<Mutex<Passage>>,
}

enum State {
    Closed(Opener),
    /// The last bytes wait for it, if there are any.
    Opening(Opening, Option<Bytes>),
    Open,
}

impl Gated {
    fn begin(&mut self, last: Option<Bytes>) {
        let state = self.state.get_mut();
        if let State::Closed(opener) = std::mem::replace(state, State::Open) {
            *state = State::Opening(opener(self.counted), last);
        }
    }

    fn is_closed(&mut self) -> bool {
        matches!(self.state.get_mut(), State::Closed(_))
    }
}

impl Stream for Gated {
    type Item = Result<Bytes, StdError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let State::Opening(opening, last) = this.state.get_mut() {
                let outcome = ready!(opening.as_mut().poll(cx));
                let last = last.take();
                *this.state.get_mut() = State::Open;
                return Poll::Ready(match outcome {
                    Ok(begun) => {
                        *this.passage.lock() = Passage::Begun(begun.map(Box::new), this.counted);
                        last.map(Ok)
                    }
                    Err(error) => {
                        *this.passage.lock() = Passage::Refused(error);
                        Some(Err("the event of this upload could not be kept".into()))
                    }
                });
            }
            match ready!(Pin::new(&mut this.inner).poll_next(cx)) {
                Some(Ok(bytes)) => {
                    this.counted = this.counted.saturating_add(bytes.len() as u64);
                    if this.len != Some(this.counted) || !this.is_closed() {
                        return Poll::Ready(Some(Ok(bytes)));
                    }
                    this.begin(Some(bytes));
                }
                None if this.is_closed() => this.begin(None),
                other => return Poll::Ready(other),
            }
        }
    }
}

impl ByteStream for Gated {
    fn remaining_length(&self) -> RemainingLength {
        self.inner.remaining_length()
    }
}
