//! The webhook target over TLS: whom it believes, and how it is known.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use kolumn_notify::config::Secret;
use kolumn_notify::event::{EventName, Style, Timestamp};
use kolumn_notify::queue::{Delivery, Message};
use kolumn_notify::target::webhook::{WebhookOptions, WebhookTarget};
use kolumn_notify::target::{SendErrorKind, Target, chain};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

use crate::webhook_support::Server;

/// An authority, and a folder with PEM files of what it signed.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    dir: tempfile::TempDir,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("ca.pem"), issuer.pem()).unwrap();
        Self { issuer, dir }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A certificate for this name, and its key, as files.
    fn sign(&self, name: &str) -> (PathBuf, PathBuf) {
        let key = KeyPair::generate().unwrap();
        let cert =
            CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &self.issuer).unwrap();
        let [cert_file, key_file] = ["cert", "key"].map(|end| self.file(&format!("{name}.{end}.pem")));
        std::fs::write(&cert_file, cert.pem()).unwrap();
        std::fs::write(&key_file, key.serialize_pem()).unwrap();
        (cert_file, key_file)
    }

    /// A server of this name that asks clients for a certificate if it has to.
    fn acceptor(&self, name: &str, asks: bool) -> TlsAcceptor {
        use rustls::pki_types::pem::PemObject as _;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let (cert, key) = self.sign(name);
        let certs = vec![rustls::pki_types::CertificateDer::from_pem_file(cert).unwrap()];
        let builder = ServerConfig::builder_with_provider(provider.clone());
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let builder = if asks {
            let mut roots = RootCertStore::empty();
            roots.add(self.issuer.der().clone()).unwrap();
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
            builder.with_client_cert_verifier(verifier)
        } else {
            builder.with_no_client_auth()
        };
        let config = builder.with_single_cert(certs, PrivateKeyDer::from_pem_file(key).unwrap()).unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}

async fn send(options: &WebhookOptions) -> Result<(), String> {
    let target = WebhookTarget::new("arn:minio:sqs::_:webhook".parse().unwrap(), options, Style::Minio);
    let target = target.map_err(|error| chain(&error))?;
    let key = Bytes::from_static(b"photos/a");
    let message = Message::new(EventName::ObjectCreatedPut, key, "{}", Timestamp::default());
    let sent = target.send(&[Delivery::new(0, message)]).await;
    sent.map_err(|error| {
        assert_eq!((error.kind(), error.delivered()), (SendErrorKind::Temporary, 0));
        chain(&error)
    })
}

fn options(server: &Server, ca: Option<&Path>) -> WebhookOptions {
    let mut options = WebhookOptions::new(format!("https://localhost:{}/", server.address.port()));
    options.tls.ca = ca.map(Into::into);
    options
}

#[tokio::test]
async fn a_server_is_believed_if_its_authority_is() {
    let authority = Authority::new();
    let server = Server::start_with_tls(authority.acceptor("localhost", false)).await;
    send(&options(&server, Some(&authority.file("ca.pem")))).await.unwrap();
    assert_eq!(server.posted().len(), 1);

    let other = Authority::new();
    let error = send(&options(&server, Some(&other.file("ca.pem")))).await.unwrap_err();
    assert!(error.contains("certificate"), "{error}");
    let mut blind = options(&server, Some(&other.file("ca.pem")));
    blind.tls.verify = false;
    send(&blind).await.unwrap();
    assert_eq!(server.posted().len(), 2);
}

#[tokio::test]
async fn a_server_of_another_name_is_not_believed() {
    let authority = Authority::new();
    let server = Server::start_with_tls(authority.acceptor("example.net", false)).await;
    let error = send(&options(&server, Some(&authority.file("ca.pem")))).await.unwrap_err();
    assert!(error.contains("certificate"), "{error}");
    assert!(server.posted().is_empty());
}

#[tokio::test]
async fn a_client_is_known_by_its_certificate() {
    let authority = Authority::new();
    let server = Server::start_with_tls(authority.acceptor("localhost", true)).await;
    let mut options = options(&server, Some(&authority.file("ca.pem")));
    send(&options).await.unwrap_err();
    let (cert, key) = authority.sign("client");
    options.tls.client = Some(kolumn_notify::config::ClientCertificate::new(&cert, &key));
    send(&options).await.unwrap();

    let (_, other_key) = authority.sign("other");
    options.tls.client = Some(kolumn_notify::config::ClientCertificate::new(&cert, &other_key));
    let error = send(&options).await.unwrap_err();
    assert!(error.contains("cannot be used"), "{error}");
    options.tls.client = Some(kolumn_notify::config::ClientCertificate::new(&key, &key));
    let error = send(&options).await.unwrap_err();
    assert!(error.contains("has no certificate in PEM"), "{error}");
    options.auth_token = Secret::new("token");
    options.tls.client = Some(kolumn_notify::config::ClientCertificate::new(&cert, &cert));
    let error = send(&options).await.unwrap_err();
    assert!(error.contains("has no private key in PEM"), "{error}");
}
