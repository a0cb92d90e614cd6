//! Whether a coordinator answers, is ready and has its peers.

use std::net::SocketAddr;

use ops::admin::{self, Readiness};
use wire::v1::ServedModel;

use super::DoctorClients;
use super::ask::{self, Silence};
use super::dial::Dialled;
use super::report::Findings;
use crate::check::{OF_ONE_FAMILY, ServeRole};
use crate::cluster::reachable;
use crate::config::Config;

/// Asks the coordinator at `url`; without one, whatever runs where this configuration's would listen.
pub(super) async fn findings(
    config: &Config,
    role: ServeRole,
    url: Option<&str>,
    clients: &DoctorClients,
) -> Findings {
    let mut findings = Findings::of("coordinator");
    let own = reachable(config.coordinator.listen.address());
    if url.is_none() && own.port() == 0 {
        return findings;
    }
    let (dialled, named) = match url {
        Some(url) => (Dialled::of_url(url), url.to_owned()),
        None => (
            Dialled::own(config, role, "coordinator.listen", own),
            own.to_string(),
        ),
    };
    let answered = ask::coordinator(&dialled, &clients.client);
    let ready = ask::is_ready(&dialled, &clients.client);
    let (answered, is_ready, told) = tokio::join!(answered, ready, readiness(config));
    let told = told.filter(|_| url.is_none_or(|url| is_here(url, own)));
    match told {
        Some(told) if told.line != "ready" => findings.warning(
            format!("the coordinator at {named} is {}", told.line),
            "see its log, and whether its peers run and fit; `outrider health` asks its admin port again",
        ),
        None if is_ready == Some(false) => findings.warning(
            format!("the coordinator at {named} is not ready"),
            "/readyz of its admin port says why: `outrider health --url http://HOST:9464`",
        ),
        _ => {}
    }
    match answered {
        Ok(reply) => {
            let ahead = ask::ahead(&reply).map(|ahead| (named.clone(), ahead));
            findings.skews.extend(ahead);
            for model in reply.into_inner().models {
                judge(&mut findings, &named, &model);
            }
        }
        Err(silence) if url.is_some() => silent(&mut findings, &named, &silence),
        Err(silence) => findings.info(match silence {
            Silence::Unbelieved(why) | Silence::Denied(why) => {
                format!("whoever answers at {named} cannot be asked: {why}")
            }
            silence => format!("no coordinator at {named} ({})", silence.why()),
        }),
    }
    findings
}

/// Returns what the admin port of this configuration says, if one answers.
async fn readiness(config: &Config) -> Option<Readiness> {
    let address = reachable(config.admin.listen.listen()?.address());
    admin::readiness(&format!("http://{address}")).await.ok()
}

/// Returns whether `url` is that of a port of this machine, or of the one that this configuration names.
fn is_here(url: &str, own: SocketAddr) -> bool {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = authority
        .trim_end_matches('/')
        .replace("localhost:", "127.0.0.1:");
    let address: Result<SocketAddr, _> = authority.parse();
    address.is_ok_and(|address| address == own || address.ip().is_loopback())
}

fn silent(findings: &mut Findings, named: &str, silence: &Silence) {
    let remedy = match silence {
        Silence::NobodyThere | Silence::Mute => {
            "start it (`outrider serve coordinator`, or `serve all`), or correct the URL"
        }
        Silence::Unbelieved(_) | Silence::Tls(_) => {
            "correct the URL, or the certificates: --ca-file, --cert-file and --key-file, or section tls"
        }
        Silence::Denied(_) => {
            "name a file with a token of its auth.client_tokens_file: --token-file"
        }
        Silence::Other(_) => {
            "see its log, or correct the URL: it is that of the coordinator's gRPC port"
        }
    };
    findings.error(
        format!("{named} does not answer: {}", silence.why()),
        remedy,
    );
}

/// Tells who serves a model, and who is missing.
fn judge(findings: &mut Findings, named: &str, model: &ServedModel) {
    let name = &model.name;
    match (&model.verifier, &model.drafter) {
        (Some(target), Some(draft)) => {
            findings.ok(format!(
                "{named} serves '{name}': '{}' drafts for '{}'",
                draft.model, target.model
            ));
        }
        (Some(target), None) if !model.has_drafters => findings.ok(format!(
            "{named} serves '{name}' by '{}' without a drafter: drafts are copied from the text",
            target.model
        )),
        (Some(target), None) => findings.warning(
            format!(
                "{named} serves '{name}' by '{}' alone: no drafter answers it, or none fits",
                target.model
            ),
            format!(
                "`outrider health` on its machine, or /readyz of its admin port, says which and why; where none fits, \
                 {OF_ONE_FAMILY}"
            ),
        ),
        (None, _) => findings.error(
            format!("{named} cannot serve '{name}': no verifier answers it"),
            "start a verifier, and see coordinator.models of that coordinator",
        ),
    }
    for draft in &model.draft_models {
        let (draft, gain) = (&draft.name, draft.gain);
        if gain > 1.0 {
            findings.ok(format!(
                "drafts of '{draft}' make '{name}' {gain:.2} × as fast"
            ));
        } else {
            findings.warning(
                format!(
                    "drafts of '{draft}' do not pay for '{name}': {gain:.2} × of the target alone, so requests go without them unless they ask"
                ),
                "see `outrider calibrate` for what another draft model would bring",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_admin_port_speaks_for_a_coordinator_of_its_machine() {
        let own = "10.0.0.1:7001".parse().expect("an address");
        for url in [
            "http://127.0.0.1:7001",
            "localhost:7001",
            "https://10.0.0.1:7001/",
        ] {
            assert!(is_here(url, own), "{url}");
        }
        for url in ["http://10.0.0.2:7001", "https://models.example:7001"] {
            assert!(!is_here(url, own), "{url}");
        }
    }
}
