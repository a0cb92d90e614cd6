//! What a failed handshake means, and what to do about it, in the words of the side that failed.

use std::io;

use rustls::{AlertDescription, CertificateError, Error};

/// Which side of a connection this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// It connected.
    Client,
    /// It was connected to.
    Server,
}

impl Side {
    /// Returns what the other side is called.
    fn other(self) -> &'static str {
        match self {
            Self::Client => "server",
            Self::Server => "client",
        }
    }
}

/// Says what a failure of TLS means; other failures of the connection, as the operating system does.
pub(crate) fn explain(error: &io::Error, side: Side) -> String {
    let tls = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<Error>());
    match (tls, side) {
        (Some(Error::InvalidCertificate(fault)), side) => certificate(fault, side),
        (Some(Error::AlertReceived(alert)), side) => refusal(*alert, side),
        (Some(Error::InvalidMessage(_)), Side::Client) => {
            "the server does not speak TLS; write http:// or turn TLS on there (tls.mode)".to_owned()
        }
        (Some(Error::InvalidMessage(_)), Side::Server) => {
            "the client does not speak TLS; its URL must begin with https://".to_owned()
        }
        (Some(Error::NoCertificatesPresented), Side::Server) => {
            "the client showed no certificate, and tls.mode is mutual; it needs tls.cert_file and \
             tls.key_file"
                .to_owned()
        }
        (Some(Error::NoApplicationProtocol), Side::Server) => {
            "the client does not offer HTTP/2 (ALPN h2)".to_owned()
        }
        (Some(error), _) => error.to_string(),
        (None, Side::Client) if is_hung_up(error.kind()) => {
            "the server closed the connection during the TLS handshake and did not say why: it takes no more \
             connections, or is no gRPC service; its log says which"
                .to_owned()
        }
        (None, _) => error.to_string(),
    }
}

/// Returns whether the other side speaks TLS, though this handshake failed or what came after it.
pub(crate) fn is_tls_spoken(error: &io::Error) -> bool {
    let tls = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<Error>());
    tls.is_some_and(|error| !matches!(error, Error::InvalidMessage(_)))
}

/// Returns whether the other side closed the connection; if it had not read all, that is a reset.
pub(crate) fn is_hung_up(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(
        kind,
        UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe
    )
}

/// Says why a certificate of the other side is not trusted.
fn certificate(fault: &CertificateError, side: Side) -> String {
    let whose = format!("the {}'s certificate", side.other());
    match fault {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            format!("{whose} has expired; renew it ({fault})")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            format!("{whose} is not valid yet; compare the clocks of both machines ({fault})")
        }
        CertificateError::UnknownIssuer => {
            format!(
                "{whose} is signed by a CA that is not among those in tls.ca_file (of a collector: \
                 telemetry.ca_file)"
            )
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!(
                "{whose} is of another name; connect by a name it is for, or renew it ({fault})"
            )
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            let usage = match side {
                Side::Client => "serverAuth",
                Side::Server => "clientAuth",
            };
            format!("{whose} is for another purpose; its extended key usage must have {usage}")
        }
        // rustls has no name of its own for it.
        CertificateError::Other(fault) if format!("{fault:?}").contains("CaUsedAsEndEntity") => {
            format!(
                "{whose} is that of a CA (CA:TRUE), as `openssl req -x509` makes it by default; have the CA sign one of \
                 its own for the {} (CA:FALSE)",
                side.other()
            )
        }
        fault => format!("{whose} is not believed: {fault}"),
    }
}

/// Says why the other side ended the handshake.
fn refusal(alert: AlertDescription, side: Side) -> String {
    use AlertDescription as Alert;
    let why = match (alert, side) {
        (Alert::CertificateRequired, Side::Client) => {
            "it asks for a certificate: set tls.cert_file and tls.key_file (--cert-file, --key-file)"
        }
        (Alert::UnknownCA, _) => {
            "it does not know the CA of this side's certificate (tls.cert_file); its tls.ca_file must hold it"
        }
        (Alert::CertificateExpired, _) => {
            "this side's certificate (tls.cert_file) has expired; renew it"
        }
        (
            Alert::BadCertificate
            | Alert::CertificateUnknown
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked,
            Side::Client,
        ) => "it does not believe this side's certificate (tls.cert_file); its log says why",
        (
            Alert::BadCertificate | Alert::CertificateUnknown | Alert::UnsupportedCertificate,
            Side::Server,
        ) => {
            "it does not believe the certificate in tls.cert_file: another name, or another purpose; what it \
             says itself tells more"
        }
        (Alert::NoApplicationProtocol, Side::Client) => "it does not speak HTTP/2 inside of TLS",
        (alert, side) => return format!("the {} ended it with alert {alert:?}", side.other()),
    };
    format!("the {} refused: {why}", side.other())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::OtherError;

    use super::*;

    /// As webpki calls it.
    #[derive(Debug, thiserror::Error)]
    #[error("CaUsedAsEndEntity")]
    struct CaUsedAsEndEntity;

    #[test]
    fn a_ca_that_is_shown_for_a_server_is_named() {
        let fault = CertificateError::Other(OtherError(Arc::new(CaUsedAsEndEntity)));
        let said = certificate(&fault, Side::Client);
        assert!(
            said.starts_with("the server's certificate is that of a CA"),
            "{said}"
        );
    }
}
