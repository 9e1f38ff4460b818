//! The whole broker and a client on one thread, over a socket; the journal's writer is the only other thread.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use kolumn_broker::Broker;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{TOPIC, append, other};
use crate::client;
use crate::wire::invalid;

/// Sends a Produce request so many times.
pub(super) fn produce(dir: &Path, request: &[u8], requests: u32) -> io::Result<()> {
    with_client(dir, async |client| {
        for _ in 0..requests {
            client.call(request).await?;
        }
        Ok(())
    })
}

/// Produces more than a fetch takes and then fetches the beginning so many times.
pub(super) fn fetch(dir: &Path, produced: &[u8], requests: u32) -> io::Result<()> {
    let request = client::FetchRequest { topic: TOPIC, partition: 0, bytes_max: FETCH_LEN };
    let request = client::fetch_request(&request, 0);
    with_client(dir, async |client| {
        for _ in 0..2 {
            client.call(produced).await?;
        }
        for _ in 0..requests {
            let answer_len = client.call(&request).await?;
            if answer_len < produced.len() {
                return Err(invalid("a fetch brought less than a batch"));
            }
        }
        Ok(())
    })
}

/// Starts a broker with the topic and lets a client do something to it.
fn with_client(dir: &Path, act: impl AsyncFnOnce(&mut Client) -> io::Result<()>) -> io::Result<()> {
    let store = append::open(dir)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let broker = Broker::builder()
            .store(store.clone())
            .listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
            .view(TOPIC)
            // What the clock starts would be counted, at times that nobody chooses.
            .configure(|settings| settings.storage.maintenance_interval_ms = MAINTENANCE_MS)
            .start()
            .await
            .map_err(other)?;
        let stream = TcpStream::connect(broker.local_addr()).await?;
        stream.set_nodelay(true)?;
        let mut client = Client { stream, answer: vec![0; ANSWER_LEN_MAX] };
        client.call(&client::create_topic_request(TOPIC, 1, &[])).await?;
        act(&mut client).await?;
        drop(client);
        broker.shutdown().await.map_err(other)
    })?;
    store.close().map_err(other)
}

struct Client {
    stream: TcpStream,
    answer: Vec<u8>,
}

impl Client {
    /// Sends a request and takes its answer, whose length it returns.
    async fn call(&mut self, request: &[u8]) -> io::Result<usize> {
        self.stream.write_all(request).await?;
        let len = usize::try_from(self.stream.read_i32().await?).unwrap_or(usize::MAX);
        let answer = self.answer.get_mut(..len).ok_or_else(|| invalid("an answer is too long"))?;
        self.stream.read_exact(answer).await?;
        Ok(len)
    }
}

const FETCH_LEN: i32 = 1 << 20;
const ANSWER_LEN_MAX: usize = 4 << 20;
const MAINTENANCE_MS: u64 = 3_600_000;
