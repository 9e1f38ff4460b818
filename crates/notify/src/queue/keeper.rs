//! A thread that looks after a journal: it does what may block, and sleeps until there is something to do.

use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

/// Wakes a keeper. Clones wake the same one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bell {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    rung: Condvar,
}

#[derive(Debug, Default)]
struct State {
    rung: bool,
    ended: bool,
}

impl Bell {
    /// There may be something to do.
    pub(crate) fn ring(&self) {
        let mut state = self.shared.state.lock();
        if !state.rung {
            state.rung = true;
            self.shared.rung.notify_one();
        }
    }

    /// There will be nothing more to do. What the keeper is doing it does to its end.
    pub(crate) fn end(&self) {
        self.shared.state.lock().ended = true;
        self.shared.rung.notify_one();
    }

    /// Waits until it is rung; `false` if it is the end.
    fn wait(&self) -> bool {
        let mut state = self.shared.state.lock();
        while !state.rung && !state.ended {
            self.shared.rung.wait(&mut state);
        }
        state.rung = false;
        !state.ended
    }

    /// Starts the thread. The work is called after every ring, and again as long as it says that there was something.
    pub(crate) fn keep(
        &self,
        name: &str,
        mut work: impl FnMut() -> bool + Send + 'static,
    ) -> std::io::Result<()> {
        let bell = self.clone();
        let keeper = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            while bell.wait() {
                while work() {}
            }
        })?;
        // It ends by the bell, and nobody waits for it.
        drop(keeper);
        Ok(())
    }
}
