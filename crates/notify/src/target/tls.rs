//! TLS of targets: what a configuration's files say, for rustls.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::BuildError;
use crate::config::TlsConfig;

/// Reads the files: TLS 1.2 and later, the authorities of `ca` or else of the system, a client's certificate if there is one.
/// If it will not be used, a system without authorities is none the worse.
///
/// The files are read once. A certificate that is replaced counts from the next start.
pub(super) fn client_config(tls: &TlsConfig, is_used: bool) -> Result<ClientConfig, BuildError> {
    let provider = Arc::new(ring::default_provider());
    let wrong = |error: Error| BuildError::new("TLS cannot be set up").caused_by(error);
    let builder = ClientConfig::builder_with_provider(provider.clone());
    let builder = builder.with_safe_default_protocol_versions().map_err(wrong)?;
    let builder = if tls.verify {
        builder.with_root_certificates(authorities(tls.ca.as_deref(), is_used)?)
    } else {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
    };
    let Some(client) = &tls.client else { return Ok(builder.with_no_client_auth()) };
    let certificates = certificates(&client.cert)?;
    let key = PrivateKeyDer::from_pem_file(&client.key).map_err(|error| {
        let path = client.key.display();
        BuildError::new(format!("`{path}` has no private key in PEM that could be read")).caused_by(error)
    })?;
    builder.with_client_auth_cert(certificates, key).map_err(|error| {
        let [cert, key] = [&client.cert, &client.key].map(|path| path.display());
        BuildError::new(format!("the certificate of `{cert}` and the key of `{key}` cannot be used"))
            .caused_by(error)
    })
}

fn authorities(file: Option<&Path>, is_used: bool) -> Result<RootCertStore, BuildError> {
    let mut store = RootCertStore::empty();
    if let Some(file) = file {
        for certificate in certificates(file)? {
            store.add(certificate).map_err(|error| {
                BuildError::new(format!("`{}` has a certificate of no authority", file.display()))
                    .caused_by(error)
            })?;
        }
        return Ok(store);
    }
    if !is_used {
        return Ok(store);
    }
    let mut found = rustls_native_certs::load_native_certs();
    // Some of a system's certificates may be odd; the others are what is needed.
    let (added, _) = store.add_parsable_certificates(found.certs);
    if added > 0 {
        return Ok(store);
    }
    let error = BuildError::new("the system has no certificates of authorities");
    Err(match found.errors.pop() {
        Some(cause) => error.caused_by(cause),
        None => error,
    })
}

/// The certificates of a PEM file: at least one.
fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, BuildError> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates = read.map_err(|error| {
        BuildError::new(format!("`{}` is no PEM file that could be read", file.display())).caused_by(error)
    })?;
    if certificates.is_empty() {
        return Err(BuildError::new(format!("`{}` has no certificate in PEM", file.display())));
    }
    Ok(certificates)
}

/// Takes every certificate, and asks only that the other side has its key.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
