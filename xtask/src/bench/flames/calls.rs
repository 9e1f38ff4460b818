//! System calls and context switches, as `perf stat` counts them, and what they come to for a request.

use std::{collections::BTreeMap, fmt::Write as _};

/// Counts of events by their name.
pub(super) type Counts = BTreeMap<String, f64>;

/// What a load did while its broker's calls were counted.
#[derive(Debug)]
pub(super) struct Counted {
    /// As the table's head has it, such as `W1 raw, a request`.
    pub(super) title: &'static str,
    /// How long was counted.
    pub(super) seconds: f64,
    /// Requests, or records, a second.
    pub(super) units_per_s: f64,
    pub(super) counts: Counts,
}

impl Counted {
    fn per_unit(&self, event: &str) -> Option<f64> {
        Some(self.counts.get(event)? / self.seconds / self.units_per_s)
    }

    fn per_second(&self, event: &str) -> Option<f64> {
        Some(self.counts.get(event)? / self.seconds)
    }

    /// All calls but those that have a row.
    fn others(&self) -> Option<f64> {
        let named = CALLS.iter().filter_map(|call| self.per_unit(&event(call))).sum::<f64>();
        Some((self.per_unit(ALL)? - named).max(0.0))
    }
}

/// The events to count, of those that the kernel has.
pub(super) fn events(listed: &str) -> String {
    let is_there = |event: &String| listed.split_whitespace().any(|word| word == event);
    let calls = CALLS.iter().map(|call| event(call)).filter(is_there);
    [ALL, SWITCHES, CLOCK].into_iter().map(str::to_owned).chain(calls).collect::<Vec<_>>().join(",")
}

/// Parses what `perf stat -x,` prints: `value,unit,event,…`; what was not counted has a text for a value.
pub(super) fn parse(text: &str) -> Counts {
    let mut counts = Counts::new();
    for line in text.lines() {
        let mut fields = line.split(',');
        let (value, _unit, event) = (fields.next(), fields.next(), fields.next());
        if let (Some(Ok(value)), Some(event)) = (value.map(str::parse), event) {
            counts.insert(event.to_owned(), value);
        }
    }
    counts
}

/// A column for each load; calls that no load made have no row.
pub(super) fn table(loads: &[Counted]) -> String {
    let mut text = String::from("| system calls |");
    for load in loads {
        // Writing to a string cannot fail.
        let _ = write!(text, " {} |", load.title);
    }
    let _ = writeln!(text, "\n|{}", " --- |".repeat(loads.len() + 1));
    for call in CALLS {
        let seen: Vec<_> = loads.iter().map(|load| load.per_unit(&event(call))).collect();
        if seen.iter().flatten().any(|value| *value >= SHOWN_MIN) {
            row(&mut text, &format!("`{call}`"), &seen);
        }
    }
    let columns = |of: fn(&Counted) -> Option<f64>| loads.iter().map(of).collect::<Vec<_>>();
    row(&mut text, "others", &columns(Counted::others));
    row(&mut text, "all", &columns(|load| load.per_unit(ALL)));
    row(&mut text, "context switches", &columns(|load| load.per_unit(SWITCHES)));
    row(&mut text, "context switches a second", &columns(|load| load.per_second(SWITCHES)));
    row(&mut text, "CPU, µs", &columns(|load| Some(load.per_unit(CLOCK)? * 1e3)));
    row(&mut text, "requests or records a second", &columns(|load| Some(load.units_per_s)));
    text
}

fn row(text: &mut String, name: &str, values: &[Option<f64>]) {
    let _ = write!(text, "| {name} |");
    for value in values {
        let _ = match value {
            Some(value) if *value >= 100.0 => write!(text, " {value:.0} |"),
            Some(value) if *value >= 10.0 => write!(text, " {value:.1} |"),
            Some(value) => write!(text, " {value:.2} |"),
            None => write!(text, " – |"),
        };
    }
    text.push('\n');
}

fn event(call: &str) -> String {
    format!("syscalls:sys_enter_{call}")
}

const ALL: &str = "raw_syscalls:sys_enter";
const SWITCHES: &str = "context-switches";
/// Milliseconds of CPU.
const CLOCK: &str = "task-clock";
const SHOWN_MIN: f64 = 0.005;
/// What a broker is expected to call while it serves; what else it calls is one row together.
const CALLS: &[&str] = &[
    "recvfrom",
    "recvmsg",
    "read",
    "readv",
    "sendto",
    "sendmsg",
    "write",
    "writev",
    "epoll_wait",
    "epoll_pwait",
    "epoll_ctl",
    "futex",
    "pread64",
    "preadv",
    "preadv2",
    "pwrite64",
    "pwritev",
    "pwritev2",
    "fdatasync",
    "fsync",
    "fallocate",
    "ftruncate",
    "mmap",
    "munmap",
    "madvise",
    "sched_yield",
];

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "# started on a day\n\n200,,context-switches,1,100.00,,\n1500.50,msec,task-clock,1,100.00,,\n\
         1000,,raw_syscalls:sys_enter,1,100.00,,\n600,,syscalls:sys_enter_sendto,1,100.00,,\n\
         <not counted>,,syscalls:sys_enter_futex,0,0.00,,\n0,,syscalls:sys_enter_fsync,1,100.00,,\n";

    #[test]
    fn counts_are_divided_by_the_requests_of_the_same_time() {
        let counts = parse(STAT);
        assert_eq!(counts.len(), 5);
        let load = Counted { title: "a load", seconds: 2.0, units_per_s: 50.0, counts };
        let other = Counted { title: "another", seconds: 2.0, units_per_s: 50.0, counts: Counts::new() };
        let text = table(&[load, other]);
        for expect in [
            "| system calls | a load | another |",
            "| `sendto` | 6.00 | – |",
            "| others | 4.00 | – |",
            "| all | 10.0 | – |",
            "| context switches | 2.00 | – |",
            "| context switches a second | 100 | – |",
            "| CPU, µs | 15005 | – |",
            "| requests or records a second | 50.0 | 50.0 |",
        ] {
            assert!(text.lines().any(|line| line == expect), "{expect}:\n{text}");
        }
        assert!(!text.contains("fsync") && !text.contains("futex"), "{text}");
    }

    #[test]
    fn only_events_that_the_kernel_has_are_asked_for() {
        let listed = "  syscalls:sys_enter_sendto   [Tracepoint event]\n  syscalls:sys_enter_sendto2 [Tracepoint event]\n";
        assert_eq!(
            events(listed),
            "raw_syscalls:sys_enter,context-switches,task-clock,syscalls:sys_enter_sendto"
        );
    }
}
