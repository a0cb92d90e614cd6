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
    let endpoint = Endpoint::from(destination.uri.clone())
        .connect_timeout(destination.timeout)
        .timeout(destination.timeout);
    Ok(endpoint.connect_with_connector_lazy(connector(destination, b"h2")?))
}

/// Speaks HTTP with it.
///
/// # Errors
/// As [`channel`].
pub(super) fn http(destination: &Destination) -> Result<HyperClient<Connector>, TelemetryError> {
    let connector = connector(destination, b"http/1.1")?;
    Ok(HyperClient::new(connector, destination.timeout, None))
}

/// Returns what opens connections to it.
///
/// # Errors
/// If the CAs cannot be used.
pub(super) fn connector(
    destination: &Destination,
    protocol: &'static [u8],
) -> Result<Connector, TelemetryError> {
    let tls = match (destination.uri.scheme_str(), &destination.authorities) {
        (Some("https"), None) => {
            let public = webpki_roots::TLS_SERVER_ROOTS.iter().cloned();
            Tls::believing(public.collect::<RootCertStore>(), protocol)?
        }
        (Some("https"), Some((key, file))) => Tls::believing(roots_of(key, file)?, protocol)?,
        _ => Tls::default(),
    };
    Ok(Connector {
        address: None,
        timeout: destination.timeout,
        tls,
        connections: Connections::default(),
        speaks_grpc: protocol == b"h2",
    })
}
