//! The program as its users start and stop it.
#![cfg(test)]

use std::io::{BufRead as _, BufReader, Lines};
use std::process::{Child, ChildStderr, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

fn broker() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_broker"));
    command.env("RUST_LOG", "info").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Starts a broker on ports that the system chooses, with further arguments.
fn start(data: &tempfile::TempDir, further: &[&str]) -> (Child, Lines<BufReader<ChildStderr>>) {
    let mut command = broker();
    command.args(["--listen", "127.0.0.1:0", "--data-dir"]).arg(data.path()).args(further);
    let mut broker = command.spawn().expect("the program starts");
    let log = BufReader::new(broker.stderr.take().expect("piped")).lines();
    (broker, log)
}

fn stop(mut broker: Child, log: Lines<BufReader<ChildStderr>>) {
    kill_process(Pid::from_child(&broker), Signal::TERM).expect("it runs");
    let mut lines = log.map(|line| line.expect("text"));
    assert!(lines.any(|line| line.ends_with("stopped")), "the log is closed in order");
    assert!(broker.wait().expect("it ends").success());
}

#[test]
fn the_program_goes_on_and_stops_in_order_when_nobody_reads_what_it_prints() {
    let data = tempfile::tempdir().expect("a directory");
    let (mut broker, mut log) = start(&data, &["--sql", "none"]);
    drop(broker.stdout.take());
    assert!(log.any(|line| line.expect("text").contains("listening")), "it listens");
    stop(broker, log);
}

#[cfg(feature = "sql")]
mod sql {
    use std::net::TcpListener;
    use std::process::Output;

    use super::*;

    fn ask(address: &str, arguments: &[&str]) -> Output {
        broker().args(["sql", "--address", address]).args(arguments).output().expect("the program runs")
    }

    fn text(bytes: &[u8]) -> String {
        String::from_utf8(bytes.to_vec()).expect("text")
    }

    #[test]
    fn a_running_broker_answers_in_sql_under_both_names_of_its_catalog() {
        let data = tempfile::tempdir().expect("a directory");
        let (mut broker, log) = start(&data, &["--sql", "127.0.0.1:0", "--postgres", "127.0.0.1:0"]);
        let said = BufReader::new(broker.stdout.take().expect("piped"));
        let mut said = said.lines().map(|line| line.expect("text"));
        let mut place = |suffix: &str| {
            let line = said.find(|line| line.ends_with(suffix)).expect("a line of welcome");
            line.split(' ').nth(2).expect("an address").to_owned()
        };
        let (flight, _postgres) = (place("(Arrow Flight)"), place("(PostgreSQL)"));
        let example = said.find(|line| line.contains("broker sql")).expect("an example");
        assert!(example.contains(&format!("--address {flight}")), "{example}");
        for table in ["system.topics", "vast.system.topics"] {
            let statement = format!("SELECT count(*) AS topics FROM {table}");
            let answer = ask(&flight, &["--format", "csv", &statement]);
            assert_eq!(text(&answer.stdout), "topics\n0\n", "{}", text(&answer.stderr));
            assert!(answer.status.success());
        }
        let answer = ask(&flight, &["SELECT * FROM nowhere"]);
        assert!(text(&answer.stderr).contains("nowhere"), "{answer:?}");
        assert!(!answer.status.success());
        stop(broker, log);
        let answer = ask(&flight, &["SELECT 1"]);
        assert!(text(&answer.stderr).contains(&flight), "who does not answer is named: {answer:?}");
    }

    #[test]
    fn a_port_that_is_taken_is_named_with_the_flag_that_chooses_another() {
        let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = taken.local_addr().expect("bound").to_string();
        for further in [&["--sql", &address][..], &["--sql", "none", "--postgres", &address]] {
            let flag = further[further.len() - 2];
            let data = tempfile::tempdir().expect("a directory");
            let (mut broker, log) = start(&data, further);
            let log: Vec<String> = log.map(|line| line.expect("text")).collect();
            assert!(!broker.wait().expect("it ends").success());
            let last = log.last().expect("an error");
            assert!(last.contains(&address) && last.contains(flag), "{log:#?}");
            assert!(log.iter().any(|line| line.ends_with("stopped")), "the log is closed in order: {log:#?}");
        }
    }
}

#[cfg(not(feature = "sql"))]
#[test]
fn a_build_without_sql_says_so() {
    let answer = broker().args(["sql", "SELECT 1"]).output().expect("the program runs");
    let message = String::from_utf8(answer.stderr).expect("text");
    assert!(message.contains("this build has no SQL"), "{message}");
    assert!(!answer.status.success());
}
