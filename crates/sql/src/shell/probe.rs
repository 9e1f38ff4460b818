//! What serves an address that does not answer as a Flight SQL server does.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;

/// Asks in the words of those who are mistaken for it most easily, and says who has answered.
pub(super) async fn who(address: SocketAddr) -> Option<&'static str> {
    for Peer { greeting, answers, who } in PEERS {
        let answer = timeout(PATIENCE, answer(address, greeting)).await;
        if answer.is_ok_and(|answer| answer.is_ok_and(|answer| answers(&answer))) {
            return Some(who);
        }
    }
    None
}

/// The first bytes of an answer.
async fn answer(address: SocketAddr, greeting: &[u8]) -> io::Result<Vec<u8>> {
    let stream = TcpStream::connect(address).await?;
    stream.writable().await?;
    stream.try_write(greeting)?;
    let mut answer = Vec::new();
    while answer.len() < ANSWER_LEN {
        stream.readable().await?;
        let mut bytes = [0; ANSWER_LEN];
        match stream.try_read(&mut bytes) {
            Ok(0) => break,
            Ok(len) => answer.extend(bytes.iter().take(len)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // who hangs up may have answered before
            Err(_) => break,
        }
        if answer.len() == 1 && matches!(answer.as_slice(), b"N" | b"S") {
            break;
        }
    }
    Ok(answer)
}

struct Peer {
    greeting: &'static [u8],
    answers: fn(&[u8]) -> bool,
    who: &'static str,
}

const PEERS: [Peer; 3] = [
    Peer {
        // ApiVersions 0, whose correlation is 7
        greeting: &[0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 7, 0xff, 0xff],
        answers: |answer| answer.get(4..8) == Some(&[0, 0, 0, 7][..]),
        who: "a Kafka broker's address, for producers and consumers",
    },
    Peer {
        // SSLRequest
        greeting: &[0, 0, 0, 8, 4, 210, 22, 47],
        answers: |answer| matches!(answer, b"N" | b"S"),
        who: "a server of PostgreSQL's protocol, for psql",
    },
    Peer {
        greeting: b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        answers: |answer| answer.starts_with(b"HTTP/"),
        who: "an HTTP server",
    },
];

const ANSWER_LEN: usize = 8;
const PATIENCE: Duration = Duration::from_secs(1);
