//! Processes that are measured: started, found listening, read from `/proc`, stopped.

use std::fs::{self, File};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::clock;

/// A broker must listen by then.
const LISTEN_MAX: Duration = Duration::from_secs(20);

/// A broker must have stopped by then after being asked to.
const STOP_MAX: Duration = Duration::from_secs(20);

/// A running broker; dropping kills it.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    /// From just before the start to the first connection accepted.
    pub(crate) listening_after: Duration,
}

impl Server {
    /// Starts a program with its output in a file, and waits until it accepts connections.
    pub(crate) fn start(mut command: Command, address: SocketAddr, log: &Path) -> io::Result<Self> {
        let output = File::create(log)?;
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        clock::sharpen_sleep();
        let start = clock::now();
        let child = command.spawn()?;
        let mut server = Self { child, address, listening_after: Duration::ZERO };
        loop {
            if TcpStream::connect(address).is_ok() {
                server.listening_after = start.elapsed();
                return Ok(server);
            }
            if let Some(status) = server.child.try_wait()? {
                return Err(io::Error::other(format!(
                    "it ended with {status}; its output is in {}",
                    log.display()
                )));
            }
            if start.elapsed() > LISTEN_MAX {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "it does not listen"));
            }
            clock::sleep(Duration::from_micros(200));
        }
    }

    /// What the process has used so far.
    pub(crate) fn usage(&self) -> io::Result<Usage> {
        Usage::of(self.child.id())
    }

    /// Asks the process to stop and waits for it; whether it did so in time and without an error.
    pub(crate) fn stop(mut self) -> io::Result<bool> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.ok_or_else(|| io::Error::other("a process id is out of range"))?, Signal::TERM)?;
        let start = clock::now();
        while start.elapsed() < STOP_MAX {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status.success());
            }
            clock::sleep(Duration::from_millis(5));
        }
        Ok(false)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only if the process is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An address on loopback that nobody listens on at this moment.
pub(crate) fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind("127.0.0.1:0")?.local_addr()
}

/// Counters of a process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Usage {
    /// User and system time.
    pub(crate) cpu: Duration,
    pub(crate) resident: u64,
    pub(crate) resident_max: u64,
    /// Bytes that the process caused to be sent to the disk.
    pub(crate) written: u64,
}

impl Usage {
    /// Of the process with this id.
    pub(crate) fn of(id: u32) -> io::Result<Self> {
        let read = |name: &str| fs::read_to_string(format!("/proc/{id}/{name}"));
        Self::parse(&read("stat")?, &read("status")?, &read("io")?)
            .ok_or_else(|| io::Error::other("/proc is not as expected"))
    }

    fn parse(stat: &str, status: &str, io: &str) -> Option<Self> {
        Some(Self {
            cpu: ticks(stat)?,
            resident: kibibytes(status, "VmRSS:")?,
            resident_max: kibibytes(status, "VmHWM:")?,
            written: value(io, "write_bytes:")?.parse().ok()?,
        })
    }
}

/// `pid (name) state ppid … utime stime …`: fields 14 and 15, where the name may hold anything.
fn ticks(stat: &str) -> Option<Duration> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    Some(Duration::from_millis((user + system) * 1000 / per_second))
}

fn kibibytes(status: &str, name: &str) -> Option<u64> {
    let kibibytes: u64 = value(status, name)?.strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str =
        "4242 (a (bad) name) S 1 4242 4242 0 -1 4194560 1000 0 0 0 250 150 0 0 20 0 5 0 9 1 2 3";
    const STATUS: &str =
        "Name:\tbroker\nVmPeak:\t  999 kB\nVmHWM:\t   20480 kB\nVmRSS:\t   10240 kB\nThreads:\t5\n";
    const IO: &str = "rchar: 1\nwchar: 2\nread_bytes: 3\nwrite_bytes: 4096\ncancelled_write_bytes: 0\n";

    #[test]
    fn the_counters_are_read_past_a_name_with_brackets() {
        let usage = Usage::parse(STAT, STATUS, IO).unwrap();
        let per_second = rustix::param::clock_ticks_per_second();
        assert_eq!(usage.cpu, Duration::from_millis(400 * 1000 / per_second));
        assert_eq!(usage.resident, 10 * 1024 * 1024);
        assert_eq!(usage.resident_max, 20 * 1024 * 1024);
        assert_eq!(usage.written, 4096);
    }

    #[test]
    fn text_that_is_not_as_expected_is_no_usage() {
        assert_eq!(Usage::parse("", STATUS, IO), None);
        assert_eq!(Usage::parse("1 (x) S 1 2", STATUS, IO), None);
        assert_eq!(Usage::parse(STAT, "VmRSS: many kB", IO), None);
        assert_eq!(Usage::parse(STAT, STATUS, "write_bytes: -1"), None);
    }

    #[test]
    fn this_process_has_counters() {
        let usage = Usage::of(std::process::id()).unwrap();
        assert!(usage.resident > 0 && usage.resident_max >= usage.resident);
    }
}
