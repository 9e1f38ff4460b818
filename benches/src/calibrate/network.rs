//! Loopback: how fast bytes flow, and how long a byte takes there and back.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use super::{MIB, Transfer};
use crate::clock;
use crate::histogram::{Histogram, Percentiles};

/// Of the receiver, as a broker would.
const RECEIVE_LEN: usize = 256 * 1024;

/// Two ends of one connection over loopback.
pub(super) fn pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let here = TcpStream::connect(listener.local_addr()?)?;
    let (there, _) = listener.accept()?;
    here.set_nodelay(true)?;
    there.set_nodelay(true)?;
    Ok((here, there))
}

/// Writes without an end, until the other side closes.
pub(super) fn flood(mut stream: TcpStream) {
    let bytes = vec![7; MIB];
    while stream.write_all(&bytes).is_ok() {}
}

/// One stream: the rate, and the receiver's CPU.
pub(super) fn stream(duration: Duration) -> io::Result<Transfer> {
    let (sender, mut receiver) = pair()?;
    let sending = thread::spawn(move || flood(sender));
    let mut buffer = vec![0; RECEIVE_LEN];
    let (start, cpu) = (clock::now(), clock::thread_cpu());
    let mut bytes = 0;
    while start.elapsed() < duration {
        bytes += u64::try_from(receiver.read(&mut buffer)?).unwrap_or_default();
    }
    let transfer = Transfer::new(bytes, start.elapsed(), clock::thread_cpu().saturating_sub(cpu));
    drop(receiver);
    sending.join().map_err(|_| io::Error::other("the sender panicked"))?;
    Ok(transfer)
}

/// A byte there and a byte back, again and again.
pub(super) fn ping_pong(duration: Duration) -> io::Result<Percentiles> {
    let (mut here, mut there) = pair()?;
    let echo = thread::spawn(move || {
        let mut byte = [0];
        while matches!(there.read(&mut byte), Ok(1)) && there.write_all(&byte).is_ok() {}
    });
    let mut seen = Histogram::new();
    let mut byte = [1];
    let start = clock::now();
    let mut before = start;
    while before.saturating_duration_since(start) < duration {
        here.write_all(&byte)?;
        here.read_exact(&mut byte)?;
        let now = clock::now();
        seen.record(now.saturating_duration_since(before));
        before = now;
    }
    drop(here);
    echo.join().map_err(|_| io::Error::other("the echo panicked"))?;
    Ok(seen.percentiles())
}
