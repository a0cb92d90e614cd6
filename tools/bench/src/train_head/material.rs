//! What heads are learnt from: responses with labels, and the models that made them.

use std::num::NonZeroU32;
use std::path::Path;

use anyhow::{Context, ensure};
use model::tokenizer::{self, Tokenizer};
use speculation::TokenId;
use speculation::methods::SPARSE_TOP;
use speculation::ports::LanguageModel;

use super::dataset::{Dataset, Key};
use super::draft::DraftModel;
use super::examples::{self, Contexts, Split};
use super::sampling;
use super::target::{ResponseRequest, TrainingTarget};
use super::verifier::{StartedVerifier, without_heads};
use crate::request::{CutArgs, Shortening};
use outrider::config::Config;
use outrider::connect;
use outrider::prompts::Example;

/// How responses are made, and where they are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResponseSettings<'a> {
    /// The draft model; without it that of the configuration.
    pub(crate) draft: Option<&'a str>,
    /// The target model, for which a verifier is started; without it that of the configuration.
    pub(crate) target: Option<&'a str>,
    /// The URL of a running verifier to ask instead.
    pub(crate) verifier: Option<&'a str>,
    /// Of both models.
    pub(crate) temperature: f32,
    /// Of both models.
    pub(crate) cuts: CutArgs,
    /// Tokens of a prompt; longer ones lose their beginning.
    pub(crate) max_input: Option<NonZeroU32>,
    /// Tokens of a response.
    pub(crate) max_tokens: u32,
    pub(crate) seed: u64,
    /// Folder that keeps responses.
    pub(crate) cache: &'a Path,
}

/// Responses with labels, one a prompt, and the models that made them.
pub(crate) struct Material {
    pub(super) draft: DraftModel,
    pub(super) target: TrainingTarget,
    /// What is asked for: of the first prompt, as of all others.
    pub(super) requested: ResponseRequest,
    /// Shape `(prompts,)`, each `(tokens,)`.
    prompts: Vec<Vec<TokenId>>,
    dataset: Dataset,
    /// Unless a running one was asked.
    started: Option<StartedVerifier>,
}

impl Material {
    /// Loads the models, and samples what the cache lacks.
    ///
    /// # Errors
    /// If a model or the cache cannot be used, or the models do not go together.
    pub(crate) async fn sample(
        settings: &ResponseSettings<'_>,
        config: Config,
        prompts: &[Example],
    ) -> anyhow::Result<Self> {
        let mut source = config.drafter.model.clone();
        if let Some(path) = settings.draft {
            path.clone_into(&mut source.path);
        }
        let served = tokio::task::spawn_blocking(move || without_heads(&source));
        let mut draft = DraftModel::new(served.await?.context("--draft")?);
        let (client, url, started) = if let Some(url) = settings.verifier {
            (connect::to_verifier(url, &config)?, url.to_owned(), None)
        } else {
            let started = StartedVerifier::new(config.verifier, settings.target).await?;
            let client = connect::to_verifier(&started.url, &Config::default())?;
            (client, started.url.clone(), Some(started))
        };
        let target = TrainingTarget::connect(client, &url).await?;
        let described = &target.description;
        ensure!(
            described.vocab_fingerprint == draft.served.outline.vocab_fingerprint,
            "the draft model's vocabulary is not that of the target '{}'",
            described.model
        );
        let context_len =
            (described.context_len as usize).min(draft.served.model.shape().context_len);
        let prompts = tokens(
            &draft.served.text.tokenizer_json,
            prompts,
            (context_len, settings.max_tokens),
            settings.max_input,
        )?;
        let requested = ResponseRequest {
            prompt: prompts[0].clone(),
            sampling: sampling::settings(
                settings.temperature,
                settings.cuts,
                &described.eos_token_ids,
            ),
            seed: settings.seed,
            max_tokens: settings.max_tokens,
        };
        let numerics = described.numerics.clone().unwrap_or_default();
        let cuts = settings.cuts;
        let key = Key {
            draft: &draft.served.numerics.weights,
            target: &format!(
                "{} {} {}",
                numerics.weights, numerics.dtype, numerics.kernels
            ),
            temperature: settings.temperature,
            cuts: (cuts.is_cutting()).then_some((cuts.top_k, cuts.top_p, cuts.min_p)),
            max_tokens: settings.max_tokens,
            proposal_top: SPARSE_TOP,
            seed: settings.seed,
            end_tokens: &described.eos_token_ids,
            prompts: &prompts,
        };
        let mut dataset = Dataset::open(settings.cache, &key)?;
        sampling::complete(&mut dataset, &mut draft, &target, (&prompts, &requested)).await?;
        Ok(Self {
            draft,
            target,
            requested,
            prompts,
            dataset,
            started,
        })
    }

    /// Runs the draft model over all responses.
    ///
    /// # Errors
    /// If a sequence is longer than its context.
    pub(crate) fn split(&mut self, contexts: &Contexts) -> anyhow::Result<Split> {
        let ends = &self.target.description.eos_token_ids;
        let samples = (&self.prompts[..], &self.dataset.samples[..]);
        examples::split(&mut self.draft, samples, ends, contexts)
    }

    /// Returns the fingerprint of the draft model's weights.
    pub(crate) fn draft_fingerprint(&self) -> &str {
        &self.draft.served.weights_fingerprint
    }

    /// Ends the verifier that was started.
    ///
    /// # Errors
    /// If it had failed.
    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        match self.started {
            Some(started) => started.stop().await,
            None => Ok(()),
        }
    }
}

/// The prompts as tokens.
fn tokens(
    tokenizer_json: &[u8],
    prompts: &[Example],
    (context_len, max_tokens): (usize, u32),
    most: Option<NonZeroU32>,
) -> anyhow::Result<Vec<Vec<TokenId>>> {
    let mut tokenizer: Tokenizer = tokenizer::from_bytes(tokenizer_json)?;
    tokenizer.with_padding(None);
    let _ = tokenizer.with_truncation(None);
    let mut all = Vec::with_capacity(prompts.len());
    for (index, prompt) in prompts.iter().enumerate() {
        let encode = |text: &str| {
            let encoded = tokenizer.encode(text, true);
            let encoded = encoded.map_err(|error| anyhow::anyhow!("prompt {}: {error}", index + 1));
            anyhow::Ok(encoded?.get_ids().to_vec())
        };
        let text = match most {
            Some(most) => Shortening::of(&prompt.text).run(most, |end| Ok(encode(end)?.len()))?,
            None => &prompt.text,
        };
        let ids = encode(text)?;
        let found = ids.len();
        ensure!(found > 0, "--prompts: prompt {} is empty", index + 1);
        ensure!(
            found + max_tokens as usize <= context_len,
            "--prompts: prompt {} has {found} tokens, with --max-tokens {max_tokens} that is more \
             than the {context_len} of the models' context",
            index + 1
        );
        all.push(ids);
    }
    Ok(all)
}
