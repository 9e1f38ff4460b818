//! A broker in a directory of its own, and a record of what it told.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use kolumn_broker::{Broker, Event, Observer, Settings};
use parking_lot::Mutex;
use tempfile::TempDir;

use crate::client::{Client, PATIENCE};

/// Keeps what the broker told, as text.
#[derive(Debug, Default)]
pub(crate) struct Recorder(Mutex<Vec<String>>);

impl Observer for Recorder {
    fn event(&self, event: &Event<'_>) {
        self.0.lock().push(format!("{event:?}"));
    }
}

impl Recorder {
    pub(crate) fn count(&self, text: &str) -> usize {
        self.0.lock().iter().filter(|event| event.contains(text)).count()
    }
}

pub(crate) struct TestBroker {
    pub(crate) broker: Broker,
    pub(crate) dir: TempDir,
    pub(crate) recorder: Arc<Recorder>,
}

impl TestBroker {
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    pub(crate) async fn start_with(change: impl FnOnce(&mut Settings)) -> Self {
        Self::start_in(TempDir::new().expect("a directory"), change).await
    }

    pub(crate) async fn start_in(dir: TempDir, change: impl FnOnce(&mut Settings)) -> Self {
        let recorder = Arc::new(Recorder::default());
        let broker = Broker::builder()
            .data_dir(dir.path())
            .listen(SocketAddr::from(([127, 0, 0, 1], 0)))
            .observer(Arc::clone(&recorder) as Arc<dyn Observer>)
            .configure(|settings| {
                settings.storage.size_limit = Some(1 << 30);
                change(settings);
            })
            .start()
            .await
            .expect("the broker starts");
        Self { broker, dir, recorder }
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect(self.broker.local_addr()).await
    }

    /// Stops it and keeps the directory.
    pub(crate) async fn stop(self) -> TempDir {
        self.broker.shutdown().await.expect("a clean stop");
        self.dir
    }

    /// Waits until the broker's own numbers say so.
    pub(crate) async fn until(&self, what: &str, reached: impl Fn(&kolumn_broker::Stats) -> bool) {
        until(what, || reached(&self.broker.stats())).await;
    }
}

/// Waits until a condition holds.
pub(crate) async fn until(what: &str, reached: impl Fn() -> bool) {
    let wait = async {
        while !reached() {
            // Asks often; what is waited for decides how long it takes.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("never reached: {what}"));
}
