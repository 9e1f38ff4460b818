//! Processes that are measured: started, found listening, read from `/proc`, stopped.

use std::fs::{self, File};
use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::clock;

/// A broker must listen by then; a virtual machine in another language takes its time.
const LISTEN_MAX: Duration = Duration::from_mins(1);

/// A broker must have stopped by then after being asked to.
const STOP_MAX: Duration = Duration::from_secs(20);

/// What a Java virtual machine ends with after it has stopped in good order because of SIGTERM.
const JVM_TERMINATED: i32 = 128 + 15;

/// A running broker; dropping kills it.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
}

impl Server {
    /// Starts a program with its output in a file, and waits until it accepts connections.
    pub(crate) fn start(mut command: Command, address: SocketAddr, log: &Path) -> io::Result<Self> {
        let output = File::create(log)?;
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        clock::sharpen_sleep();
        let start = clock::now();
        let child = command.spawn()?;
        let mut server = Self { child };
        loop {
            if TcpStream::connect(address).is_ok() {
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

    /// What the process and those that it started have used so far.
    pub(crate) fn usage(&self) -> io::Result<Usage> {
        Usage::of_tree(self.child.id())
    }

    /// Asks the process to stop and waits for it; whether it did so in time and without an error.
    pub(crate) fn stop(mut self) -> io::Result<bool> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.ok_or_else(|| io::Error::other("a process id is out of range"))?, Signal::TERM)?;
        let start = clock::now();
        while start.elapsed() < STOP_MAX {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status.success() || status.code() == Some(JVM_TERMINATED));
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

/// What a program has left behind.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Its standard output.
    pub(crate) out: Vec<u8>,
    /// How it failed, with what it said on standard error.
    failure: Option<String>,
}

impl Ended {
    /// Its standard output, unless it failed.
    pub(crate) fn success(self) -> io::Result<Vec<u8>> {
        self.failure.map_or(Ok(self.out), |failure| Err(io::Error::other(failure)))
    }
}

/// Runs a program to its end, which is an error if that takes longer than `limit`.
pub(crate) fn run(mut command: Command, limit: Duration) -> io::Result<Ended> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    thread::scope(|scope| {
        let out = scope.spawn(|| read_to_end(out));
        let err = scope.spawn(|| read_to_end(err));
        let start = clock::now();
        let status = loop {
            match child.try_wait()? {
                Some(status) => break Some(status),
                None if start.elapsed() > limit => break None,
                None => clock::sleep(Duration::from_millis(10)),
            }
        };
        if status.is_none() {
            // What ended by itself at the last moment needs no killing.
            let _ = child.kill();
            let _ = child.wait();
        }
        let panicked = |_| io::Error::other("a reader panicked");
        let (out, err) = (out.join().map_err(panicked)??, err.join().map_err(panicked)??);
        let said = String::from_utf8_lossy(&err).trim().to_owned();
        let Some(status) = status else {
            let message = format!("it did not end in {} s {said}", limit.as_secs());
            return Err(io::Error::new(io::ErrorKind::TimedOut, message.trim_end().to_owned()));
        };
        Ok(Ended { out, failure: (!status.success()).then(|| format!("{status}: {said}")) })
    })
}

fn read_to_end(from: Option<impl Read>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(mut from) = from {
        from.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Counters of a process, or of several together.
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

    /// Of the process with this id and all that it started, directly or not.
    pub(crate) fn of_tree(id: u32) -> io::Result<Self> {
        let mut sum = Self::of(id)?;
        for child in descendants(&parents()?, id) {
            // A child that has ended meanwhile has nothing to count.
            if let Ok(usage) = Self::of(child) {
                sum.cpu += usage.cpu;
                sum.resident += usage.resident;
                sum.resident_max += usage.resident_max;
                sum.written += usage.written;
            }
        }
        Ok(sum)
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

/// Every process with its parent.
fn parents() -> io::Result<Vec<(u32, u32)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let Some(id) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let stat = fs::read_to_string(format!("/proc/{id}/stat"));
        if let Some(parent) = stat.ok().as_deref().and_then(parent) {
            found.push((id, parent));
        }
    }
    Ok(found)
}

/// Field 4 of `/proc/PID/stat`.
fn parent(stat: &str) -> Option<u32> {
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// All below `id`, each once.
fn descendants(parents: &[(u32, u32)], id: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut above = vec![id];
    while let Some(parent) = above.pop() {
        for (child, _) in parents.iter().filter(|(child, of)| *of == parent && child != of) {
            if !found.contains(child) {
                found.push(*child);
                above.push(*child);
            }
        }
    }
    found
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
    fn children_of_children_are_counted_and_a_circle_ends() {
        let parents = [(2, 1), (3, 2), (4, 9), (5, 3), (1, 5)];
        assert_eq!(parent(STAT), Some(1));
        assert_eq!(descendants(&parents[..4], 1), [2, 3, 5]);
        assert_eq!(descendants(&parents, 2), [3, 5, 1, 2]);
    }

    #[test]
    fn a_program_gives_its_output_fails_with_its_errors_and_is_killed_when_late() {
        let shell = |script: &str, limit| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            run(command, limit)
        };
        let long = Duration::from_mins(1);
        assert_eq!(shell("echo out; echo err >&2", long).unwrap().success().unwrap(), b"out\n");
        let failed = shell("echo out; echo wrong >&2; exit 3", long).unwrap();
        assert_eq!(failed.out, b"out\n");
        assert!(failed.success().unwrap_err().to_string().contains("wrong"));
        let late = shell("exec sleep 60", Duration::from_millis(50)).unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn this_process_has_counters() {
        let usage = Usage::of(std::process::id()).unwrap();
        assert!(usage.resident > 0 && usage.resident_max >= usage.resident);
    }
}
