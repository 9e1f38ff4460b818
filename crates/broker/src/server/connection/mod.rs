//! One task per connection: moves bytes between socket and engine, and starts requests in order.
//!
//! ```text
//!          readable              next_request              front of the queue
//! socket ----------> engine ----------------> dispatch ----------------------> engine ----> socket
//!            ^ budget                           ^ one `Ordered` at a time        ^ few unsent bytes
//! ```
//! Each arrow waits for the one behind it: what cannot be sent is not computed, what cannot be computed is not
//! started, what cannot be started is not read. Answers are computed only at the front of the queue, because nothing
//! behind it could be sent anyway.

mod closing;
mod outgoing;

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::io::{AsyncReadExt, Interest};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::Instant;

use self::outgoing::Outgoing;
use super::wall_clock;
use crate::answers::Held;
use crate::api;
use crate::bridge::StoredRange;
use crate::budget::{FLOOR_LEN, Lease, SMALL_FRAME_LEN_MAX};
use crate::connection::{Connection, SlotId};
use crate::context::{Phase, Session, reached};
use crate::dispatch::{self, Answer, Pending, Started};
use crate::observer::CloseReason;

/// Serves a connection until it ends; says why it ended.
pub(crate) async fn serve(stream: TcpStream, session: Arc<Session>) -> CloseReason {
    // Boxed, so that a task that waits for its first byte stays small.
    let mut task = Box::new(Task::new(stream, session));
    let reason = loop {
        if let Err(reason) = task.turn().await {
            break reason;
        }
    };
    if !matches!(reason, CloseReason::Peer | CloseReason::Io(_)) {
        let (stream, phase) = task.into_socket();
        Box::pin(closing::close(stream, phase)).await;
    }
    reason
}

struct Task {
    stream: TcpStream,
    session: Arc<Session>,
    engine: Connection<StoredRange>,
    lease: Lease,
    /// Memory of answers.
    held: Held,
    /// The request whose effects are still to come.
    ordered: Option<(SlotId, Pending<Started>)>,
    /// Answers to come, in the order of requests.
    answers: VecDeque<(SlotId, Pending<Answer>)>,
    outgoing: Outgoing,
    phase: watch::Receiver<Phase>,
    timer: std::pin::Pin<Box<tokio::time::Sleep>>,
    /// Why the connection ends, once all requests before the fault are answered.
    fault: Option<CloseReason>,
    /// The peer sends nothing more.
    ended: bool,
    /// The budget has no room for what could be read.
    starved: bool,
    /// Bytes and requests dealt with since other connections had their turn.
    work: usize,
}

/// What a task woke up for.
enum Wake {
    Socket(io::Result<tokio::io::Ready>),
    Started(SlotId, Started),
    Answered(SlotId, Answer),
    Outgoing(Result<(), CloseReason>),
    BudgetFreed,
    Evicted,
    HungUp,
    Timer,
    Phase,
}

impl Task {
    fn new(stream: TcpStream, session: Arc<Session>) -> Self {
        let context = &session.context;
        let limits = context.validated.connection_limits();
        let memory = Arc::clone(&context.frame_memory);
        let engine = Connection::with_memory(limits, api::served, memory, Instant::now().into_std());
        let timer = Box::pin(tokio::time::sleep_until(engine.next_deadline().into()));
        Self {
            lease: context.budget.lease(),
            held: context.answers.held(),
            phase: context.phase.clone(),
            stream,
            session,
            engine,
            ordered: None,
            answers: VecDeque::new(),
            outgoing: Outgoing::default(),
            timer,
            fault: None,
            ended: false,
            starved: false,
            work: 0,
        }
    }

    /// Does what can be done, then waits for one thing to happen.
    async fn turn(&mut self) -> Result<(), CloseReason> {
        loop {
            self.start_requests();
            if !self.held.grow(self.engine.answer_len()) {
                return Err(CloseReason::AnswersTooLong);
            }
            self.outgoing.flush(&self.stream, &mut self.engine)?;
            if !self.engine.has_output() {
                // A part of an answer keeps the whole of it in memory until it is written.
                self.held.shrink(self.engine.answer_len());
            }
            // What was written may have made room for requests that are here already; nothing else would wake for them.
            if self.ordered.is_some() || self.fault.is_some() || !self.engine.can_start() {
                break;
            }
            self.give_way().await;
        }
        self.give_way().await;
        self.check_end()?;
        match self.wake().await {
            Wake::Socket(ready) => {
                let ready = ready.map_err(CloseReason::Io)?;
                if ready.is_readable() || ready.is_read_closed() {
                    self.receive().await?;
                }
            }
            Wake::Started(slot, started) => {
                self.ordered = None;
                self.settle(slot, started);
            }
            Wake::Answered(slot, answer) => {
                self.work = self.work.saturating_add(REQUEST_WORK);
                self.answers.pop_front();
                self.respond(slot, answer);
                self.take_ready_answers();
            }
            Wake::Outgoing(progress) => progress?,
            Wake::BudgetFreed => self.starved = false,
            Wake::Evicted => return Err(CloseReason::Evicted),
            Wake::HungUp => self.give_up_answers(),
            Wake::Timer => self.handle_timer()?,
            Wake::Phase => self.engine.stop_receiving(),
        }
        Ok(())
    }

    /// Lets others have their turn after a fair share of work. A socket that always has more to read, as one has whose
    /// peer sends requests without a pause, would otherwise keep this task running, and a thread of the runtime with it.
    async fn give_way(&mut self) {
        if self.work >= WORK_MAX {
            self.work = 0;
            tokio::task::yield_now().await;
        }
    }

    async fn wake(&mut self) -> Wake {
        let wants_read = !self.ended && !self.starved && self.engine.receive_want().is_some();
        let wants_write = self.outgoing.waits_for_socket();
        let interest = match (wants_read, wants_write) {
            (true, true) => Some(Interest::READABLE | Interest::WRITABLE),
            (true, false) => Some(Interest::READABLE),
            (false, true) => Some(Interest::WRITABLE),
            (false, false) => None,
        };
        let wants_answers = self.engine.wants_answers();
        let next_phase = match *self.phase.borrow() {
            Phase::Running => Phase::Draining,
            Phase::Draining | Phase::Ending => Phase::Ending,
        };
        // Where nothing is read, nothing is read from a peer that left either.
        let may_hang_up = !wants_read && !self.ended && !self.answers.is_empty();
        let (ordered, answers) = (&mut self.ordered, &mut self.answers);
        let stream = &self.stream;
        tokio::select! {
            biased;
            wake = next_progress(ordered, answers, wants_answers) => wake,
            progress = self.outgoing.progress() => Wake::Outgoing(progress),
            ready = async { match interest {
                Some(interest) => stream.ready(interest).await,
                None => std::future::pending().await,
            } } => Wake::Socket(ready),
            () = self.lease.freed(), if self.starved => Wake::BudgetFreed,
            () = self.lease.evicted() => Wake::Evicted,
            () = hung_up(stream), if may_hang_up => Wake::HungUp,
            () = &mut self.timer => Wake::Timer,
            () = reached(&mut self.phase, next_phase) => Wake::Phase,
        }
    }

    /// Reads once, as much as engine and budget allow, and waits for nothing.
    async fn receive(&mut self) -> Result<(), CloseReason> {
        let Some(want) = self.engine.receive_want().filter(|_| !self.ended) else { return Ok(()) };
        let now = Instant::now().into_std();
        let small = !self.engine.receives_longer_than(SMALL_FRAME_LEN_MAX);
        // What is read ahead of a small frame must not make it wait.
        let least = if small { want.min(FLOOR_LEN) } else { want };
        let held_len = self.engine.held_len();
        let granted = [want, least].into_iter().find(|len| self.lease.try_hold(held_len + len, small, now));
        let Some(want) = granted else {
            self.starved = true;
            return Ok(());
        };
        let mut room = bytes::BufMut::limit(self.engine.receive_buf(want), want);
        // Unlike `try_read_buf` this takes a read that leaves room for the end of what has come: otherwise the socket
        // would seem to be ready, and the system be asked once more for nothing.
        let mut read = pin!(self.stream.read_buf(&mut room));
        match poll_fn(|cx| Poll::Ready(read.as_mut().poll(cx))).await {
            Poll::Ready(Ok(0)) => self.ended = true,
            Poll::Ready(Ok(len)) => {
                self.work = self.work.saturating_add(len);
                if let Err(error) = self.engine.received(now) {
                    self.fail(CloseReason::Protocol(error));
                }
            }
            Poll::Ready(Err(error)) => return Err(CloseReason::Io(error)),
            Poll::Pending => {}
        }
        self.release();
        Ok(())
    }

    /// Starts complete requests, until one has to be waited for or it is others' turn.
    fn start_requests(&mut self) {
        while self.ordered.is_none() && self.fault.is_none() && self.work < WORK_MAX {
            let request = match self.engine.next_request() {
                Ok(Some(request)) => request,
                Ok(None) => break,
                Err(error) => return self.fail(CloseReason::Protocol(error)),
            };
            self.session.context.counters.requests.fetch_add(1, Ordering::Relaxed);
            self.work = self.work.saturating_add(REQUEST_WORK + request.frame.len());
            let started = dispatch::start(&self.session, &request.frame, wall_clock());
            self.settle(request.slot, started);
        }
    }

    fn settle(&mut self, slot: SlotId, started: Started) {
        match started {
            Started::Now(answer) => self.respond(slot, answer),
            Started::Later(answer) => self.answers.push_back((slot, answer)),
            Started::Ordered(started) => self.ordered = Some((slot, started)),
        }
    }

    fn respond(&mut self, slot: SlotId, answer: Answer) {
        match answer {
            Ok(Some(response)) => self.engine.respond(slot, response),
            Ok(None) => self.engine.skip(slot),
            Err(reason) => {
                // What is behind a request without its answer cannot be answered either.
                self.answers.retain(|(other, _)| *other < slot);
                self.ordered.take_if(|(other, _)| *other > slot);
                self.fail(reason);
            }
        }
        self.release();
    }

    /// Ends the connection as soon as what is before the fault is answered. Nothing behind it is read or started.
    fn fail(&mut self, reason: CloseReason) {
        self.engine.stop_receiving();
        self.fault.get_or_insert(reason);
    }

    /// Takes further answers that are there already, so that they leave in one write.
    fn take_ready_answers(&mut self) {
        // Who is not ready is asked again, with a waker, before the task waits.
        let mut cx = Context::from_waker(Waker::noop());
        while self.engine.wants_answers()
            && self.work < WORK_MAX
            && let Some((slot, answer)) = self.answers.front_mut()
            && let Poll::Ready(answer) = answer.as_mut().poll(&mut cx)
        {
            let slot = *slot;
            self.work = self.work.saturating_add(REQUEST_WORK);
            self.answers.pop_front();
            self.respond(slot, answer);
        }
    }

    /// Nobody is there to take the answers: what waits stops waiting. What was appended stays, and what the peer sent
    /// before it left is still read up to its end.
    fn give_up_answers(&mut self) {
        for (slot, _) in self.answers.drain(..) {
            self.engine.skip(slot);
        }
        self.release();
    }

    /// Gives back to the budget what the engine no longer holds.
    fn release(&mut self) {
        self.lease.shrink(self.engine.held_len(), self.engine.partial_len() == 0);
    }

    /// Ends the connection when there is nothing left to do for it.
    fn check_end(&mut self) -> Result<(), CloseReason> {
        let is_settled = self.ordered.is_none() && self.answers.is_empty() && !self.engine.has_output();
        if let Some(reason) = self.fault.take_if(|_| is_settled) {
            return Err(reason);
        }
        if self.ended && self.ordered.is_none() && !self.engine.has_request() {
            // What the peer sent has its effects; nobody is there to take the answers.
            return Err(CloseReason::Peer);
        }
        match *self.phase.borrow() {
            Phase::Ending => Err(CloseReason::Shutdown),
            Phase::Draining => {
                // A connection that always has something to do may not wait for the news of the draining.
                self.engine.stop_receiving();
                if self.engine.in_flight() == 0 && !self.engine.has_request() {
                    return Err(CloseReason::Shutdown);
                }
                Ok(())
            }
            Phase::Running => Ok(()),
        }
    }

    /// What is left to close. The request memory is given back.
    fn into_socket(self) -> (TcpStream, watch::Receiver<Phase>) {
        (self.stream, self.phase)
    }

    fn handle_timer(&mut self) -> Result<(), CloseReason> {
        if self.engine.handle_timeout(Instant::now().into_std()) {
            return Err(CloseReason::Idle);
        }
        // At least a while ahead, so that a deadline of the past cannot spin.
        let next = self.engine.next_deadline().max((Instant::now() + TIMER_STEP_MIN).into_std());
        self.timer.as_mut().reset(next.into());
        Ok(())
    }
}

/// The request that others wait for, or the answer at the front, whichever is ready.
async fn next_progress(
    ordered: &mut Option<(SlotId, Pending<Started>)>,
    answers: &mut VecDeque<(SlotId, Pending<Answer>)>,
    wants_answers: bool,
) -> Wake {
    poll_fn(|cx| {
        if let Some((slot, started)) = ordered
            && let Poll::Ready(started) = started.as_mut().poll(cx)
        {
            return Poll::Ready(Wake::Started(*slot, started));
        }
        if wants_answers
            && let Some((slot, answer)) = answers.front_mut()
            && let Poll::Ready(answer) = answer.as_mut().poll(cx)
        {
            return Poll::Ready(Wake::Answered(*slot, answer));
        }
        Poll::Pending
    })
    .await
}

/// Resolves once the peer has closed its side of a socket from which nothing is read.
async fn hung_up(stream: &TcpStream) {
    // An error shows when the socket is used.
    while let Ok(ready) = stream.ready(Interest::READABLE).await {
        if ready.is_read_closed() {
            return;
        }
        // Bytes that wait to be read keep the socket ready: it is looked at now and then.
        tokio::time::sleep(HANG_UP_PAUSE).await;
    }
}

/// Bytes after which others have their turn, and what one request counts beside its own.
const WORK_MAX: usize = 256 << 10;
const REQUEST_WORK: usize = 16 << 10;
const HANG_UP_PAUSE: Duration = Duration::from_secs(1);
const TIMER_STEP_MIN: Duration = Duration::from_millis(100);
