//! Letting a request in and checking it, whichever front it came to.

use std::sync::Arc;
use std::time::Duration;

use fleet::{Drafters, Models, ServedModel, Target};
use ops::health::Health;
use speculation::drafting::{Drafting, Schedule};
use speculation::methods::names::{of_drafting, of_schedule};
use speculation::methods::table::{DRAFTING, SCHEDULE};
use speculation::session::Plan;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;
use wire::failure::Failure;
use wire::round::request_id;
use wire::status::{BadField, PeerFailure, overloaded, try_again};
use wire::{settings, v1};

use super::admission::Admission;
use super::memory::{Tokenizing, off_async_threads};
use crate::admitted::AdmittedRequest;
use crate::config::{CoordinatorConfig, DefaultDrafting};
use crate::driver::{Prepared, RESTART_RETRY_AFTER, RequestPlace};
use crate::events::RequestEvent;
use crate::observe::{Observation, RequestObserver};
use crate::request::limits::check_names;
use crate::request::{self, Calls, PromptInput, Unasked, UsualSettings};

/// Returns the places for large requests to be parsed and tokenised: one for every two processors, and at least one.
pub(crate) fn reading_places() -> Arc<Semaphore> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    Arc::new(Semaphore::new((processors / 2).max(1)))
}

/// Longest time that a large request holds its place while it waits for a verifier's description.
const PLACE_KEPT: Duration = Duration::from_secs(1);

/// What requests share.
pub(crate) struct SharedState {
    pub(crate) models: Arc<Models>,
    pub(crate) admission: Admission,
    pub(crate) tokenizing: Tokenizing,
    pub(crate) config: CoordinatorConfig,
    pub(crate) health: Health,
    /// Places for large requests while they are parsed and tokenised.
    pub(crate) reading: Arc<Semaphore>,
    pub(crate) observation: Observation,
}

impl SharedState {
    /// Checks an admitted request and returns what its driver needs, with the place that it holds until it is over. It
    /// takes no longer than `deadline`, if the client has one. Its output has at most `unasked_tokens` if it does not
    /// say how many. `reading` is the place of a large request, which is returned once its text is tokenised.
    ///
    /// # Errors
    /// The status that its client is to get.
    pub(super) async fn prepare(
        self: &Arc<Self>,
        message: v1::GenerateRequest,
        place: RequestPlace,
        deadline: Option<Duration>,
        unasked_tokens: u32,
        reading: &mut Option<OwnedSemaphorePermit>,
        observer: &mut RequestObserver,
    ) -> Result<Prepared, Status> {
        observer.observe(&RequestEvent::Admitted);
        let longest = self.config.request_timeout();
        let timeout = deadline.map_or(longest, |deadline| deadline.min(longest));
        // Boxed, for the request is large and would be moved from future to future.
        let checking = Box::pin(self.check(message, place, unasked_tokens, reading));
        let late = |_| Failure::Late.status("the deadline passed before the request began");
        let checked = tokio::select! {
            biased;
            () = self.health.last_call() => {
                let stopping = try_again("the coordinator is shutting down", RESTART_RETRY_AFTER);
                return Err(stopping);
            }
            checked = tokio::time::timeout(timeout, checking) => checked,
        };
        let mut prepared = checked.map_err(late)??;
        let request = &mut prepared.request;
        request.timeout = request.timeout.min(timeout);
        observer.observe(&prepared.event());
        Ok(prepared)
    }

    /// Finds the model asked for and checks the request against it. Both of its places move into the work, so that
    /// what is admitted, and what is tokenised, is bounded even if the client leaves meanwhile.
    async fn check(
        self: &Arc<Self>,
        mut message: v1::GenerateRequest,
        place: RequestPlace,
        unasked_tokens: u32,
        reading: &mut Option<OwnedSemaphorePermit>,
    ) -> Result<Prepared, Status> {
        check_names(&message)?;
        let session_id = random_id()?;
        let model = Arc::clone(self.model(&message.model)?);
        if let Some(left) = model.overloaded_for() {
            // Those under way wait for the verifiers already.
            let what = format!("the verifiers of '{}' are overloaded", model.name());
            return Err(overloaded(what, left));
        }
        let target = {
            let mut asking = std::pin::pin!(target(&model, &session_id));
            if let Ok(target) = tokio::time::timeout(PLACE_KEPT, &mut asking).await {
                target?
            } else {
                // The place goes to other requests while this one waits for its peer.
                *reading = None;
                asking.await?
            }
        };
        let names_drafting = settings::gives(&message, &DRAFTING);
        let unasked = Unasked {
            max_tokens: unasked_tokens,
            settings: self.usual(&message, &model).await,
            leaves_drafting_open: self.config.drafting == DefaultDrafting::Auto && !names_drafting,
            names_drafting,
        };
        let (shared, kept) = (Arc::clone(self), reading.take());
        let check = move || {
            let mut calls = Calls::take(&mut message, &target, shared.config.tool_form())?;
            let prompt = PromptInput::take(&mut message, &target, &mut calls)?;
            // They are tokenised one after the other.
            let texts = [prompt.text(), Some(&message.prediction[..])];
            let bytes = texts.map(|text| text.map_or(0, |it| target.text.encoding_bytes(it)));
            let tokenizing = shared.tokenizing.room(bytes[0].max(bytes[1]))?;
            let config = &shared.config;
            let request =
                request::check(message, prompt, calls, &model, &target, config, &unasked)?;
            drop(tokenizing);
            let prepared = shared.with_room(request, model, target, session_id, place)?;
            Ok((prepared, kept))
        };
        // A long text is turned into tokens.
        let (mut checked, kept) = off_async_threads(check).await?;
        *reading = kept;
        let (model, request) = (&checked.model, &mut checked.request);
        let target = &checked.target;
        if request.method.plan != Plan::TargetOnly {
            model
                .check_verifiers(request.requirements.verifier, &target.description)
                .await?;
            model
                .check_drafters(request.requirements.drafter, target)
                .await?;
            request.draft_model = model
                .draft_model_for(
                    &request.method,
                    request.sampling.temperature,
                    request.requirements.drafter,
                    request.draft_len,
                )
                .await;
        }
        // Whatever drafts, output that does not depend on it is the target's.
        if model.verifiers_vary()
            || request.method.depends_on_draft() && model.drafters_vary().await
        {
            request.is_reproducible = false;
        }
        Ok(checked)
    }

    /// Returns a request about to run, with room for its distributions.
    fn with_room(
        &self,
        request: AdmittedRequest,
        model: Arc<ServedModel>,
        target: Target,
        session_id: [u8; 16],
        mut place: RequestPlace,
    ) -> Result<Prepared, Status> {
        let bytes = request::distribution_bytes(&request);
        place.permits.push(self.admission.admit_bytes(bytes)?);
        Ok(Prepared {
            request,
            model,
            target,
            session_id,
            request_id: request_id(session_id),
            place,
        })
    }

    /// Returns the settings of drafting that apply where `message` does not give them. For a model without drafters, or with
    /// drafters that draft ahead and take no time from the verifier, that is schedule `stream`; with a prediction for all.
    async fn usual(&self, message: &v1::GenerateRequest, model: &ServedModel) -> UsualSettings {
        let by = |drafting| (&DRAFTING, of_drafting(drafting));
        let streamed = (&SCHEDULE, of_schedule(Schedule::Stream));
        let is_predicted = !message.prediction.is_empty();
        match self.config.drafting {
            DefaultDrafting::Auto | DefaultDrafting::Fixed(Drafting::MaxGram)
                if !model.names_drafters() =>
            {
                vec![streamed]
            }
            DefaultDrafting::Fixed(drafting) if is_predicted => vec![streamed, by(drafting)],
            DefaultDrafting::Fixed(drafting) => vec![by(drafting)],
            // It names another, or none that there is: nothing is to be waited for.
            DefaultDrafting::Auto if settings::gives(message, &DRAFTING) => {
                Vec::from_iter(is_predicted.then_some(streamed))
            }
            DefaultDrafting::Auto => match model.fitting_drafters().await {
                Drafters::Unknown | Drafters::Model | Drafters::Copy if is_predicted => {
                    vec![streamed, by(Drafting::MaxGram)]
                }
                Drafters::Unknown | Drafters::Model => Vec::new(),
                Drafters::Copy => vec![by(Drafting::MaxGram)],
                Drafters::Apart => vec![streamed, by(Drafting::Model)],
            },
        }
    }

    /// Prepares output number `choice` of the request that `first` is an output of, with a place of its own.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if there is no room for its distributions.
    pub(super) fn another(
        &self,
        first: &Prepared,
        choice: u32,
        place: RequestPlace,
        observer: &mut RequestObserver,
    ) -> Result<Prepared, Status> {
        observer.observe(&RequestEvent::Admitted);
        let request = AdmittedRequest {
            choice,
            ..first.request.clone()
        };
        let (model, target) = (Arc::clone(&first.model), first.target.clone());
        let prepared = self.with_room(request, model, target, random_id()?, place)?;
        observer.observe(&prepared.event());
        Ok(prepared)
    }

    /// Returns the target of `model`, waiting no longer than a request may take.
    ///
    /// # Errors
    /// If no verifier answers, or none in time.
    pub(super) async fn target_in_time(&self, model: &ServedModel) -> Result<Target, Status> {
        let asking = target(model, &[0; 16]);
        let asked = tokio::time::timeout(self.config.request_timeout(), asking).await;
        asked.map_err(|_| Failure::Late.status("no verifier answered in time"))?
    }

    /// Returns the model called `name`; the first one if it is empty.
    ///
    /// # Errors
    /// Names those that are served.
    pub(super) fn model(&self, name: &str) -> Result<&Arc<ServedModel>, Status> {
        self.models.find(name).ok_or_else(|| {
            let problem = format!(
                "'{name}' is not served, expected one of {}",
                self.models.names().join(", ")
            );
            BadField::new("model", problem).into()
        })
    }
}

/// Returns the target of `model`, as a session would find it.
///
/// # Errors
/// If no verifier answers.
async fn target(model: &ServedModel, session_id: &[u8; 16]) -> Result<Target, Status> {
    let target = model.target(session_id).await;
    target.map_err(|error| {
        let message = format!("verifier: {error}");
        match error.failure() {
            PeerFailure::Overloaded { retry_after } => overloaded(message, retry_after),
            _ => Failure::Unavailable.status(message),
        }
    })
}

/// Returns a name for a session that nobody else has or can guess.
fn random_id() -> Result<[u8; 16], Status> {
    let mut id = [0; 16];
    getrandom::fill(&mut id)
        .map_err(|error| Failure::Internal.status(format!("no randomness: {error}")))?;
    Ok(id)
}
