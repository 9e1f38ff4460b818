//! The rival: a broker that parses frame and batch headers, stores nothing and answers everything.
//!
//! A blocking thread a connection. Payload is received into one small buffer again and again, which is the
//! cheapest way there is to take bytes from a socket; a fetch is answered from one batch that was built at
//! the start. Every topic exists, with as many partitions as the arguments say.

mod source;
mod topics;

use std::ffi::OsString;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;

use clap::Parser;

use crate::answer::{self, CORRUPT_MESSAGE};
use crate::batch::{self, Batch};
use crate::clock;
use crate::wire::{RequestHeader, invalid, key, truncated};
use source::Source;

/// Only the shared batch is ever spliced in.
type Reply = answer::Reply<()>;

/// A broker that parses headers, stores nothing and answers everything.
#[derive(Debug, Parser)]
#[command(name = "null_broker")]
struct Arguments {
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1:9092")]
    listen: SocketAddr,
    /// Partitions of every topic.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(i32).range(1..=10_000))]
    partitions: i32,
    /// Bytes of the batch that every fetch is answered with.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(100..=8_000_000))]
    batch_bytes: u32,
    /// Bytes of value in each record of that batch.
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    record_bytes: u32,
}

/// Runs the null broker until the process ends.
pub fn null_broker(arguments: &[OsString], out: &mut dyn Write) -> io::Result<()> {
    let arguments: Arguments = crate::arguments(arguments)?;
    let broker = NullBroker::listening(&arguments)?;
    writeln!(out, "null broker on {}", broker.local_addr())?;
    out.flush()?;
    broker.serve()
}

/// A null broker that listens; [`NullBroker::serve_in_background`] makes it answer.
#[derive(Debug)]
pub struct NullBroker {
    listener: TcpListener,
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// What all connections answer from.
#[derive(Debug)]
struct Shared {
    batch: Batch,
    partitions: i32,
    /// Records taken so far over all partitions, so that produced offsets rise.
    taken: AtomicI64,
}

impl NullBroker {
    /// Listens on an address, with one partition a topic and a batch of 1 MB.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let mut arguments = Arguments::parse_from(["null_broker"]);
        arguments.listen = address;
        Self::listening(&arguments)
    }

    fn listening(arguments: &Arguments) -> io::Result<Self> {
        let listener = TcpListener::bind(arguments.listen)?;
        let address = listener.local_addr()?;
        let value_len = usize::try_from(arguments.record_bytes).unwrap_or_default();
        let batch_len = usize::try_from(arguments.batch_bytes).unwrap_or_default();
        let batch = batch::build(value_len, batch_len, clock::unix_millis());
        let shared = Shared { batch, partitions: arguments.partitions, taken: AtomicI64::new(0) };
        Ok(Self { listener, address, shared: Arc::new(shared) })
    }

    /// The address it listens on.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Answers on threads of its own until the process ends.
    pub fn serve_in_background(self) {
        thread::spawn(move || self.serve());
    }

    fn serve(&self) -> io::Result<()> {
        loop {
            let (stream, _) = self.listener.accept()?;
            let shared = Arc::clone(&self.shared);
            // A connection that ends, for whatever reason, concerns nobody else.
            thread::spawn(move || Connection::new(stream, shared).and_then(Connection::run));
        }
    }
}

struct Connection {
    source: Source,
    shared: Arc<Shared>,
    host: SocketAddr,
}

impl Connection {
    fn new(stream: TcpStream, shared: Arc<Shared>) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let host = stream.local_addr()?;
        Ok(Self { source: Source::new(stream), shared, host })
    }

    fn run(mut self) -> io::Result<()> {
        while let Some(len) = self.source.frame_len()? {
            let body_len = len.checked_sub(RequestHeader::FIXED_LEN).ok_or_else(truncated)?;
            let header = RequestHeader::parse(&mut self.source.cursor(RequestHeader::FIXED_LEN)?)?;
            if header.key == key::PRODUCE {
                self.produce(header, body_len)?;
            } else {
                let body = self.source.take(body_len)?;
                let mut reply = Reply::new(header.correlation_id);
                answer::answer(&mut reply, header, &body, &*self.shared, self.host)?;
                self.send(reply)?;
            }
        }
        Ok(())
    }

    fn send(&mut self, reply: Reply) -> io::Result<()> {
        let frame = reply.frame();
        if reply.stored.is_empty() {
            self.source.answer(&frame);
            return Ok(());
        }
        // What stands before a spliced batch has its base offset already, the rest of the batch is shared.
        let tail = self.shared.batch.bytes.get(8..).unwrap_or_default();
        let mut sent = 0;
        for (at, (), _) in reply.stored {
            let before = frame.get(sent..at + 4).ok_or_else(truncated)?;
            self.source.send(before, tail)?;
            sent = at + 4;
        }
        let after = frame.get(sent..).unwrap_or_default();
        self.source.send(after, &[])
    }

    /// Walks the request as it arrives, so that no batch is ever held.
    ///
    /// `transactional_id:NULLABLE_STRING acks:INT16 timeout:INT32 [name:STRING [index:INT32 records:BYTES]]`
    fn produce(&mut self, header: RequestHeader, len: usize) -> io::Result<()> {
        if !(3..=8).contains(&header.version) {
            return Err(invalid("this version of Produce is not spoken"));
        }
        let end = self.source.position() + len;
        self.source.skip_string()?;
        self.source.skip_string()?;
        let mut fixed = self.source.cursor(10)?;
        let (acks, _timeout, topics) = (fixed.int16()?, fixed.int32()?, fixed.int32()?);
        let mut reply = Reply::new(header.correlation_id);
        reply.count(topics);
        for _ in 0..topics {
            let name = self.source.string()?;
            let partitions = self.source.cursor(4)?.int32()?;
            reply.topic(&name, partitions);
            for _ in 0..partitions {
                self.partition(header.version, &mut reply)?;
            }
        }
        if self.source.position() != end {
            return Err(invalid("a Produce request is not as long as its frame"));
        }
        reply.throttle();
        if acks != 0 {
            self.source.answer(&reply.frame());
        }
        Ok(())
    }

    fn partition(&mut self, version: i16, reply: &mut Reply) -> io::Result<()> {
        let mut fixed = self.source.cursor(8)?;
        let (index, len) = (fixed.int32()?, fixed.int32()?);
        let len = usize::try_from(len).unwrap_or(0);
        let (error, base_offset) = if len < batch::HEADER_LEN {
            self.source.skip(len)?;
            (CORRUPT_MESSAGE, -1)
        } else {
            let parsed = batch::Header::parse(self.source.cursor(batch::HEADER_LEN)?.rest());
            self.source.skip(len - batch::HEADER_LEN)?;
            match parsed {
                Ok(batch) if batch.len == len => {
                    (0, self.shared.taken.fetch_add(i64::from(batch.count), Ordering::Relaxed))
                }
                _ => (CORRUPT_MESSAGE, -1),
            }
        };
        reply.produced(version, index, error, base_offset);
        Ok(())
    }
}
