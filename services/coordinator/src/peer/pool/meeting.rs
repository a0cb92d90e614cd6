//! Checks of a model's peers outside of requests: whether drafters fit the target, and whether verifiers answer.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use speculation::session::Peer;
use wire::describe::has_model;

use super::Endpoint;
use super::clients::describe;
use super::model::{ServedModel, described};
use crate::peer::error::PeerError;

/// Time between two checks of the drafters.
const INTERVAL: Duration = Duration::from_secs(5);

/// How long the first check may keep the coordinator from being ready.
const FIRST: Duration = Duration::from_secs(2);

/// How long a verifier may take to describe itself before it counts as not answering.
const PATIENCE: Duration = Duration::from_secs(2);

impl ServedModel {
    /// Asks all verifiers for their descriptions, so that it is known whether they are alike. Returns whether any that can
    /// be used has answered.
    pub(crate) async fn meet_verifiers(&self) -> bool {
        let endpoints = self.endpoints(Peer::Verifier).await;
        self.likeness
            .keep(&endpoints.iter().map(|it| it.address()).collect());
        let answers = async |endpoint: &Arc<Endpoint>| {
            let described = describe(endpoint, Peer::Verifier);
            match tokio::time::timeout(PATIENCE, described).await {
                Ok(Ok(description)) => self.check_weights(endpoint, &description).is_ok(),
                _ => false,
            }
        };
        join_all(endpoints.iter().map(answers))
            .await
            .contains(&true)
    }

    /// Checks the drafters again and again, since they may be restarted with another model.
    pub(crate) async fn watch_drafters(&self) {
        loop {
            self.look_at_drafters().await;
            tokio::time::sleep(INTERVAL).await;
        }
    }

    /// Checks the drafters once, within a short time.
    pub(crate) async fn meet_drafters(&self) {
        // Drafters that do not answer in time are checked again later.
        let _ = tokio::time::timeout(FIRST, self.look_at_drafters()).await;
        self.fit.end_check();
    }

    async fn look_at_drafters(&self) {
        let Some(target) = self.known_target() else {
            return;
        };
        let (mut problem, mut fits, mut drafts) = (None, false, false);
        for endpoint in self.endpoints(Peer::Drafter).await {
            if !endpoint.is_alive() {
                continue;
            }
            match described(&endpoint, Peer::Drafter, &target.description).await {
                // All are asked all the same: what is known of them tells whether they are alike.
                Ok(drafter) => {
                    fits = true;
                    drafts |= has_model(&drafter);
                }
                Err(PeerError::Mismatch(mismatch)) => {
                    problem.get_or_insert_with(|| Arc::from(mismatch.to_string()));
                }
                Err(_) => {}
            }
        }
        self.fit.note_only_copies(fits && !drafts);
        let problem = problem.filter(|_| !fits);
        let model = self.name();
        match (self.fit.note(problem.clone()), problem) {
            (true, Some(problem)) => tracing::warn!(
                model,
                %problem,
                "no drafter fits the target model; requests run target-only until one does"
            ),
            (true, None) => tracing::info!(model, "a drafter fits the target model again"),
            (false, _) => {}
        }
    }
}
