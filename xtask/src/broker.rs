//! A broker to run something against: a process on a free port with a folder of its own.

use std::{
    fs::File,
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// A running broker; it is killed when it is dropped.
#[derive(Debug)]
pub(crate) struct Broker {
    child: Child,
    address: String,
    settings: &'static str,
    log: PathBuf,
}

impl Broker {
    /// Starts a broker with these settings below `folder`, and waits until it accepts connections.
    pub(crate) fn start(
        program: &Path,
        folder: &Path,
        settings: &'static str,
        port: Option<u16>,
    ) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("the broker's folder {}: {error}", folder.display());
        let socket = free_socket(port)?;
        let (file, log) = (folder.join("broker.toml"), folder.join("broker.log"));
        std::fs::write(&file, settings).map_err(failed)?;
        let output = File::create(&log).map_err(failed)?;
        let errors = output.try_clone().map_err(failed)?;
        let mut command = Command::new(program);
        command.arg("--config").arg(&file).args(["--sql", "none"]);
        command.args(["--listen", &socket.to_string(), "--data-dir"]);
        command.arg(folder.join("data")).stdin(Stdio::null()).stdout(output).stderr(errors);
        let child = command.spawn().map_err(|error| format!("{}: {error}", program.display()))?;
        let mut broker = Self { child, address: socket.to_string(), settings, log };
        let began = Instant::now();
        while began.elapsed() < START_MAX {
            broker.still_runs()?;
            if TcpStream::connect_timeout(&socket, Duration::from_secs(1)).is_ok() {
                return Ok(broker);
            }
            std::thread::sleep(PAUSE);
        }
        Err(format!("the broker does not listen; see {}", broker.log.display()))
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn settings(&self) -> &'static str {
        self.settings
    }

    /// Of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// An error once the process has ended.
    pub(crate) fn still_runs(&mut self) -> Result<(), String> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(format!("the broker ended: {status}; see {}", self.log.display())),
            Err(error) => Err(format!("the broker: {error}")),
        }
    }

    /// Asks the process to stop; it must do so in time with exit code 0.
    pub(crate) fn stop(mut self) -> Result<(), String> {
        let signal = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        signal.map_err(|error| format!("`kill`: {error}"))?;
        let began = Instant::now();
        while began.elapsed() < STOP_MAX {
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(PAUSE),
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => {
                    return Err(format!("the broker ended: {status}; see {}", self.log.display()));
                }
                Err(error) => return Err(format!("the broker: {error}")),
            }
        }
        Err(format!("the broker does not stop; see {}", self.log.display()))
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // One that has ended cannot be killed, and needs it not.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An address that nobody listened on a moment ago, with this port if there is one.
fn free_socket(port: Option<u16>) -> Result<SocketAddr, String> {
    let wanted = SocketAddr::from(([127, 0, 0, 1], port.unwrap_or(0)));
    TcpListener::bind(wanted)
        .and_then(|listener| listener.local_addr())
        .map_err(|error| format!("a broker cannot listen on {wanted}: {error}"))
}

const START_MAX: Duration = Duration::from_secs(30);
const STOP_MAX: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(10);
