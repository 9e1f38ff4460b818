//! Cuts what a client sends into messages. No I/O; no byte of a client makes it panic, and nothing is allocated by a length
//! that a client claims.
//!
//! ```text
//! opening  | length i32 | code i32 | body |         without a type, until the session has begun
//! message  | type u8 | length i32 | body |          the length counts itself
//! ```

use bytes::{Buf, Bytes, BytesMut};

use super::refusal::{Refusal, state};

/// What a client begins with.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// Asks for TLS.
    Tls,
    /// Asks for encryption by GSSAPI.
    Gss,
    /// Asks to cancel the statement of another connection.
    Cancel { process: i32, secret: Bytes },
    /// Begins a session.
    Startup { minor: u16, parameters: Vec<(String, String)> },
}

/// A message of a session.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Message {
    Query(String),
    Parse { name: String, text: String, types: Vec<u32> },
    Bind(Bind),
    Describe(Target),
    Execute { portal: String, rows_max: usize },
    Close(Target),
    Flush,
    Sync,
    Terminate,
}

/// Gives values to the parameters of a statement.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Bind {
    pub(crate) portal: String,
    pub(crate) statement: String,
    pub(crate) formats: Vec<Format>,
    pub(crate) values: Vec<Option<Bytes>>,
    pub(crate) result_formats: Vec<Format>,
}

/// What is described or closed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Statement(String),
    Portal(String),
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Binary,
}

impl Format {
    /// The format of a value: of all if one is given, text if none is.
    pub(crate) fn of(formats: &[Self], index: usize) -> Self {
        match formats {
            [] => Self::Text,
            [all] => *all,
            each => each.get(index).copied().unwrap_or(Self::Text),
        }
    }

    /// The number that stands for it.
    pub(crate) const fn code(self) -> i16 {
        match self {
            Self::Text => 0,
            Self::Binary => 1,
        }
    }
}

impl Message {
    /// Whether an error is followed by silence until the next `Sync`.
    pub(crate) const fn is_extended(&self) -> bool {
        !matches!(self, Self::Query(_) | Self::Terminate)
    }
}

/// Takes the opening from the bytes, if it is complete.
pub(crate) fn opening(input: &mut BytesMut) -> Result<Option<Opening>, Refusal> {
    let Some(len) = input.first_chunk().map(|bytes| i32::from_be_bytes(*bytes)) else { return Ok(None) };
    let len = length(len, 8, OPENING_LEN_MAX)?;
    if input.len() < len {
        return Ok(None);
    }
    let mut body = input.split_to(len).freeze();
    let _ = u32(&mut body)?;
    match u32(&mut body)? {
        CODE_TLS => Ok(Some(Opening::Tls)),
        CODE_GSS => Ok(Some(Opening::Gss)),
        CODE_CANCEL => {
            let process = body.try_get_i32().map_err(|_| short())?;
            Ok(Some(Opening::Cancel { process, secret: body }))
        }
        version if version >> 16 == 3 => {
            let minor = u16::try_from(version & 0xffff).unwrap_or_default();
            let mut parameters = Vec::new();
            loop {
                let name = text(&mut body)?;
                if name.is_empty() {
                    return Ok(Some(Opening::Startup { minor, parameters }));
                }
                parameters.push((name, text(&mut body)?));
            }
        }
        version => Err(Refusal::fatal(
            state::FEATURE_NOT_SUPPORTED,
            format!("unsupported frontend protocol {}.{}", version >> 16, version & 0xffff),
        )),
    }
}

/// Takes a message from the bytes, if it is complete. After an error that is not fatal, the message is taken.
pub(crate) fn message(input: &mut BytesMut, len_max: usize) -> Result<Option<Message>, Refusal> {
    let Some([kind, len @ ..]) = input.first_chunk::<5>().copied() else { return Ok(None) };
    if !KINDS.contains(&kind) {
        return Err(Refusal::fatal(state::PROTOCOL, format!("invalid frontend message type {kind}")));
    }
    let len = length(i32::from_be_bytes(len), 4, len_max)?;
    if input.len() < len.saturating_add(1) {
        return Ok(None);
    }
    let mut body = input.split_to(len.saturating_add(1)).freeze();
    body.advance(5);
    let message = body_of(kind, &mut body).and_then(|message| {
        let is_whole = !body.has_remaining();
        is_whole.then_some(message).ok_or_else(|| Refusal::error(state::PROTOCOL, "invalid message format"))
    });
    message.map(Some).map_err(|refusal| Refusal { awaits_ready: matches!(kind, b'Q' | b'S'), ..refusal })
}

fn body_of(kind: u8, body: &mut Bytes) -> Result<Message, Refusal> {
    Ok(match kind {
        b'Q' => Message::Query(text(body)?),
        b'P' => Message::Parse { name: text(body)?, text: text(body)?, types: many(body, u32)? },
        b'B' => Message::Bind(Bind {
            portal: text(body)?,
            statement: text(body)?,
            formats: many(body, format)?,
            values: many(body, value)?,
            result_formats: many(body, format)?,
        }),
        b'D' => Message::Describe(target(body)?),
        b'C' => Message::Close(target(body)?),
        b'E' => {
            let portal = text(body)?;
            // Zero and less: all rows.
            let rows_max = body.try_get_i32().map_err(|_| short())?;
            Message::Execute { portal, rows_max: usize::try_from(rows_max).unwrap_or(0) }
        }
        b'H' => Message::Flush,
        b'S' => Message::Sync,
        b'X' => Message::Terminate,
        _ => {
            return Err(Refusal::fatal(
                state::PROTOCOL,
                "unexpected message: nothing is copied or asked for",
            ));
        }
    })
}

fn length(claimed: i32, min: usize, max: usize) -> Result<usize, Refusal> {
    match usize::try_from(claimed) {
        Ok(len) if (min..=max).contains(&len) => Ok(len),
        Ok(len) if len > max => {
            let text = format!("a message of {len} bytes is longer than the {max} that are allowed");
            Err(Refusal::fatal(state::LIMIT_EXCEEDED, text))
        }
        _ => Err(Refusal::fatal(state::PROTOCOL, "invalid message length")),
    }
}

fn text(body: &mut Bytes) -> Result<String, Refusal> {
    let end = body.iter().position(|byte| *byte == 0).ok_or_else(short)?;
    let text = body.split_to(end);
    body.advance(1);
    let text = std::str::from_utf8(&text);
    text.map(str::to_owned)
        .map_err(|_| Refusal::error(state::NOT_UTF8, "invalid byte sequence for encoding UTF8"))
}

/// `count:i16 element*count`. Every element takes at least two bytes, so the vector stays in proportion to the message.
fn many<T>(body: &mut Bytes, element: impl Fn(&mut Bytes) -> Result<T, Refusal>) -> Result<Vec<T>, Refusal> {
    let count = body.try_get_u16().map_err(|_| short())?;
    (0..count).map(|_| element(body)).collect()
}

fn u32(body: &mut Bytes) -> Result<u32, Refusal> {
    body.try_get_u32().map_err(|_| short())
}

fn format(body: &mut Bytes) -> Result<Format, Refusal> {
    match body.try_get_i16().map_err(|_| short())? {
        0 => Ok(Format::Text),
        1 => Ok(Format::Binary),
        code => Err(Refusal::error(state::PROTOCOL, format!("unsupported format code {code}"))),
    }
}

fn value(body: &mut Bytes) -> Result<Option<Bytes>, Refusal> {
    match body.try_get_i32().map_err(|_| short())? {
        -1 => Ok(None),
        len => match usize::try_from(len) {
            Ok(len) if len <= body.len() => Ok(Some(body.split_to(len))),
            _ => Err(short()),
        },
    }
}

fn target(body: &mut Bytes) -> Result<Target, Refusal> {
    match body.try_get_u8().map_err(|_| short())? {
        b'S' => Ok(Target::Statement(text(body)?)),
        b'P' => Ok(Target::Portal(text(body)?)),
        other => Err(Refusal::error(state::PROTOCOL, format!("neither statement nor portal: {other}"))),
    }
}

fn short() -> Refusal {
    Refusal::error(state::PROTOCOL, "insufficient data left in message")
}

/// As PostgreSQL bounds what comes before the session.
const OPENING_LEN_MAX: usize = 10_000;
const CODE_CANCEL: u32 = 80_877_102;
const CODE_TLS: u32 = 80_877_103;
const CODE_GSS: u32 = 80_877_104;
const KINDS: &[u8] = b"QPBDCEHSXFcdfp";

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(kind: u8, body: &[u8]) -> BytesMut {
        let mut frame = vec![kind];
        frame.extend_from_slice(&i32::try_from(body.len() + 4).expect("short").to_be_bytes());
        frame.extend_from_slice(body);
        BytesMut::from(&*frame)
    }

    #[track_caller]
    fn check(kind: u8, body: &[u8], expect: Message) {
        let mut whole = framed(kind, body);
        for len in 0..whole.len() {
            let mut part = BytesMut::from(&whole[..len]);
            assert_eq!(message(&mut part, 100).expect("no fault yet"), None);
            assert_eq!(part.len(), len, "nothing is taken from a part");
        }
        assert_eq!(message(&mut whole, 100).expect("fine"), Some(expect));
        assert!(whole.is_empty());
    }

    #[track_caller]
    fn refused(kind: u8, body: &[u8], fatal: bool) {
        let mut input = framed(kind, body);
        input.extend_from_slice(b"next");
        let refusal = message(&mut input, 100).expect_err("refused");
        assert_eq!(refusal.fatal, fatal, "{}", refusal.message);
        assert_eq!(refusal.awaits_ready, b"QS".contains(&kind), "{}", refusal.message);
        assert!(fatal || &*input == b"next", "the next message is reached");
    }

    #[test]
    fn whole_messages_are_taken_and_parts_are_left() {
        check(b'Q', b"SELECT 1\0", Message::Query("SELECT 1".into()));
        let parse = Message::Parse { name: "s".into(), text: "x".into(), types: vec![25] };
        check(b'P', b"s\0x\0\0\x01\0\0\0\x19", parse);
        let bind = Bind {
            portal: String::new(),
            statement: "s".into(),
            formats: vec![Format::Binary],
            values: vec![Some(Bytes::from_static(b"ab")), None],
            result_formats: vec![Format::Text],
        };
        let body = b"\0s\0\0\x01\0\x01\0\x02\0\0\0\x02ab\xff\xff\xff\xff\0\x01\0\0";
        check(b'B', body, Message::Bind(bind));
        check(b'D', b"Ss\0", Message::Describe(Target::Statement("s".into())));
        check(b'E', b"p\0\0\0\0\x07", Message::Execute { portal: "p".into(), rows_max: 7 });
        check(b'E', b"p\0\xff\xff\xff\xff", Message::Execute { portal: "p".into(), rows_max: 0 });
        check(b'S', b"", Message::Sync);
    }

    #[test]
    fn bodies_that_lie_about_their_counts_and_lengths_are_refused() {
        refused(b'P', b"s\0x\0\xff\xff\0\0\0\x19", false);
        refused(b'B', b"\0s\0\0\0\0\x01\x7f\xff\xff\xffab", false);
        refused(b'B', b"\0s\0\0\0\0\x01\xff\xff\xff\xfeab\0\0", false);
        refused(b'C', b"", false);
        refused(b'Q', b"no end", false);
        refused(b'Q', b"\xff\xfe\0", false);
        refused(b'Q', b"SELECT 1\0more", false);
        refused(b'S', b"more", false);
        refused(b'p', b"secret\0", true);
        refused(b'?', b"", true);
    }

    #[test]
    fn lengths_that_are_claimed_are_checked_before_anything_is_awaited() {
        for claimed in [i32::MAX, 101, 3, 0, -1, i32::MIN] {
            let mut input = BytesMut::from(&b"Q"[..]);
            input.extend_from_slice(&claimed.to_be_bytes());
            assert!(message(&mut input, 100).expect_err("refused").fatal, "{claimed}");
            let mut input = BytesMut::from(&claimed.saturating_add(10_000).to_be_bytes()[..]);
            assert!(claimed == 3 || claimed == 101 || claimed <= 0 || opening(&mut input).is_err());
        }
    }

    #[test]
    fn openings_are_told_apart() {
        let mut tls = BytesMut::from(&b"\0\0\0\x08\x04\xd2\x16\x2f"[..]);
        assert_eq!(opening(&mut tls).expect("fine"), Some(Opening::Tls));
        let mut cancel = BytesMut::from(&b"\0\0\0\x10\x04\xd2\x16\x2e\0\0\0\x05abcd"[..]);
        let secret = Bytes::from_static(b"abcd");
        assert_eq!(opening(&mut cancel).expect("fine"), Some(Opening::Cancel { process: 5, secret }));
        let mut startup = BytesMut::from(&b"\0\0\0\x10\0\x03\0\0user\0me\0"[..]);
        assert!(opening(&mut startup).is_err(), "the list has no end");
        let mut startup = BytesMut::from(&b"\0\0\0\x11\0\x03\0\0user\0me\0\0"[..]);
        let parameters = vec![("user".to_owned(), "me".to_owned())];
        assert_eq!(opening(&mut startup).expect("fine"), Some(Opening::Startup { minor: 0, parameters }));
        let mut old = BytesMut::from(&b"\0\0\0\x08\0\x02\0\0"[..]);
        assert!(opening(&mut old).expect_err("refused").fatal);
    }
}
