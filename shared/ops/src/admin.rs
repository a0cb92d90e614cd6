//! The admin port: what operators and their machines ask of a process, on a port of its own.
//!
//! `/metrics` are its figures, `/livez` and `/readyz` its health in words, `/status` a page that shows what its parts do, and `grpc.health.v1` the same for
//! probes that speak gRPC, with reflection. HTTP/1 and HTTP/2 in clear; no token is asked for, and nothing that a client sent
//! is ever shown; on loopback, pages of browsers are refused. The port opens before any model is loaded and closes after
//! the last service has drained, so what happens in between can be watched.

mod ask;
mod connections;
mod http;
mod status;

use std::io;
use std::net::SocketAddr;

use net::listen::{BindError, ExposedError, OptionalListen, check_exposed};
use net::loopback::Trusted;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use crate::process::Process;
use crate::reflection::ReflectionError;

pub use ask::{AskError, Readiness, readiness};
pub use connections::{HEADER_TIMEOUT, MAX_CONNECTIONS, MAX_STREAMS};
pub use http::{ANSWER_TIMEOUT, MAX_REQUEST_BYTES};

/// The admin port unless it is said.
const DEFAULT_PORT: u16 = 9464;

/// How many ports are tried where nobody chose one: three services on a machine get one each.
const DEFAULT_PORTS: u16 = 3;

/// What else can be done where others could reach it.
const REMEDY: &str = "or set admin.insecure = true if the network keeps strangers away";

/// The admin port, as a section of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(default, deny_unknown_fields)]
pub struct AdminConfig {
    /// Address to listen on, `IP:PORT`; `off`, or nothing, for no admin port.
    #[default(OptionalListen::on_loopback(DEFAULT_PORT))]
    pub listen: OptionalListen,
    /// Whether it may listen on an address that others can reach, although it speaks in clear.
    pub insecure: bool,
    /// Names that a request may give as `Host` beside those of this machine, where the port listens on loopback
    /// alone: a proxy here passes them on.
    pub trusted_hosts: Vec<String>,
    /// Whether metrics that vLLM has too are also written under vLLM's names.
    pub vllm_metrics: bool,
}

impl AdminConfig {
    /// Checks that nobody reaches it who must not.
    ///
    /// # Errors
    /// [`ExposedError`] naming the address.
    pub fn check(&self) -> Result<(), ExposedError> {
        match self.listen.listen() {
            Some(listen) if !self.insecure => check_exposed("admin.listen", listen, REMEDY),
            _ => Ok(()),
        }
    }
}

/// Why the admin port cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// The address cannot be bound.
    #[error("admin.listen: {0}; several processes on a machine need a port each, or \"off\"")]
    Bind(#[from] BindError),
    /// Others could reach it.
    #[error(transparent)]
    Exposed(#[from] ExposedError),
    /// Reflection cannot describe the services of the port.
    #[error(transparent)]
    Reflection(#[from] ReflectionError),
    /// The listener has no address.
    #[error("the listener has no address: {0}")]
    Address(#[source] io::Error),
}

/// An open admin port. Dropping it closes the port and cuts its connections.
#[derive(Debug)]
pub struct Admin {
    /// Where it listens.
    pub address: SocketAddr,
    _task: AbortOnDropHandle<()>,
}

/// Opens the admin port of `process`; none if the configuration says so. Where nobody chose the address, of
/// several processes on a machine the first gets it, the next two the ports after it, and others go on without, and say
/// so.
///
/// # Errors
/// [`AdminError`] naming the setting.
pub async fn start(
    config: &AdminConfig,
    process: &Process,
    is_chosen: bool,
) -> Result<Option<Admin>, AdminError> {
    config.check()?;
    let bound = (config.listen)
        .bind(is_chosen, DEFAULT_PORTS, "admin port")
        .await?;
    let serve = |listener| serve(listener, process, config);
    bound.map(serve).transpose()
}

/// Serves the admin port of `process` on `listener`, wherever `config` has it listen.
///
/// # Errors
/// If the listener has no address, or gRPC health cannot be described.
pub fn serve(
    listener: TcpListener,
    process: &Process,
    config: &AdminConfig,
) -> Result<Admin, AdminError> {
    let address = listener.local_addr().map_err(AdminError::Address)?;
    let local = address.ip().is_loopback().then(|| Trusted {
        hosts: config.trusted_hosts.clone(),
        ..Trusted::default()
    });
    let router = http::router(process, config.vllm_metrics, local)?;
    let task = tokio::spawn(connections::serve(router, listener));
    tracing::info!(admin = %address, "metrics and health");
    Ok(Admin {
        address,
        _task: AbortOnDropHandle::new(task),
    })
}

#[cfg(test)]
mod tests;
