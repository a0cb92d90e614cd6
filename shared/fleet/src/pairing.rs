//! The draft models that a served model has, what each brings it, and which of them a request gets.

use std::collections::BTreeMap;
use std::sync::Arc;

use itertools::Itertools;
use speculation::methods::Choice;
use speculation::session::Peer;
use wire::v1::PeerDescription;

use crate::model::ServedModel;
use crate::pairs::{Candidate, DraftModel, Measured, choose};
use crate::requirements::DrafterRequirements;

impl ServedModel {
    /// Returns the draft model that is to draft for the next request of `method` at `temperature`, which drafts at most
    /// `draft_len` tokens at a time: the one that brought most to requests of its kind. Where the output depends on the draft
    /// model it is always that of the first address, so that a seed gives its tokens again. None while no drafter is known
    /// that meets `required`, and where nothing is known of several.
    pub async fn draft_model_for(
        &self,
        method: &Choice,
        temperature: f32,
        required: DrafterRequirements,
        draft_len: u32,
    ) -> Option<DraftModel> {
        let known = self.known_drafters().await;
        // Of one that is gone nothing is told any more.
        let is_here = |name: &Arc<str>| known.iter().any(|it| it.model == **name);
        self.gains.lock().retain(|name, _| is_here(name));
        let models = draft_models(&known, required);
        if method.depends_on_draft() {
            return models.into_iter().next();
        }
        let pairs = models.iter().map(|model| {
            let measured = self.measured(method, temperature, Some(model));
            let gain = if method.streams() {
                measured.streams.gain()
            } else {
                measured.rounds.gain_of_kind(draft_len)
            };
            (measured, gain)
        });
        let pairs: Vec<_> = pairs.collect();
        self.keep_gains(&models, &pairs);
        let is_measured = method.auto || method.streams();
        if !is_measured && models.len() > 1 && pairs.iter().all(|(_, gain)| gain.is_none()) {
            return None;
        }
        let candidates = pairs.iter().map(|(it, gain)| Candidate::of(it, *gain));
        let chosen = choose(&candidates.collect::<Vec<_>>())?;
        pairs[chosen].0.begin();
        models.into_iter().nth(chosen)
    }

    /// Returns what drafters that are alive say of themselves, in the order of their addresses.
    async fn known_drafters(&self) -> Vec<Arc<PeerDescription>> {
        let drafters = self.endpoints(Peer::Drafter).await.into_iter();
        let alive = drafters.filter(|drafter| drafter.is_alive());
        alive.filter_map(|drafter| drafter.description()).collect()
    }

    /// Keeps what each of `models` brings, and tells operators where that is news.
    fn keep_gains(&self, models: &[DraftModel], pairs: &[(Measured, Option<f64>)]) {
        for (draft_model, (measured, gain)) in models.iter().zip(pairs) {
            let Some(gain) = *gain else {
                continue;
            };
            (self.gains.lock()).insert(Arc::clone(draft_model.name()), gain);
            if !measured.is_news(gain) {
                continue;
            }
            let (model, draft_model) = (self.name(), &**draft_model.name());
            let gain = (gain * 100.0).round() / 100.0;
            if gain > 1.0 {
                tracing::info!(model, draft_model, gain, "drafts of this draft model pay");
            } else {
                tracing::info!(
                    model,
                    draft_model,
                    gain,
                    "drafts of this draft model do not pay: requests decode without them, and try again now and then"
                );
            }
        }
    }

    /// Returns the names of the draft models that drafted for it, each with the speed over that of the target alone that
    /// requests measured last.
    pub fn gains(&self) -> BTreeMap<Arc<str>, f64> {
        self.gains.lock().clone()
    }
}

/// Returns the draft models of those `drafters` that meet `required`.
fn draft_models(
    drafters: &[Arc<PeerDescription>],
    required: DrafterRequirements,
) -> Vec<DraftModel> {
    let able = drafters.iter().filter(|it| required.check(it).is_ok());
    able.map(|it| DraftModel::of(it)).unique().collect()
}
