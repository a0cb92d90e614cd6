//! How a collector is connected to: in clear, or by TLS with the CAs that are believed.

use opentelemetry_http::hyper::HyperClient;
use rustls::RootCertStore;
use tonic::transport::{Channel, Endpoint};

use super::TelemetryError;
use super::settings::Destination;
use crate::connector::{Connections, Connector};
use crate::tls::{Tls, roots_of};

/// Speaks gRPC with the collector. It connects with its first export and again after every loss.
///
/// # Errors
/// If the CAs cannot be used.
///
/// # Panics
/// Outside a Tokio runtime.
pub(super) fn channel(destination: &Destination) -> Result<Channel, TelemetryError> {
    let connector = connector(destination, b"h2")?;
    let malformed = |_| TelemetryError::Setting {
        key: "the collector".to_owned(),
        value: destination.url.clone(),
        expected: "expected a URL",
    };
    let endpoint = Endpoint::from_shared(destination.url.clone()).map_err(malformed)?;
    let endpoint = endpoint
        .connect_timeout(destination.timeout)
        .timeout(destination.timeout);
    Ok(endpoint.connect_with_connector_lazy(connector))
}

/// Speaks HTTP with it.
///
/// # Errors
/// As [`channel`].
pub(super) fn http(destination: &Destination) -> Result<HyperClient<Connector>, TelemetryError> {
    let connector = connector(destination, b"http/1.1")?;
    let authorization = None;
    Ok(HyperClient::new(
        connector,
        destination.timeout,
        authorization,
    ))
}

fn connector(
    destination: &Destination,
    protocol: &'static [u8],
) -> Result<Connector, TelemetryError> {
    let tls = if destination.url.starts_with("https:") {
        Tls::believing(roots(destination)?, protocol)?
    } else {
        Tls::default()
    };
    Ok(Connector {
        address: None,
        tls,
        connections: Connections::default(),
    })
}

/// The CAs that are believed.
fn roots(destination: &Destination) -> Result<RootCertStore, TelemetryError> {
    let Some(authorities) = &destination.authorities else {
        let public = webpki_roots::TLS_SERVER_ROOTS.iter().cloned();
        return Ok(public.collect());
    };
    let unusable = |problem: String| TelemetryError::Authorities {
        key: authorities.key.clone(),
        file: authorities.file.clone(),
        problem,
    };
    let pem = std::fs::read(&authorities.file);
    let pem = pem.map_err(|error| unusable(format!("cannot be read: {error}")))?;
    roots_of(&pem).map_err(unusable)
}
