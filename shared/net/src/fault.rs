//! What lies beneath an error, and what a failed call says of its connection.

use std::error::Error;
use std::io;

use tonic::Status;

use crate::connector::{ConnectFault, TlsRefusal};

/// Returns `error` and its causes in one line, without those that are quoted already.
pub fn in_one_line(error: &(dyn Error + 'static)) -> String {
    with_causes(error.to_string(), error)
}

/// Returns what to say of a status in a report or a log: its code and message, and the causes beneath.
pub fn describe(status: &Status) -> String {
    let said = format!("{:?}: {}", status.code(), status.message());
    with_causes(said, status)
}

fn with_causes(mut line: String, error: &(dyn Error + 'static)) -> String {
    for cause in beneath(error) {
        let cause = cause.to_string();
        if !line.contains(&cause) {
            line = format!("{line}: {cause}");
        }
    }
    line
}

/// Returns what lies beneath `error`, the nearest first.
pub(crate) fn beneath<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(error.source(), |&cause| cause.source())
}

/// Returns whether `status` comes of TLS: of certificates, or of a peer that does not speak it. Trying again at
/// once gives the same.
pub fn is_tls_fault(status: &Status) -> bool {
    let mut causes = beneath(status);
    causes.any(|cause| matches!(cause.downcast_ref(), Some(ConnectFault::Tls { .. })))
}

/// Returns whether the server speaks TLS, and one of the two sides refused the other's certificate or protocol.
pub fn is_refused_in_tls(status: &Status) -> bool {
    let mut causes = beneath(status);
    causes.any(|cause| match cause.downcast_ref() {
        Some(ConnectFault::Tls { is_spoken, .. }) => *is_spoken,
        Some(ConnectFault::Tcp { .. }) => false,
        None => {
            let io = cause.downcast_ref::<io::Error>();
            io.and_then(io::Error::get_ref)
                .is_some_and(<dyn Error + Send + Sync>::is::<TlsRefusal>)
        }
    })
}

/// Returns why a connection broke or did not come about, without addresses; none if `status` is the server's own.
pub fn connection_fault(status: &Status) -> Option<String> {
    let fault = beneath(status).find_map(|cause| match cause.downcast_ref()? {
        ConnectFault::Tcp { source, .. } => Some(source.to_string()),
        ConnectFault::Tls { why, .. } => Some(why.clone()),
    });
    let is_told = speaks_http(status);
    let last = || beneath(status).last().map(ToString::to_string);
    fault.or_else(|| last().filter(|_| !is_told))
}

/// A server that answered a call of gRPC in HTTP.
#[derive(Debug, thiserror::Error)]
#[error(
    "it answered with HTTP status {0}, not in gRPC: this is the port of the OpenAI API (coordinator.http.listen), of \
     metrics and health (admin.listen), or of another program; name the service's gRPC port: that of \
     coordinator.listen (for --coordinator, by default 127.0.0.1:7001), drafter.listen or verifier.listen"
)]
pub(crate) struct SpeaksHttp(pub(crate) u16);

/// Returns whether the server that gave `status` speaks HTTP and not gRPC. Trying again gives the same.
pub fn speaks_http(status: &Status) -> bool {
    beneath(status).any(<dyn Error>::is::<SpeaksHttp>)
}
