//! Whether a coordinator's peers answer and fit each other.

use futures_util::future::join_all;
use ops::process::Process;
use speculation::session::Peer;
use wire::describe::{check_pair, check_protocol, check_vocabularies};
use wire::v1::PeerDescription;

use super::ask::{self, Silence};
use super::dial::Dialled;
use super::report::Findings;
use crate::config::Config;

/// Asks all peers of `coordinator.models`, at once. Where nobody chose them (`is_chosen`), nothing need run there.
pub(super) async fn findings(config: &Config, is_chosen: bool, process: &Process) -> Findings {
    let mut findings = Findings::of("peers");
    let models = config.coordinator.models.iter().map(|model| async move {
        let verifiers = model.verifiers.iter().map(|url| (Peer::Verifier, url));
        let drafters = model.drafters.iter().map(|url| (Peer::Drafter, url));
        let replies = verifiers.chain(drafters).map(|(kind, url)| async move {
            let reply = ask::peer(&Dialled::of_url(url), kind, process).await;
            (kind, url, reply)
        });
        (model, join_all(replies).await)
    });
    for (model, replies) in join_all(models).await {
        let mut target: Option<PeerDescription> = None;
        for (kind, url, reply) in replies {
            let who = format!("model '{}': {} at {url}", model.name, kind.name());
            let reply = match reply {
                Ok(reply) => reply,
                Err(silence) => {
                    silent(&mut findings, &who, &silence, is_chosen);
                    continue;
                }
            };
            let ahead = ask::ahead(&reply).map(|ahead| (url.clone(), ahead));
            findings.skews.extend(ahead);
            let said = reply.into_inner();
            judge(&mut findings, (kind, &who), &said, target.as_ref());
            if kind == Peer::Verifier {
                let first = target.get_or_insert_with(|| said.clone());
                compare(&mut findings, &who, &said, first, model.mixed_weights);
            }
        }
    }
    findings
}

fn silent(findings: &mut Findings, who: &str, silence: &Silence, is_chosen: bool) {
    let why = silence.why();
    if matches!(silence, Silence::NobodyThere) && !is_chosen {
        return findings.info(format!(
            "no {} ({why})",
            who.split_once(": ").map_or(who, |(_, peer)| peer)
        ));
    }
    findings.error(
        format!("{who} does not answer: {why}"),
        "start it, see its log, or correct coordinator.models; a firewall or network policy may be between",
    );
}

/// Tells whether a peer speaks this protocol and fits the model's `target`, if it is known.
fn judge(
    findings: &mut Findings,
    (kind, who): (Peer, &str),
    said: &PeerDescription,
    target: Option<&PeerDescription>,
) {
    let fits = target.map_or(Ok(()), |target| match kind {
        Peer::Drafter => check_pair(said, target).map(drop),
        Peer::Verifier => check_vocabularies(said, target),
    });
    match check_protocol(said).and(fits) {
        Ok(()) => findings.ok(format!(
            "{who} serves '{}' (outrider {})",
            said.model, said.version
        )),
        Err(mismatch) => findings.error(
            format!("{who} cannot be used: {mismatch}"),
            "serve models of one vocabulary, by programs of one version",
        ),
    }
}

/// Compares a verifier with the `first` one of its model.
fn compare(
    findings: &mut Findings,
    who: &str,
    said: &PeerDescription,
    first: &PeerDescription,
    mixed_weights: bool,
) {
    if said.model_fingerprint != first.model_fingerprint && !mixed_weights {
        return findings.error(
            format!(
                "{who} has other weights ({}) than the first verifier, '{}' ({})",
                said.model_fingerprint, first.model, first.model_fingerprint
            ),
            "serve one model by all verifiers of a name; mixed_weights of that model in coordinator.models allows others",
        );
    }
    if said.numerics != first.numerics {
        let numerics = |peer: &PeerDescription| peer.numerics.clone().unwrap_or_default();
        let [found, expected] = [said, first].map(numerics);
        findings.warning(
            format!(
                "{who} computes in {} ({}), the first verifier in {} ({}): no answer will be reproducible",
                found.dtype, found.kernels, expected.dtype, expected.kernels
            ),
            "give all verifiers of a name the same dtype, kv_dtype, device and program version",
        );
    }
}

#[cfg(test)]
mod tests {
    use wire::v1::Numerics;

    use super::super::report::FindingLevel;
    use super::*;

    #[test]
    fn verifiers_that_are_not_like_the_first_are_told() {
        let said = |fingerprint: &str, dtype: &str| PeerDescription {
            model_fingerprint: fingerprint.to_owned(),
            numerics: Some(Numerics {
                dtype: dtype.to_owned(),
                ..Default::default()
            }),
            ..Default::default()
        };
        let found = |other: &PeerDescription, mixed_weights| {
            let mut findings = Findings::of("peers");
            let first = said("1", "f32");
            compare(&mut findings, "a verifier", other, &first, mixed_weights);
            findings.found.pop().map(|finding| finding.level)
        };
        assert_eq!(found(&said("1", "f32"), false), None);
        assert_eq!(
            found(&said("1", "q8_0"), false),
            Some(FindingLevel::Warning)
        );
        assert_eq!(found(&said("2", "f32"), false), Some(FindingLevel::Error));
        assert_eq!(found(&said("2", "f32"), true), None);
    }
}
