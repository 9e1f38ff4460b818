//! A process that is asked by lines and answers by lines.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::de::DeserializeOwned;

use crate::ask::{Answer, Ready, Request, Response, What};
use crate::process::Usage;

/// One side's process; dropping kills it.
#[derive(Debug)]
pub(super) struct Peer {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    pub(super) ready: Ready,
}

impl Peer {
    /// Starts it and waits until it has all rows. What it says on standard error goes where ours goes.
    pub(super) fn start(command: &mut Command) -> io::Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (requests, answers) = (child.stdin.take(), child.stdout.take());
        let (Some(requests), Some(answers)) = (requests, answers) else {
            return Err(io::Error::other("a process has no pipes"));
        };
        let mut answers = BufReader::new(answers);
        let ready = receive(&mut answers)?;
        Ok(Self { child, requests, answers, ready })
    }

    /// Asks for one thing so many times; what the side cannot do is an error.
    pub(super) fn ask(&mut self, what: What, times: u32) -> io::Result<Answer> {
        let mut line = serde_json::to_vec(&Request { what, times })?;
        line.push(b'\n');
        self.requests.write_all(&line)?;
        match receive(&mut self.answers)? {
            Response::Answered(answer) => Ok(answer),
            Response::Failed { error } => Err(io::Error::other(error)),
        }
    }

    pub(super) fn usage(&self) -> io::Result<Usage> {
        Usage::of(self.child.id())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Both fail only if the process is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn receive<T: DeserializeOwned>(answers: &mut impl BufRead) -> io::Result<T> {
    let mut line = String::new();
    if answers.read_line(&mut line)? == 0 {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the process ended"));
    }
    Ok(serde_json::from_str(&line)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> io::Result<Peer> {
        Peer::start(Command::new("sh").args(["-c", script]))
    }

    #[test]
    fn a_process_is_asked_and_answers() {
        let mut peer =
            shell(r#"echo '{"version":"v"}'; read line; echo '{"ms":[1.5],"rows":[[7]]}'; read line"#)
                .unwrap();
        assert_eq!(peer.ready.version, "v");
        let expected = Answer { ms: vec![1.5], rows: vec![vec![7.into()]], work: None };
        assert_eq!(peer.ask(What::Sql("SELECT 7".into()), 1).unwrap(), expected);
        assert!(peer.usage().unwrap().resident > 0);
    }

    #[test]
    fn a_process_that_fails_or_ends_is_an_error() {
        assert_eq!(shell("exit 1").unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        let mut peer =
            shell(r#"echo '{"version":"v"}'; read line; echo '{"error":"no such table"}'"#).unwrap();
        assert_eq!(peer.ask(What::Scan(Vec::new()), 1).unwrap_err().to_string(), "no such table");
    }
}
