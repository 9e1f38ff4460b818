//! One connection: how a session begins and ends, and what may interrupt a statement.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::conversation::{Conversation, Failure};
use super::frame::{self, Message, Opening};
use super::listener::{Phase, Registered, Server, reached};
use super::refusal::{Refusal, state};
use super::reply::Replies;

/// What a client sends.
struct Incoming {
    half: OwnedReadHalf,
    input: BytesMut,
    len_max: usize,
}

/// What is sent to a client. No more is gathered than [`FLUSH_LEN`] and one row.
pub(crate) struct Outgoing {
    half: OwnedWriteHalf,
    pub(crate) replies: Replies,
    stall_timeout: Duration,
}

/// Why a statement does not go on.
enum Interrupt {
    /// The client is gone, or unreachable.
    Gone,
    /// A reason to tell the client.
    Refused(Refusal),
}

/// Serves a connection to its end.
pub(crate) async fn serve(stream: TcpStream, server: Arc<Server>) -> io::Result<()> {
    let (reading, writing) = stream.into_split();
    let settings = &server.settings;
    let mut incoming = Incoming { half: reading, input: BytesMut::new(), len_max: settings.message_len_max };
    let mut outgoing =
        Outgoing { half: writing, replies: Replies::default(), stall_timeout: settings.stall_timeout };
    let opened = timeout(settings.startup_timeout, open(&mut incoming, &mut outgoing, &server));
    let Ok(Some(parameters)) = opened.await.unwrap_or(Ok(None)) else { return Ok(()) };
    let Ok(_place) = Arc::clone(&server.places).try_acquire_owned() else {
        let refusal = Refusal::fatal(state::TOO_MANY_CONNECTIONS, "sorry, too many clients already");
        return outgoing.farewell(&refusal).await;
    };
    let registered = server.register();
    let began = Conversation::begin(&server.engine, &parameters, &registered, &mut outgoing.replies).await;
    let mut conversation = match began {
        Ok(conversation) => conversation,
        Err(refusal) => return outgoing.farewell(&refusal).await,
    };
    outgoing.flush().await?;
    converse(&mut incoming, &mut outgoing, &mut conversation, registered, &server).await
}

/// Answers until a session is asked for; `None` if none is.
async fn open(
    incoming: &mut Incoming,
    outgoing: &mut Outgoing,
    server: &Server,
) -> io::Result<Option<Vec<(String, String)>>> {
    // Each kind of encryption may be asked for once.
    for _ in 0..3 {
        let opening = loop {
            match frame::opening(&mut incoming.input) {
                Ok(Some(opening)) => break opening,
                Ok(None) => {
                    if incoming.read().await? == 0 {
                        return Ok(None);
                    }
                }
                Err(refusal) => {
                    outgoing.farewell(&refusal).await?;
                    return Ok(None);
                }
            }
        };
        match opening {
            Opening::Tls | Opening::Gss => {
                outgoing.replies.no_encryption();
                outgoing.flush().await?;
            }
            Opening::Cancel { process, secret } => {
                server.cancel(process, &secret);
                return Ok(None);
            }
            Opening::Startup { minor, parameters } => {
                // Options of the protocol itself; we know none.
                let unknown: Vec<String> = parameters
                    .iter()
                    .filter(|(name, _)| name.starts_with("_pq_."))
                    .map(|(name, _)| name.clone())
                    .collect();
                if minor > 0 || !unknown.is_empty() {
                    outgoing.replies.negotiate_version(&unknown);
                }
                return Ok(Some(parameters));
            }
        }
    }
    Ok(None)
}

/// Takes message after message, and answers.
async fn converse(
    incoming: &mut Incoming,
    outgoing: &mut Outgoing,
    conversation: &mut Conversation,
    mut registered: Registered,
    server: &Server,
) -> io::Result<()> {
    let mut phase = server.phase.clone();
    // After an error, everything up to the next `Sync` is passed over.
    let mut passing = false;
    loop {
        let message = tokio::select! {
            message = incoming.next() => message?,
            () = reached(&mut phase, Phase::Draining) => Some(Err(stopping())),
            () = sleep(server.settings.idle_timeout) => {
                Some(Err(Refusal::fatal(state::IDLE, "the session has been silent for too long")))
            }
        };
        let Some(message) = message else { return Ok(()) };
        let extended = message.as_ref().map_or_else(|refusal| !refusal.awaits_ready, Message::is_extended);
        let flushes = !extended || matches!(message, Ok(Message::Sync | Message::Flush));
        let refused = match message {
            Ok(Message::Terminate) => return Ok(()),
            Ok(message) if passing && message != Message::Sync => continue,
            Err(refusal) if passing && !refusal.fatal && !refusal.awaits_ready => continue,
            Ok(message) => {
                passing = false;
                registered.cancel.borrow_and_update();
                let limit = conversation.statement_timeout();
                // What plans and runs a statement is large; it is moved once, to the heap.
                let answered = Box::pin(conversation.answer(message, outgoing));
                match watched(answered, incoming, &mut registered.cancel, &mut phase, limit).await {
                    Ok(()) => None,
                    Err(Interrupt::Gone) => return Ok(()),
                    Err(Interrupt::Refused(refusal)) => Some(refusal),
                }
            }
            Err(refusal) => Some(refusal),
        };
        if let Some(refusal) = refused {
            if refusal.fatal {
                return outgoing.farewell(&refusal).await;
            }
            outgoing.replies.error(&refusal);
            conversation.failed(extended, &mut outgoing.replies);
            passing = extended;
        }
        if flushes || passing || outgoing.replies.buffer.len() >= FLUSH_LEN {
            outgoing.flush().await?;
        }
        tokio::task::consume_budget().await;
    }
}

/// Lets a statement work until something interrupts it. What the client sends meanwhile is kept, up to a bound; so it is
/// seen when it goes away.
async fn watched(
    work: impl Future<Output = Result<(), Failure>>,
    incoming: &mut Incoming,
    cancel: &mut watch::Receiver<()>,
    phase: &mut watch::Receiver<Phase>,
    limit: Duration,
) -> Result<(), Interrupt> {
    let canceled = |text: &str| Interrupt::Refused(Refusal::error(state::CANCELED, text));
    let expired = sleep(limit);
    tokio::pin!(work, expired);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done.map_err(|failure| match failure {
                Failure::Refused(refusal) => Interrupt::Refused(refusal),
                Failure::Io => Interrupt::Gone,
            }),
            _ = cancel.changed() => return Err(canceled("canceling statement due to user request")),
            () = reached(phase, Phase::Ended) => return Err(Interrupt::Refused(stopping())),
            () = &mut expired => return Err(canceled("canceling statement due to statement timeout")),
            read = incoming.read(), if incoming.input.len() < incoming.len_max => {
                if !matches!(read, Ok(1..)) {
                    return Err(Interrupt::Gone);
                }
            }
        }
    }
}

fn stopping() -> Refusal {
    Refusal::fatal(state::SHUTDOWN, "terminating connection: the server is shutting down")
}

impl Incoming {
    /// Reads some bytes; 0 at the end. Nothing is lost if it is dropped.
    async fn read(&mut self) -> io::Result<usize> {
        self.input.reserve(READ_LEN);
        self.half.read_buf(&mut self.input).await
    }

    /// The next message, or why it is refused; `None` at the end. Nothing is lost if it is dropped.
    async fn next(&mut self) -> io::Result<Option<Result<Message, Refusal>>> {
        loop {
            match frame::message(&mut self.input, self.len_max) {
                Ok(Some(message)) => return Ok(Some(Ok(message))),
                Err(refusal) => return Ok(Some(Err(refusal))),
                Ok(None) => {
                    if self.read().await? == 0 {
                        return Ok(None);
                    }
                }
            }
        }
    }
}

impl Outgoing {
    /// Sends what has gathered. What a client does not take for too long ends its connection.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        while !self.replies.buffer.is_empty() {
            let written = self.half.write_buf(&mut self.replies.buffer);
            match timeout(self.stall_timeout, written).await {
                Ok(Ok(1..)) => {}
                Ok(Ok(_)) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(Err(error)) => return Err(error),
                Err(_) => return Err(io::ErrorKind::TimedOut.into()),
            }
        }
        Ok(())
    }

    /// Sends what has gathered, if it is much.
    pub(crate) async fn flush_some(&mut self) -> io::Result<()> {
        if self.replies.buffer.len() >= FLUSH_LEN { self.flush().await } else { Ok(()) }
    }

    /// Says why the connection ends.
    async fn farewell(&mut self, refusal: &Refusal) -> io::Result<()> {
        self.replies.error(refusal);
        self.flush().await?;
        self.half.shutdown().await
    }
}

const READ_LEN: usize = 8 << 10;
const FLUSH_LEN: usize = 32 << 10;
