//! What the numbers were measured on.

use std::fs;
use std::path::Path;
use std::process::Command;

/// A description of machine, disk and commit, as far as they can be found out.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) rows: Vec<(&'static str, String)>,
}

impl Machine {
    pub(crate) fn describe(dir: &Path) -> Self {
        let cores =
            std::thread::available_parallelism().map_or_else(|_| UNKNOWN.into(), |cores| cores.to_string());
        let rows = vec![
            ("commit", said("git", &["describe", "--always", "--dirty"])),
            ("date", said("date", &["-u", "+%Y-%m-%d %H:%M UTC"])),
            ("kernel", read("/proc/sys/kernel/osrelease")),
            ("processor", format!("{cores} x {}", model(&read("/proc/cpuinfo")))),
            ("memory", memory(&read("/proc/meminfo"))),
            ("disk", said("df", &["--output=source,fstype,avail", "-h", &dir.to_string_lossy()])),
            ("load average before", load_average()),
        ];
        Self { rows }
    }
}

/// The load average of this moment.
pub(crate) fn load_average() -> String {
    read("/proc/loadavg").split(' ').take(3).collect::<Vec<_>>().join(" ")
}

const UNKNOWN: &str = "unknown";

fn read(path: &str) -> String {
    fs::read_to_string(path).map_or_else(|_| UNKNOWN.into(), |text| text.trim().into())
}

/// The last line that a program prints, with single blanks.
fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().ok().filter(|output| output.status.success());
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines()
        .last()
        .map_or_else(|| UNKNOWN.into(), |line| line.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn model(cpuinfo: &str) -> &str {
    let name = cpuinfo.lines().find_map(|line| line.strip_prefix("model name"));
    name.map_or(UNKNOWN, |name| name.trim_start_matches([' ', '\t', ':']))
}

fn memory(meminfo: &str) -> String {
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    total.map_or(UNKNOWN, str::trim).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_and_memory_are_found() {
        assert_eq!(model("processor\t: 0\nmodel name\t: A Chip (R)\n"), "A Chip (R)");
        assert_eq!(model(""), UNKNOWN);
        assert_eq!(memory("MemTotal:       24000000 kB\nMemFree: 1 kB"), "24000000 kB");
    }

    #[test]
    fn a_program_that_is_not_there_says_unknown() {
        assert_eq!(said("no-such-program-anywhere", &[]), UNKNOWN);
    }
}
