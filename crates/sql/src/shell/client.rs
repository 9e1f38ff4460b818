//! The connection to the server.

use std::error::Error;
use std::fmt;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arrow_flight::error::FlightError;
use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::sql::client::FlightSqlServiceClient;
use datafusion::arrow::error::ArrowError;
use futures::TryStreamExt;
use tonic::Code;
use tonic::transport::{Channel, Endpoint};

use super::print::Printer;
use super::{Format, probe};

pub(super) struct Client {
    address: SocketAddr,
    flight: FlightSqlServiceClient<Channel>,
    /// Whether it has answered once, so that it is what it should be.
    known: bool,
}

impl Client {
    pub(super) async fn connect(address: SocketAddr) -> io::Result<Self> {
        let endpoint = Endpoint::from_shared(format!("http://{address}")).map_err(io::Error::other)?;
        let endpoint = endpoint.connect_timeout(CONNECT_TIMEOUT).tcp_nodelay(true);
        let channel = endpoint.connect().await.map_err(|error| unreachable(address, &error))?;
        let flight = FlightServiceClient::new(channel).max_decoding_message_size(MESSAGE_LEN_MAX);
        Ok(Self { address, flight: FlightSqlServiceClient::new_from_inner(flight), known: false })
    }

    /// Runs a statement, and prints what it is answered.
    pub(super) async fn run(
        &mut self,
        statement: &str,
        format: Format,
        output: &mut (dyn Write + Send),
    ) -> io::Result<()> {
        let address = self.address;
        let failed = |error| failed(address, error);
        let info = match self.flight.execute(statement.to_owned(), None).await {
            Ok(info) => info,
            Err(error) if !self.known && is_strange(&error) => return Err(strange(address, error).await),
            Err(error) => return Err(failed(error)),
        };
        self.known = true;
        let endpoints = info.endpoint.clone();
        let schema = info.try_decode_schema().map_err(io::Error::other)?;
        let mut printer = Printer::new(format, Arc::new(schema), output);
        for ticket in endpoints.into_iter().filter_map(|endpoint| endpoint.ticket) {
            let mut batches = self.flight.do_get(ticket).await.map_err(failed)?;
            loop {
                match batches.try_next().await {
                    Ok(Some(batch)) => printer.print(&batch)?,
                    Ok(None) => break,
                    Err(error) => {
                        printer.flush()?;
                        return Err(failed(error));
                    }
                }
            }
        }
        printer.finish()
    }
}

/// Whether it is the statement that failed, or a value that cannot be shown, and not the connection or the output.
pub(super) fn is_refusal(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|error| error.is::<Refusal>() || error.is::<ArrowError>())
}

/// The server has answered with an error.
#[derive(Debug)]
struct Refusal(String);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Refusal {}

fn failed(address: SocketAddr, error: FlightError) -> io::Error {
    let status = match error {
        FlightError::Tonic(status) => status,
        other => return io::Error::other(format!("{address} answers with what is no Flight SQL: {other}")),
    };
    let message = super::cell::safe(status.message());
    match status.code() {
        Code::Unavailable => io::Error::new(
            io::ErrorKind::ConnectionAborted,
            format!("the connection to {address} has ended: {message}"),
        ),
        Code::InvalidArgument => io::Error::new(io::ErrorKind::InvalidInput, Refusal(message)),
        Code::NotFound => io::Error::new(io::ErrorKind::NotFound, Refusal(message)),
        Code::PermissionDenied => io::Error::new(io::ErrorKind::PermissionDenied, Refusal(message)),
        Code::Unimplemented => io::Error::new(io::ErrorKind::Unsupported, Refusal(message)),
        Code::DeadlineExceeded => io::Error::new(io::ErrorKind::TimedOut, Refusal(message)),
        _ => io::Error::other(Refusal(message)),
    }
}

/// Whether it does not come from a Flight SQL server, or may not.
fn is_strange(error: &FlightError) -> bool {
    match error {
        FlightError::Tonic(status) if is_refused(error) => {
            // also what a server of HTTP has answered
            matches!(status.code(), Code::Unavailable | Code::Unknown | Code::Internal | Code::Unimplemented)
        }
        _ => true,
    }
}

/// The first thing that a server says is no answer: something else may serve that address.
async fn strange(address: SocketAddr, error: FlightError) -> io::Error {
    match probe::who(address).await {
        Some(who) => {
            let text = format!(
                "{address} is {who}; `broker sql` asks an Arrow Flight SQL server, which a broker has on port 8815 unless \
                 it was told otherwise; `--address` names another place"
            );
            io::Error::new(io::ErrorKind::InvalidInput, text)
        }
        None if is_refused(&error) => failed(address, error),
        None => {
            let text = format!(
                "{address} does not answer as an Arrow Flight SQL server does; `--address` names another place"
            );
            io::Error::new(io::ErrorKind::InvalidData, text)
        }
    }
}

/// Whether it was sent by the server, and has not come up on the way.
fn is_refused(error: &FlightError) -> bool {
    matches!(error, FlightError::Tonic(status) if status.source().is_none())
}

fn unreachable(address: SocketAddr, error: &tonic::transport::Error) -> io::Error {
    let mut cause: &dyn Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    let kind = cause.downcast_ref::<io::Error>().map_or(io::ErrorKind::NotConnected, io::Error::kind);
    io::Error::new(
        kind,
        format!(
            "no Flight SQL server answers at {address}: {cause}; is the broker running, and does it serve SQL there \
             (`--sql {address}`)? `--address` names another place"
        ),
    )
}

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Only a single row that is so long makes a message of more than some 2 MiB.
const MESSAGE_LEN_MAX: usize = 256 << 20;
