//! Whether each address can be listened on, and who has it if not.

use std::io;
use std::net::SocketAddr;

use futures_util::future::join_all;
use ops::admin::AskError;
use ops::config::LoadedConfig;
use ops::process::Process;
use speculation::session::Peer;
use tokio::net::TcpListener;

use super::DoctorClients;
use super::ask::{self, Silence};
use super::dial::Dialled;
use super::report::Findings;
use crate::check::{ServeRole, listens};
use crate::cluster::reachable;
use crate::config::Config;
use crate::global::is_default;

/// Whether an address can be listened on.
enum PortState {
    Free,
    /// Another process listens there: an outrider, which is described, or one that did not say what it is. HTTP ports are
    /// not asked.
    Taken(Result<String, Silence>),
    Unusable(io::Error),
}

/// Returns what is found of the addresses that `role` listens on, all at once.
pub(super) async fn findings(
    loaded: &LoadedConfig<Config>,
    role: ServeRole,
    own: &DoctorClients,
) -> Findings {
    let config = &loaded.value;
    let admin = config
        .admin
        .listen
        .listen()
        .map(|listen| ("admin.listen", listen));
    let listens = admin.into_iter().chain(listens(config, role));
    let looked = listens.map(|(key, listen)| async move {
        let process = match key {
            "coordinator.listen" => &own.client,
            _ => &own.process,
        };
        let address = listen.address();
        let dialled = Dialled::own(config, role, key, address);
        (key, address, look(key, address, &dialled, process).await)
    });
    let mut findings = Findings::of("ports");
    let mut has_coordinator = false;
    for (key, address, state) in join_all(looked).await {
        let at = format!("{key}: {address}");
        match state {
            PortState::Free if address.port() == 0 => {
                findings.ok(format!("{at} is whatever port is free"));
            }
            PortState::Free => findings.ok(format!("{at} is free")),
            PortState::Unusable(error) => findings.error(
                format!("{at} cannot be listened on: {error}"),
                format!(
                    "set {key} to an address of this machine and a port that this user may take"
                ),
            ),
            PortState::Taken(_) if key == "coordinator.http.listen" && has_coordinator => {
                findings.info(format!(
                    "{at} is taken, most likely by the same coordinator"
                ));
            }
            PortState::Taken(who) => {
                has_coordinator |= key == "coordinator.listen"
                    && !matches!(who, Err(Silence::NobodyThere | Silence::Other(_)));
                // `serve` does without the ports that nobody chose.
                let is_needed = match key {
                    "admin.listen" | "coordinator.http.listen" => !is_default(loaded, key),
                    _ => true,
                };
                taken(&mut findings, &at, key, who, is_needed);
            }
        }
    }
    findings
}

/// Listens on an address for a moment, and where that is taken asks who is there.
async fn look(key: &str, address: SocketAddr, dialled: &Dialled, process: &Process) -> PortState {
    match TcpListener::bind(address).await {
        Ok(_) => PortState::Free,
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => PortState::Unusable(error),
        Err(_) => PortState::Taken(match key {
            "admin.listen" => admin_at(reachable(address)).await,
            "coordinator.listen" => coordinator_at(dialled, process).await,
            "drafter.listen" => peer_at(dialled, Peer::Drafter, process).await,
            "verifier.listen" => peer_at(dialled, Peer::Verifier, process).await,
            _ => Err(Silence::NobodyThere),
        }),
    }
}

fn taken(
    findings: &mut Findings,
    at: &str,
    key: &str,
    who: Result<String, Silence>,
    is_needed: bool,
) {
    let remedy = format!("stop whatever has it, or give {key} another port");
    let by = match who {
        Ok(who) => return findings.info(format!("{at} is taken {who}")),
        Err(Silence::Unbelieved(why)) => {
            return findings.info(format!(
                "{at} is taken by a TLS server that answers, and cannot be asked what it is: {why}; if it is none of \
                 this deployment's, give {key} another port"
            ));
        }
        Err(Silence::Denied(why)) => {
            return findings.info(format!(
                "{at} is taken by a gRPC service that answers, and asks for a token: {why}"
            ));
        }
        Err(Silence::Tls(why)) => {
            let what = format!("{at} is taken, and who has it cannot be asked: {why}");
            return findings.warning(what, remedy);
        }
        Err(Silence::Mute) => {
            "something that accepts connections and does not answer: an outrider that hangs, or another program"
        }
        Err(Silence::NobodyThere) => "something",
        Err(Silence::Other(_)) => "something that is no outrider",
    };
    if is_needed {
        findings.error(format!("{at} is taken by {by}"), remedy);
    } else {
        findings.warning(
            format!("{at} is taken by {by}; nobody chose it, and serve takes another port or does without"),
            remedy,
        );
    }
}

async fn peer_at(dialled: &Dialled, kind: Peer, process: &Process) -> Result<String, Silence> {
    let answer = ask::peer(dialled, kind, process).await?;
    Ok(format!(
        "by an outrider {} of '{}'",
        kind.name(),
        answer.get_ref().model
    ))
}

async fn coordinator_at(dialled: &Dialled, process: &Process) -> Result<String, Silence> {
    ask::coordinator(dialled, process).await?;
    Ok("by an outrider coordinator".to_owned())
}

async fn admin_at(address: SocketAddr) -> Result<String, Silence> {
    let readiness = ops::admin::readiness(&format!("http://{address}")).await;
    let readiness = readiness.map_err(|error| match error {
        AskError::Late { .. } => Silence::Mute,
        error => Silence::Other(error.to_string()),
    })?;
    Ok(format!(
        "by an outrider's admin port, which says: {}",
        readiness.line
    ))
}
