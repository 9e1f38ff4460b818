//! The program as its users start and stop it.
#![cfg(test)]

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

#[test]
fn the_program_goes_on_and_stops_in_order_when_nobody_reads_what_it_prints() {
    let data = tempfile::tempdir().expect("a directory");
    let mut broker = Command::new(env!("CARGO_BIN_EXE_broker"))
        .args(["--listen", "127.0.0.1:0", "--data-dir"])
        .arg(data.path())
        .env("RUST_LOG", "info")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(broker.stdout.take());
    let log = BufReader::new(broker.stderr.take().expect("piped"));
    let mut lines = log.lines().map(|line| line.expect("text"));
    assert!(lines.any(|line| line.contains("listening")), "it listens");
    let pid = Pid::from_child(&broker);
    kill_process(pid, Signal::TERM).expect("it runs");
    assert!(lines.any(|line| line.ends_with("stopped")), "the log is closed in order");
    assert!(broker.wait().expect("it ends").success());
}
