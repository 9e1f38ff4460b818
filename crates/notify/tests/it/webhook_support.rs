//! An HTTP server for tests of the webhook target: what was posted to it, and how it answers.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::HeaderMap;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

/// A server that takes what is posted to it.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<State>>,
    is_down: watch::Sender<bool>,
    listens: watch::Receiver<bool>,
}

/// One request.
#[derive(Debug, Clone)]
pub(crate) struct Posted {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

#[derive(Debug, Default)]
struct State {
    posted: Vec<Posted>,
    connections: usize,
    cut_after: Option<usize>,
    answer: Option<(StatusCode, &'static str, Option<&'static str>)>,
    /// Requests that are answered now, and the most there were.
    under_way: (usize, usize),
}

impl Server {
    /// A server at an address of its own, which no client's end of a connection has: while it is down, nobody takes it.
    pub(crate) async fn start() -> Self {
        static NEXT: AtomicU8 = AtomicU8::new(2);
        Self::start_at(Ipv4Addr::new(127, 0, 0, NEXT.fetch_add(1, Ordering::Relaxed)), None).await
    }

    /// A server with TLS, at `localhost`.
    pub(crate) async fn start_with_tls(tls: TlsAcceptor) -> Self {
        Self::start_at(Ipv4Addr::LOCALHOST, Some(tls)).await
    }

    async fn start_at(address: Ipv4Addr, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind((address, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (is_down, down) = watch::channel(false);
        let (listening, listens) = watch::channel(true);
        let state = Arc::<Mutex<State>>::default();
        let accepting = Accepting { address, tls, state: state.clone(), is_down: is_down.clone(), listening };
        tokio::spawn(accepting.run(listener, down));
        Self { address, state, is_down, listens }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn posted(&self) -> Vec<Posted> {
        self.state.lock().unwrap().posted.clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.state.lock().unwrap().connections
    }

    pub(crate) fn most_under_way(&self) -> usize {
        self.state.lock().unwrap().under_way.1
    }

    /// While it is down, connections are refused, and those that were there are ended.
    pub(crate) async fn set_down(&self, is_down: bool) {
        self.is_down.send_replace(is_down);
        self.listens.clone().wait_for(|listens| *listens != is_down).await.unwrap();
    }

    pub(crate) fn cut_after(&self, count: usize) {
        self.state.lock().unwrap().cut_after = Some(count);
    }

    /// Answers everything like this from now on; `None` is 200.
    pub(crate) fn answer(&self, answer: Option<(StatusCode, &'static str, Option<&'static str>)>) {
        self.state.lock().unwrap().answer = answer;
    }
}

/// Takes connections while the server is not down.
struct Accepting {
    address: SocketAddr,
    tls: Option<TlsAcceptor>,
    state: Arc<Mutex<State>>,
    is_down: watch::Sender<bool>,
    listening: watch::Sender<bool>,
}

impl Accepting {
    async fn run(self, mut listener: TcpListener, mut down: watch::Receiver<bool>) {
        loop {
            if *down.borrow_and_update() {
                drop(listener);
                self.listening.send_replace(false);
                down.wait_for(|is_down| !*is_down).await.unwrap();
                listener = TcpListener::bind(self.address).await.unwrap();
                self.listening.send_replace(true);
                continue;
            }
            tokio::select! {
                biased;
                _ = down.changed() => {}
                accepted = listener.accept() => {
                    tokio::spawn(self.connection(accepted.unwrap().0, down.clone()));
                }
            }
        }
    }

    fn connection(
        &self,
        stream: TcpStream,
        mut down: watch::Receiver<bool>,
    ) -> impl Future<Output = ()> + use<> {
        let (tls, state, is_down) = (self.tls.clone(), self.state.clone(), self.is_down.clone());
        async move {
            let serve = async {
                match tls {
                    None => serve(stream, state, is_down).await,
                    Some(tls) => {
                        if let Ok(stream) = tls.accept(stream).await {
                            serve(stream, state, is_down).await;
                        }
                    }
                }
            };
            tokio::select! {
                biased;
                _ = down.wait_for(|is_down| *is_down) => {}
                () = serve => {}
            }
        }
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    state: Arc<Mutex<State>>,
    is_down: watch::Sender<bool>,
) {
    state.lock().unwrap().connections += 1;
    let service = service_fn(move |request| handle(request, state.clone(), is_down.clone()));
    // A connection that ends is what tests are about.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn handle(
    request: Request<Incoming>,
    state: Arc<Mutex<State>>,
    is_down: watch::Sender<bool>,
) -> Result<Response<Full<Bytes>>, &'static str> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| "cut")?.to_bytes();
    {
        let mut state = state.lock().unwrap();
        state.under_way.0 += 1;
        state.under_way.1 = state.under_way.1.max(state.under_way.0);
    }
    // So that requests that can be under way at the same time are.
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    let mut state = state.lock().unwrap();
    state.under_way.0 -= 1;
    if state.cut_after == Some(0) {
        state.cut_after = None;
        is_down.send_replace(true);
    }
    if *is_down.borrow() {
        return Err("down");
    }
    let mut response = Response::new(Full::default());
    if let Some((status, text, retry_after)) = state.answer {
        *response.status_mut() = status;
        *response.body_mut() = Full::new(Bytes::from_static(text.as_bytes()));
        if let Some(seconds) = retry_after {
            response.headers_mut().insert("retry-after", seconds.parse().unwrap());
        }
    }
    if body.windows(MARK.len()).any(|part| part == MARK.as_bytes()) {
        *response.status_mut() = StatusCode::UNPROCESSABLE_ENTITY;
    }
    if response.status().is_success() {
        if let Some(left) = &mut state.cut_after {
            *left -= 1;
        }
        let [method, path] = [head.method.to_string(), head.uri.to_string()];
        state.posted.push(Posted { method, path, headers: head.headers, body });
    }
    Ok(response)
}

/// A message with this text in it is never taken.
pub(crate) const MARK: &str = "never taken";
