//! Whether a coordinator's peers answer and fit each other.

use ops::process::Process;
use tokio::task::JoinHandle;
use wire::describe::{check_pair, check_protocol};
use wire::v1::PeerDescription;

use super::ask::{self, Answer, Kind, Silence};
use super::dial::Dialled;
use super::report::Findings;
use crate::config::Config;

/// By how many seconds the clock of whoever is at a URL is ahead of this machine's.
pub(super) type Skews = Vec<(String, i64)>;

/// A peer that is being asked.
struct Asked {
    kind: Kind,
    url: String,
    answer: JoinHandle<Result<Answer<PeerDescription>, Silence>>,
}

/// Asks all peers of `coordinator.models`, at once. Where nobody chose them (`is_chosen`), nothing need run there.
pub(super) async fn findings(
    config: &Config,
    is_chosen: bool,
    process: &Process,
) -> (Findings, Skews) {
    let (mut findings, mut skews) = (Findings::of("peers"), Skews::new());
    let mut asked = Vec::new();
    for model in &config.coordinator.models {
        let verifiers = model.verifiers.iter().map(|url| (Kind::Verifier, url));
        let drafters = model.drafters.iter().map(|url| (Kind::Drafter, url));
        let peers = verifiers.chain(drafters).map(|(kind, url)| {
            let (to, process) = (Dialled::of_url(url), process.clone());
            Asked {
                kind,
                url: url.clone(),
                answer: tokio::spawn(async move { ask::peer(&to, kind, &process).await }),
            }
        });
        asked.push((model, peers.collect::<Vec<_>>()));
    }
    for (model, peers) in asked {
        let (model, mixed_weights) = (&model.name, model.mixed_weights);
        let mut target: Option<PeerDescription> = None;
        for Asked { kind, url, answer } in peers {
            let who = format!("model '{model}': {} at {url}", kind.name());
            let answer = answer
                .await
                .unwrap_or_else(|error| Err(Silence::Other(error.to_string())));
            let said = match answer {
                Ok(Answer { said, ahead }) => {
                    skews.extend(ahead.map(|ahead| (url, ahead)));
                    said
                }
                Err(silence) => {
                    silent(&mut findings, &who, &silence, is_chosen);
                    continue;
                }
            };
            judge(&mut findings, &who, &said, target.as_ref());
            if kind == Kind::Verifier {
                let first = target.get_or_insert_with(|| said.clone());
                compare(&mut findings, &who, &said, first, mixed_weights);
            }
        }
    }
    (findings, skews)
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

/// Whether a peer speaks this protocol and fits the model's `target`, if it is known.
fn judge(
    findings: &mut Findings,
    who: &str,
    said: &PeerDescription,
    target: Option<&PeerDescription>,
) {
    let fits = target.map_or(Ok(()), |target| check_pair(said, target));
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

    use super::super::report::Level;
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
        assert_eq!(found(&said("1", "q8_0"), false), Some(Level::Warning));
        assert_eq!(found(&said("2", "f32"), false), Some(Level::Error));
        assert_eq!(found(&said("2", "f32"), true), None);
    }
}
