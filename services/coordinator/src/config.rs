//! Configuration of a coordinator.

mod defaults;
mod http;

use std::collections::HashSet;
use std::error::Error;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::time::Duration;

use calls::{CallForm, FORMS, GENERIC};
use fleet::{ModelGroup, Models};
use net::Credentials;
use net::channel::{ChannelConfig, Trust, parse};
use net::listen::{Listen, ServerConfig};
use ops::service_error::ServiceError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use speculation::methods;
use speculation::methods::names::{AUTO, DRAFT_CAP, DRAFT_MOST as MAX_DRAFT_LEN};

pub use defaults::{DefaultDraftLen, DefaultDrafting};
pub use http::HttpConfig;

/// Section `coordinator` of the configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CoordinatorConfig {
    /// Address to listen on.
    pub listen: Listen,
    /// The OpenAI API, beside gRPC.
    pub http: HttpConfig,
    /// The models served, the default one first.
    #[schemars(length(min = 1))]
    pub models: Vec<ModelGroup>,
    /// Method of requests that name none.
    #[schemars(extend("enum" = methods::names()))]
    pub method: String,
    /// Names that the first model is served under, in place of its own: answers tell the first, and requests may give any.
    pub served_model_name: Vec<String>,
    /// The form in which models write calls of tools: `auto`, which looks for its signs in the chat template, or the name of
    /// one.
    pub tool_form: String,
    /// Who proposes draft tokens where a request does not say.
    pub drafting: DefaultDrafting,
    /// Draft tokens a round where a request does not say.
    pub draft_len: DefaultDraftLen,
    /// Most draft tokens a round where a request names none and `auto`, a stop rule or a cascade of draft models
    /// decides how many there are.
    #[schemars(range(max = MAX_DRAFT_LEN))]
    pub draft_cap: NonZeroU32,
    /// Whether only methods are allowed whose tokens are exact samples of the target model.
    pub lossless_only: bool,
    /// Most output tokens that a request may ask for; 0 is what the context leaves.
    pub max_output_tokens: u32,
    /// Tokens that a verifier may decode ahead of what the client took, and log probabilities of a prompt that it may
    /// compute. It never waits while a round trip takes less time than half of them; beyond them the sequence rests.
    pub decode_ahead: NonZeroU32,
    /// Tokens that a verifier may decode ahead of what the client took where tokens carry log probabilities, which take more
    /// bytes.
    pub decode_ahead_logprobs: NonZeroU32,
    /// How long a peer may take for one answer.
    pub round_timeout_ms: NonZeroU64,
    /// How long a drafter may be silent; then the target goes on without it.
    pub draft_timeout_ms: NonZeroU64,
    /// How long a request may take as a whole, and the most it may ask for.
    pub request_timeout_ms: NonZeroU64,
    /// How often a drafter is asked again before the target goes on without it.
    pub retries: u32,
    /// How often a verifier is asked again before the request fails. The pauses between grow fourfold
    /// from 20 ms: five times are seven seconds, enough for a process to be started anew.
    pub verifier_retries: u32,
    /// How long the coordinator stays ready while no verifier of any model answers.
    pub unready_after_ms: NonZeroU64,
    /// How long a peer keeps a session whose stream broke.
    pub lease_ms: NonZeroU32,
    /// How long the addresses behind a peer's name are believed.
    pub resolve_every_ms: NonZeroU64,
    /// Most requests under way; more are refused with a time to wait.
    pub max_requests: NonZeroUsize,
    /// Most requests under way that show one token, where its line names no number; 0 is no limit but
    /// `max_requests`.
    pub max_requests_per_client: u32,
    /// Whether a request may ask the coordinator to decide its blocks, for which all distributions travel.
    pub allow_accept_at_coordinator: bool,
    /// Whether a request may ask for reports of all distributions.
    pub allow_distribution_reports: bool,
    /// Most bytes of distributions that all requests together hold; more requests that need some are refused
    /// with a time to wait.
    pub max_distribution_bytes: NonZeroU64,
    /// Most bytes of tokens that whole answers with log probabilities or token ids, which are told at their end, hold
    /// together over HTTP; more are refused with a time to wait, and one that never fits by name.
    pub max_answer_bytes: NonZeroU64,
    /// Limits of the gRPC server.
    pub server: ServerConfig,
    /// How peers are connected to.
    pub channel: ChannelConfig,
}

impl Default for CoordinatorConfig {
    fn default() -> Self {
        let default_address = std::net::SocketAddr::from(([127, 0, 0, 1], 7001));
        Self {
            listen: default_address.into(),
            http: HttpConfig::default(),
            models: vec![ModelGroup {
                name: "default".to_owned(),
                drafters: vec!["http://127.0.0.1:7101".to_owned()],
                verifiers: vec!["http://127.0.0.1:7201".to_owned()],
                ..ModelGroup::default()
            }],
            method: methods::METHODS[0].name.to_owned(),
            served_model_name: Vec::new(),
            tool_form: AUTO.to_owned(),
            drafting: DefaultDrafting::default(),
            draft_len: DefaultDraftLen::Auto,
            draft_cap: const { NonZeroU32::new(DRAFT_CAP).unwrap() },
            lossless_only: false,
            max_output_tokens: 0,
            decode_ahead: const { NonZeroU32::new(256).unwrap() },
            decode_ahead_logprobs: const { NonZeroU32::new(32).unwrap() },
            round_timeout_ms: const { NonZeroU64::new(30_000).unwrap() },
            draft_timeout_ms: const { NonZeroU64::new(1_000).unwrap() },
            request_timeout_ms: const { NonZeroU64::new(600_000).unwrap() },
            retries: 2,
            verifier_retries: 5,
            unready_after_ms: const { NonZeroU64::new(15_000).unwrap() },
            lease_ms: const { NonZeroU32::new(10_000).unwrap() },
            resolve_every_ms: const { NonZeroU64::new(5_000).unwrap() },
            max_requests: const { NonZeroUsize::new(256).unwrap() },
            max_requests_per_client: 0,
            allow_accept_at_coordinator: true,
            allow_distribution_reports: true,
            max_distribution_bytes: const { NonZeroU64::new(1 << 30).unwrap() },
            max_answer_bytes: const { NonZeroU64::new(64 << 20).unwrap() },
            server: ServerConfig::default(),
            channel: ChannelConfig::default(),
        }
    }
}

impl CoordinatorConfig {
    pub(crate) fn request_timeout(&self) -> Duration {
        Duration::from_millis(self.request_timeout_ms.get())
    }

    /// Returns the models with their peers, which are shown `credentials`.
    ///
    /// # Errors
    /// Names the setting that cannot be used.
    pub(crate) fn connect(&self, credentials: &Credentials) -> Result<Models, ServiceError> {
        let dns_ttl = Duration::from_millis(self.resolve_every_ms.get());
        let models = Models::new(self.groups(), &self.channel, credentials, dns_ttl);
        models.map_err(|error| wrong("models", error))
    }

    /// Returns the models, the first one under the names that `served_model_name` gives it.
    fn groups(&self) -> Vec<ModelGroup> {
        let mut groups = self.models.clone();
        if let (Some(first), [name, aliases @ ..]) =
            (groups.first_mut(), &self.served_model_name[..])
        {
            name.clone_into(&mut first.name);
            first.aliases = aliases.to_vec();
        }
        groups
    }

    /// Returns the form in which models write calls, if it is set.
    pub(crate) fn tool_form(&self) -> Option<&'static CallForm> {
        CallForm::named(&self.tool_form)
    }

    /// Returns the faults of the settings, for a process that may connect as `trust` says.
    pub fn check(&self, trust: Trust) -> Vec<ServiceError> {
        let mut problems = self.check_drafting();
        problems.extend(self.check_method().err());
        problems.extend(self.check_models());
        if self.tool_form != AUTO && self.tool_form().is_none() {
            let names = FORMS.iter().chain([&GENERIC]).map(|form| form.name);
            let names: Vec<_> = names.collect();
            let problem = format!(
                "'{}' is no form of calls, expected {AUTO} or one of {}",
                self.tool_form,
                names.join(", ")
            );
            problems.push(wrong("tool_form", problem));
        }
        let of_http = self.http.problems().into_iter();
        problems.extend(of_http.map(|(key, problem)| wrong(&key, problem)));
        let models = self.models.iter();
        let urls = models.flat_map(|model| model.drafters.iter().chain(&model.verifiers));
        let errors = urls.filter_map(|url| parse(url, trust).err());
        problems.extend(errors.map(|error| wrong("models", error)));
        problems
    }

    fn check_drafting(&self) -> Vec<ServiceError> {
        let lengths = [
            ("draft_len", self.draft_len.fixed()),
            ("draft_cap", Some(self.draft_cap)),
        ];
        let too_long = lengths.into_iter().filter_map(|(key, value)| {
            let value = value.filter(|value| value.get() > MAX_DRAFT_LEN)?;
            let problem = format!("{value} is out of range, expected 1 to {MAX_DRAFT_LEN}");
            Some(wrong(key, problem))
        });
        too_long.collect()
    }

    fn check_method(&self) -> Result<(), ServiceError> {
        let method = methods::find(&self.method);
        let method = method.map_err(|bad| wrong("method", bad.problem))?;
        if self.lossless_only && !method.is_lossless() {
            let problem = format!(
                "'{}' is not lossless, and lossless_only is set",
                self.method
            );
            return Err(wrong("method", problem));
        }
        Ok(())
    }

    fn check_models(&self) -> Vec<ServiceError> {
        let mut problems = Vec::new();
        let mut names = HashSet::new();
        if self.models.is_empty() {
            problems.push(wrong("models", "empty, expected at least one model"));
        }
        for (index, model) in self.groups().iter().enumerate() {
            let key = format!("models.{index}.name");
            if model.name.is_empty() {
                let problem = "empty, expected what requests call the model";
                problems.push(wrong(&key, problem));
            }
            for (name, key) in names_of(model, index) {
                if !names.insert(name) {
                    problems.push(wrong(&key, format!("'{name}' stands twice")));
                }
            }
            if model.verifiers.is_empty() {
                let key = format!("models.{index}.verifiers");
                problems.push(wrong(&key, "empty, expected at least one URL"));
            }
        }
        problems
    }
}

/// Returns all names of the `model` that stands at `index`, each with its setting.
fn names_of(model: &ModelGroup, index: usize) -> impl Iterator<Item = (&str, String)> {
    let aliases = model.aliases.iter().enumerate();
    let aliases =
        aliases.map(move |(at, alias)| (alias.as_str(), format!("models.{index}.aliases.{at}")));
    std::iter::once((model.name.as_str(), format!("models.{index}.name"))).chain(aliases)
}

/// Returns the error of a setting of the coordinator.
pub(crate) fn wrong(key: &str, problem: impl Into<Box<dyn Error + Send + Sync>>) -> ServiceError {
    ServiceError::setting("coordinator", key, problem)
}
