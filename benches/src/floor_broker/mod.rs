//! The floor: the smallest broker that stores what it acknowledges.
//!
//! One thread. In a turn it takes what the sockets have, checks the batches, gives them offsets and gathers them in
//! aligned memory; then it writes once past the page cache, syncs once, and answers all of them. A fetch is answered from
//! the newest bytes in memory, or from the file. What it leaves out - sessions, producers' windows, retention by time,
//! recovery, many files - is what a broker costs beyond this.
//!
//! Every topic exists, with as many partitions as the arguments say.

mod connection;
mod log;
mod partition;
mod request;

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::Parser;
use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Token};

use crate::clock;
use connection::Connection;
use log::Log;

/// The smallest broker that writes past the page cache and syncs before it acknowledges.
#[derive(Debug, Parser)]
#[command(name = "floor_broker")]
struct Arguments {
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1:9092")]
    listen: SocketAddr,
    /// Directory of the log, whose file is made anew.
    #[arg(long)]
    data_dir: PathBuf,
    /// Acknowledge after the write, without a sync.
    #[arg(long)]
    no_sync: bool,
    /// Partitions of every topic.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(i32).range(1..=20_000))]
    partitions: i32,
    /// Length of the file, in which the log goes around: what was written before that is gone.
    #[arg(long, default_value_t = 4096, value_parser = clap::value_parser!(u32).range(128..=65_536))]
    file_mib: u32,
}

/// Runs the floor broker until the process ends.
pub fn floor_broker(arguments: &[OsString], out: &mut dyn Write) -> io::Result<()> {
    let arguments: Arguments = crate::arguments(arguments)?;
    let broker = FloorBroker::listening(&arguments)?;
    writeln!(out, "floor broker on {}", broker.local_addr())?;
    out.flush()?;
    broker.serve()
}

/// A floor broker that listens; [`FloorBroker::serve_in_background`] makes it answer.
#[derive(Debug)]
pub struct FloorBroker {
    listener: TcpListener,
    address: SocketAddr,
    poll: Poll,
    log: Log,
    connections: HashMap<Token, Connection>,
    next_token: usize,
    /// Connections that have something to do without news from their sockets.
    active: Vec<Token>,
    /// Connections whose fetch waits for more to read.
    parked: Vec<Token>,
}

impl FloorBroker {
    /// Listens on an address and makes a log of 128 MiB in a directory.
    pub fn bind(address: SocketAddr, data_dir: impl Into<PathBuf>, partitions: i32) -> io::Result<Self> {
        let (data_dir, file_mib) = (data_dir.into(), 128);
        Self::listening(&Arguments { listen: address, data_dir, no_sync: false, partitions, file_mib })
    }

    fn listening(arguments: &Arguments) -> io::Result<Self> {
        let file_len = u64::from(arguments.file_mib) << 20;
        let log = Log::create(&arguments.data_dir, file_len, arguments.partitions, !arguments.no_sync)?;
        let mut listener = TcpListener::bind(arguments.listen)?;
        let poll = Poll::new()?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let address = listener.local_addr()?;
        let (active, parked) = (Vec::new(), Vec::new());
        Ok(Self {
            listener,
            address,
            poll,
            log,
            connections: HashMap::new(),
            next_token: LISTENER.0 + 1,
            active,
            parked,
        })
    }

    /// The address it listens on.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Answers on a thread of its own until the process ends.
    pub fn serve_in_background(self) {
        thread::spawn(move || self.serve());
    }

    fn serve(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(1024);
        loop {
            match self.poll.poll(&mut events, self.patience()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                polled => polled?,
            }
            for event in &events {
                if event.token() == LISTENER {
                    self.accept()?;
                } else if let Some(connection) = self.connections.get_mut(&event.token()) {
                    connection.can_read();
                    self.active.push(event.token());
                }
            }
            self.turn()?;
        }
    }

    /// How long nothing has to be done.
    fn patience(&self) -> Option<Duration> {
        if !self.active.is_empty() {
            return Some(Duration::ZERO);
        }
        let deadlines = self.parked.iter().filter_map(|token| self.connections.get(token)?.parked);
        deadlines.min().map(|deadline| deadline.saturating_duration_since(clock::now()))
    }

    fn accept(&mut self) -> io::Result<()> {
        loop {
            let mut connection = match self.listener.accept() {
                Ok((stream, _)) => Connection::new(stream)?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(error),
            };
            let token = Token(self.next_token);
            self.next_token += 1;
            let interest = Interest::READABLE | Interest::WRITABLE;
            self.poll.registry().register(connection.stream(), token, interest)?;
            self.connections.insert(token, connection);
            self.active.push(token);
        }
    }

    /// Lets each connection do what it can, commits once for all of them, and sends the answers.
    fn turn(&mut self) -> io::Result<()> {
        let now = clock::now();
        let mut tokens = std::mem::take(&mut self.active);
        self.parked.retain(|token| {
            let deadline = self.connections.get(token).and_then(|connection| connection.parked);
            let is_over = deadline.is_some_and(|deadline| deadline <= now);
            if is_over {
                tokens.push(*token);
            }
            !is_over
        });
        tokens.sort_unstable();
        tokens.dedup();
        self.parked.retain(|token| tokens.binary_search(token).is_err());
        // A connection that leaves the protocol ends, and concerns nobody else.
        for token in &tokens {
            if let Some(connection) = self.connections.get_mut(token)
                && connection.turn(&mut self.log, now).is_err()
            {
                self.connections.remove(token);
            }
        }
        let has_news = self.log.commit()?;
        for token in tokens {
            self.finish(token);
        }
        if has_news {
            self.active.append(&mut self.parked);
        }
        Ok(())
    }

    /// Sends a connection's answers and decides when it has its next turn.
    fn finish(&mut self, token: Token) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        if connection.flush(&mut self.log).is_err() || connection.is_finished() {
            self.connections.remove(&token);
        } else if connection.parked.is_some() {
            self.parked.push(token);
        } else if connection.wants_turn() {
            self.active.push(token);
        }
    }
}

const LISTENER: Token = Token(0);
