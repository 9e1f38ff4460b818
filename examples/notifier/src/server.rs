//! S3 over HTTP: connections, until the program is to stop.

use std::net::SocketAddr;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use kolumn_notify::hub::Hub;
use kolumn_notify::s3s::{RequestIds, recover_doubtful};
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use tokio::net::TcpListener;

use crate::arguments::Flags;
use crate::identity::Identity;
use crate::{notify, say};

/// Serves until `stop` is ready; requests that are under way are answered first.
pub(crate) async fn serve(
    flags: &Flags,
    identity: &Identity,
    hub: &Hub,
    stop: impl Future<Output = ()>,
) -> Result<(), String> {
    let storage = notify::storage(flags, hub)?;
    let mut builder = S3ServiceBuilder::new(storage.clone());
    builder.set_auth(SimpleAuth::from_single(identity.access_key.as_str(), identity.secret_key.as_str()));
    builder.set_route(storage.listen_route());
    let service = RequestIds::new(builder.build(), &hub.origin().node);
    let listener = TcpListener::bind(flags.s3).await.map_err(|error| taken(flags.s3, &error))?;
    let address = listener.local_addr().map_err(|error| taken(flags.s3, &error))?;
    welcome(address, identity);
    let looking = {
        let (storage, hub) = (storage.clone(), hub.clone());
        tokio::spawn(async move { recover_doubtful(&storage, &hub).await })
    };
    let mut http = Builder::new(TokioExecutor::new());
    http.http1().timer(TokioTimer::new()).header_read_timeout(HEADERS_MAX);
    let connections = GracefulShutdown::new();
    tokio::pin!(stop);
    loop {
        let (stream, peer) = tokio::select! {
            () = &mut stop => break,
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Too many open files, most often: some of them will be closed.
                    tracing::warn!(%error, "a connection was not accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
        };
        let service = service.clone().with_peer(peer);
        let connection = http.serve_connection(TokioIo::new(stream), service).into_owned();
        let connection = connections.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%peer, %error, "a connection broke");
            }
        });
    }
    drop(listener);
    // Clients that listen would keep their connections for ever.
    hub.end_listening();
    let _ = tokio::time::timeout(PATIENCE, connections.shutdown()).await;
    looking.abort();
    Ok(())
}

fn welcome(address: SocketAddr, identity: &Identity) {
    let Identity { access_key, secret_key, .. } = identity;
    say(format_args!("S3 on http://{address}"));
    say(format_args!(
        "try:  export AWS_ACCESS_KEY_ID={access_key} AWS_SECRET_ACCESS_KEY={secret_key} AWS_REGION=us-east-1"
    ));
    say(format_args!("      aws --endpoint-url http://{address} s3 mb s3://photos"));
    say(format_args!("      aws --endpoint-url http://{address} s3 cp README.md s3://photos/"));
    say("stop with Ctrl-C");
}

fn taken(address: SocketAddr, error: &std::io::Error) -> String {
    format!("cannot serve S3 on `{address}`: {error}; `--s3` chooses another address")
}

/// How long a request's headers may take to arrive.
const HEADERS_MAX: Duration = Duration::from_secs(30);
/// How long requests may go on when the program is to stop.
const PATIENCE: Duration = Duration::from_secs(5);
