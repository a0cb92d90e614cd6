//! What the configuration makes of a process: who it is, and whom it believes.

use anyhow::ensure;
use net::Credentials;
use net::auth::Auth;
use net::listen::{Listen, check_exposed};
use net::reload::FileError;
use net::tls::{Tls, TlsConfig, TlsMode};
use ops::process::Process;

use crate::config::Config;

/// What else can be done about a service that would be reached in clear.
const REMEDY: &str = "set tls.mode = \"server\" or \"mutual\", or say insecure = true (--insecure) where \
                      the network itself is trusted";

/// Returns the process of a coordinator, watched as `watched` is; if it may listen where it is to.
pub(crate) fn of_coordinator(config: &Config, watched: &Process) -> anyhow::Result<Process> {
    let tls = Tls::load(&config.tls)?;
    let process = of(config, watched, tls, Auth::of_coordinator(&config.auth))?;
    check_listen(config, "coordinator.listen", config.coordinator.listen)?;
    if let Some(listen) = config.coordinator.http.listen.listen() {
        check_listen(config, "coordinator.http.listen", listen)?;
    }
    Ok(process)
}

/// Returns the process of a drafter or a verifier, or of whoever talks to one.
pub(crate) fn of_peer(config: &Config, watched: &Process) -> anyhow::Result<Process> {
    let tls = Tls::load(&config.tls)?;
    of(config, watched, tls, Auth::of_peer(&config.auth))
}

/// Returns the process of a drafter and a verifier beside their coordinator, which reaches them on loopback.
pub(crate) fn of_peer_within(config: &Config, watched: &Process) -> anyhow::Result<Process> {
    of(config, watched, Tls::default(), Auth::of_peer(&config.auth))
}

/// Returns the process of a coordinator's client. What the certificates are for that are named, if they are, is
/// the client's side alone.
pub(crate) fn of_client(config: &Config) -> anyhow::Result<Process> {
    let tls = TlsConfig {
        mode: TlsMode::Off,
        ..config.tls.clone()
    };
    let (watched, tls) = (Process::default(), Tls::load(&tls)?);
    of(config, &watched, tls, Auth::of_client(&config.auth))
}

fn of(
    config: &Config,
    watched: &Process,
    tls: Tls,
    auth: Result<Auth, FileError>,
) -> anyhow::Result<Process> {
    let auth = auth?.in_clear(config.insecure);
    Ok(watched.clone().with_credentials(Credentials { tls, auth }))
}

/// Refuses to serve in clear where other machines can connect, unless that is asked for.
pub(crate) fn check_listen(
    config: &Config,
    setting: &'static str,
    listen: Listen,
) -> anyhow::Result<()> {
    if config.insecure || config.tls.mode != TlsMode::Off {
        return Ok(());
    }
    Ok(check_exposed(setting, listen, REMEDY)?)
}

/// Refuses the same for a service whose coordinator is in this process, and reaches it in clear.
pub(crate) fn check_listen_within(
    config: &Config,
    setting: &'static str,
    listen: Listen,
) -> anyhow::Result<()> {
    let is_loopback = listen.address().ip().is_loopback();
    ensure!(
        config.insecure || is_loopback,
        "{setting}: in `serve all`, drafter and verifier serve their coordinator alone, in clear; listen on \
         127.0.0.1, run them as services of their own, or say insecure = true (--insecure)"
    );
    Ok(())
}
