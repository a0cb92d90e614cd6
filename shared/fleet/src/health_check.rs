//! Checks of a model's peers outside of sessions: whether drafters fit the target, whether verifiers answer, and whether
//! any of them can do what a request needs.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use speculation::session::Peer;
use wire::describe::{AHEAD, has_model};
use wire::status::BadField;
use wire::v1::PeerDescription;

use crate::PeerEndpoint;
use crate::clients::describe;
use crate::error::CallError;
use crate::fit::{checked, described};
use crate::model::{DrafterCheck, Drafters, ServedModel};
use crate::pairs::DraftModel;
use crate::requirements::{DrafterRequirements, VerifierRequirements};
use crate::target::Target;

/// How long a request that needs more than a draft model waits to hear what drafters can do. If they do
/// not say by then, they say when they are asked to draft.
const ABILITY_TIMEOUT: Duration = Duration::from_secs(2);

/// Time between two checks of the drafters.
const INTERVAL: Duration = Duration::from_secs(5);

/// How long the first check may keep the coordinator from being ready.
const FIRST_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a verifier may take to describe itself before it counts as not answering.
const VERIFIER_TIMEOUT: Duration = Duration::from_secs(2);

impl Drafters {
    /// Returns what these are together with another that fits `target`.
    fn with(self, drafter: &PeerDescription, target: &PeerDescription) -> Self {
        let shares = !drafter.processors.is_empty() && drafter.processors == target.processors;
        // Engines elsewhere decode fastest when nothing is proposed to them.
        let is_ahead = !target.rows_are_parts && drafter.features.iter().any(|it| it == AHEAD);
        let own = match has_model(drafter) {
            false => Self::Copy,
            true if is_ahead && !shares => Self::Apart,
            true => Self::Model,
        };
        match self {
            Self::Unknown | Self::Copy => own,
            _ if own == Self::Copy => self,
            Self::Apart => own,
            Self::Model => Self::Model,
        }
    }
}

impl ServedModel {
    /// Asks all verifiers for their descriptions, so that it is known whether they are alike. Returns whether any that can
    /// be used has answered.
    pub async fn probe_verifiers(&self) -> bool {
        let endpoints = self.endpoints(Peer::Verifier).await;
        self.likeness
            .keep(&endpoints.iter().map(|it| it.address()).collect());
        let answers = async |endpoint: &Arc<PeerEndpoint>| {
            let described = describe(endpoint, Peer::Verifier);
            match tokio::time::timeout(VERIFIER_TIMEOUT, described).await {
                Ok(Ok(description)) => self.check_weights(endpoint, &description).is_ok(),
                _ => false,
            }
        };
        join_all(endpoints.iter().map(answers))
            .await
            .contains(&true)
    }

    /// Checks the drafters again and again, since they may be restarted with another model.
    pub async fn watch_drafters(&self) {
        loop {
            self.probe_all_drafters().await;
            tokio::time::sleep(INTERVAL).await;
        }
    }

    /// Checks the drafters once, within a short time.
    pub async fn probe_drafters(&self) {
        // Drafters that do not answer in time are checked again later.
        let _ = tokio::time::timeout(FIRST_TIMEOUT, self.probe_all_drafters()).await;
        self.drafter_check.lock().get_or_insert_default();
    }

    async fn probe_all_drafters(&self) {
        let Some(target) = self.last_target(None) else {
            return;
        };
        let (mut problem, mut drafters) = (None, Drafters::Unknown);
        for endpoint in self.endpoints(Peer::Drafter).await {
            if !endpoint.is_alive() {
                continue;
            }
            match described(&endpoint, Peer::Drafter, &target).await {
                // All are asked all the same: what is known of them tells whether they are alike.
                Ok(drafter) => {
                    drafters = drafters.with(&drafter, &target.description);
                }
                Err(CallError::Mismatch(mismatch)) => {
                    problem.get_or_insert_with(|| Arc::from(mismatch.to_string()));
                }
                Err(_) => {}
            }
        }
        let problem = problem.filter(|_| drafters == Drafters::Unknown);
        let check = DrafterCheck {
            problem: problem.clone(),
            drafters,
        };
        let before = self.drafter_check.lock().replace(check);
        let is_news = before.and_then(|it| it.problem) != problem;
        let model = self.name();
        match (is_news, problem) {
            (true, Some(problem)) => tracing::warn!(
                model,
                %problem,
                "no drafter fits the target model; requests run target-only until one does"
            ),
            (true, None) => tracing::info!(model, "a drafter fits the target model again"),
            (false, _) => {}
        }
    }

    /// Fails fast when every verifier is known to fall short; others are found when a stream is opened.
    ///
    /// # Errors
    /// What `target` lacks, which the request was checked by.
    pub async fn check_verifiers(
        &self,
        required: VerifierRequirements,
        target: &PeerDescription,
    ) -> Result<(), BadField> {
        let Err(lacking) = required.check(target) else {
            return Ok(());
        };
        let verifiers = self.endpoints(Peer::Verifier).await;
        let mut known = verifiers.iter().map(|it| it.description());
        if known.any(|known| known.is_none_or(|known| required.check(&known).is_ok())) {
            return Ok(());
        }
        Err(lacking)
    }

    /// Returns whether the rows of drafters may differ, as far as drafters are known: because a drafter's rows are the
    /// same up to rounding only, or because two drafters have different numerics, or different draft models.
    pub async fn drafters_vary(&self) -> bool {
        let drafters = self.endpoints(Peer::Drafter).await;
        let known = drafters.iter().filter_map(|it| it.description());
        let mut known = known.peekable();
        let first = known.peek().cloned();
        known.any(|drafter| {
            let is_alike = |first: &Arc<PeerDescription>| {
                first.numerics == drafter.numerics && DraftModel::of(first).is_of(&drafter)
            };
            drafter.rows_vary || !first.as_ref().is_some_and(is_alike)
        })
    }

    /// Returns what the drafters that fit are. The first requests wait until drafters have said what they can do, for a short
    /// time.
    pub async fn fitting_drafters(&self) -> Drafters {
        let is_known = self.drafter_check.lock().is_some();
        if !is_known {
            self.probe_drafters().await;
        }
        let check = self.drafter_check.lock();
        check
            .as_ref()
            .map(|check| check.drafters)
            .unwrap_or_default()
    }

    /// Fails fast when every live drafter reports that it cannot meet the requirements. What every draft model
    /// can do is never refused: without one the target goes on alone, and the answer says why.
    ///
    /// # Errors
    /// What the first of them lacks.
    pub async fn check_drafters(
        &self,
        requirements: DrafterRequirements,
        target: &Target,
    ) -> Result<(), BadField> {
        if !requirements.needs_asking() {
            return Ok(());
        }
        if !self.has_drafters() && requirements.is_special() {
            return Err(requirements.without_drafters(&self.why_no_drafter()));
        }
        let mut refusal = None;
        for endpoint in self.endpoints(Peer::Drafter).await {
            if !endpoint.is_alive() {
                // It might be able to, and is done without like any that is lost.
                return Ok(());
            }
            let known = endpoint.description();
            let is_able = known.map(|known| requirements.check(&known).is_ok());
            if is_able.unwrap_or(requirements.drafts_ahead()) {
                return Ok(());
            }
            // It may have been started anew with what it lacked.
            let requested = async {
                let described = describe(&endpoint, Peer::Drafter).await?;
                checked(&endpoint, Peer::Drafter, target, described).await
            };
            let Ok(Ok(described)) = tokio::time::timeout(ABILITY_TIMEOUT, requested).await else {
                return Ok(());
            };
            match requirements.check(&described) {
                Ok(()) => return Ok(()),
                Err(bad) => refusal = refusal.or(Some(bad)),
            }
        }
        refusal.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A drafter on processors called so, with a draft model or not, that drafts ahead or not.
    fn drafter(processors: &str, model: bool, ahead: bool) -> PeerDescription {
        let drafting = if model {
            wire::v1::Drafting::Model
        } else {
            wire::v1::Drafting::MaxGram
        };
        let features = ahead.then(|| AHEAD.to_owned());
        PeerDescription {
            processors: processors.into(),
            draftings: vec![drafting.into()],
            features: features.into_iter().collect(),
            ..Default::default()
        }
    }

    #[test]
    fn drafters_are_what_all_of_them_are() {
        let of = |drafters: &[(&str, bool, bool)]| {
            let target = drafter("verifier's", true, true);
            let known = drafters.iter();
            known.fold(Drafters::Unknown, |all, &(processors, model, ahead)| {
                all.with(&drafter(processors, model, ahead), &target)
            })
        };
        let (far, near, old, copies) = (
            ("others", true, true),
            ("verifier's", true, true),
            ("others", true, false),
            ("others", false, true),
        );
        assert_eq!(of(&[]), Drafters::Unknown);
        assert_eq!(of(&[copies, copies]), Drafters::Copy);
        assert_eq!(of(&[far, far]), Drafters::Apart);
        // On a GPU; and beside an engine elsewhere.
        assert_eq!(of(&[("", true, true)]), Drafters::Apart);
        let engine = PeerDescription {
            rows_are_parts: true,
            ..Default::default()
        };
        let beside_it = Drafters::Unknown.with(&drafter("others", true, true), &engine);
        assert_eq!(beside_it, Drafters::Model);
        assert_eq!(of(&[copies, far]), Drafters::Apart);
        for one in [near, old] {
            assert_eq!(of(&[one]), Drafters::Model);
            assert_eq!(of(&[far, one]), Drafters::Model);
            assert_eq!(of(&[one, far]), Drafters::Model);
            assert_eq!(of(&[one, copies]), Drafters::Model);
        }
    }
}
