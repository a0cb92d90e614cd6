//! The models' files, and whether the two models fit each other.

use std::path::Path;

use model::source::{EngineKind, Inspected, ModelSource};
use model::{Computation, CpuFormat, WeightFormat};
use net::fault::in_one_line;
use ops::config::LoadedConfig;
use wire::describe::{Fit, check_pair};
use wire::v1::PeerDescription;

use super::report::Findings;
use crate::check::{OF_ONE_FAMILY, ServeRole};
use crate::config::Config;
use crate::global::is_default;

/// The models of a process that are here and can be read.
#[derive(Default)]
pub(super) struct InspectedModels {
    pub(super) target: Option<Inspected>,
    /// Draft models, the largest first, each with its setting.
    pub(super) drafts: Vec<(String, Inspected)>,
    /// What the drafter will say of itself, if that is known.
    draft: Option<PeerDescription>,
    /// Whether the process has both a drafter and a verifier.
    is_pair: bool,
}

/// Looks at the files of `role`'s models, and tells of those that are `requested`.
pub(super) fn look(
    config: &Config,
    role: ServeRole,
    requested: Requested,
) -> (InspectedModels, Findings) {
    let mut findings = Findings::of("models");
    let has_target = role.has_verifier() && requested.target;
    let mut config = config.clone();
    if role == ServeRole::All
        && let Some(note) = config.leave_out_misfit()
        && has_target
    {
        findings.info(note);
    }
    let config = &config;
    let mut models = InspectedModels {
        is_pair: role.drafts(config) && has_target,
        ..InspectedModels::default()
    };
    if has_target {
        match verifier::inspect(&config.verifier) {
            Ok(Some(found)) => {
                describe(&mut findings, "verifier.model", &found);
                engine(&mut findings, config);
                models.target = Some(found);
            }
            Ok(None) => absent(&mut findings, "verifier.model", &config.verifier.model),
            Err(error) => findings.error(in_one_line(&error), MEND),
        }
    }
    if role.drafts(config) && (requested.draft || models.target.is_some()) {
        let found = drafter::inspect(&config.drafter);
        models.draft = found.description;
        if requested.draft {
            for (setting, model) in &found.models {
                describe(&mut findings, &format!("drafter.{setting}"), model);
            }
            for error in &found.problems {
                findings.error(in_one_line(error), MEND);
            }
            if models.draft.is_none() && found.problems.is_empty() {
                absent(&mut findings, "drafter.model", &config.drafter.model);
            }
            models.drafts = found.models;
        }
    }
    (models, findings)
}

/// Asks the engine that computes the target model, if there is one, what it is.
fn engine(findings: &mut Findings, config: &Config) {
    let remote = &config.verifier.remote;
    if remote.url.is_empty() {
        return;
    }
    match verifier::ask_engine(&config.verifier) {
        Ok(said) => findings.ok(format!("verifier.remote: {said}")),
        Err(error) => findings.error(
            in_one_line(&error),
            "see that the engine is up and serves this model (docs/engines.md)",
        ),
    }
    if remote.engine == verifier::RemoteEngine::Vllm {
        findings.warning(
            "verifier.remote: a vLLM with the V1 runner answers `skip_reading_prefix_cache: false` with \
             `prompt_logprobs` by what its memory holds, or ends; Outrider never asks so",
            "see that no other client of this engine can ask so, or run it with the V2 runner",
        );
    }
}

const MEND: &str =
    "name another model, or mend this one; `outrider models list` shows those that are here";

fn absent(findings: &mut Findings, setting: &str, source: &ModelSource) {
    let path = &source.path;
    if source.engine == EngineKind::LlamaCpp && Path::new(path).exists() {
        findings.info(format!(
            "{setting}: {path} has a tokenizer that llama.cpp alone reads, when it is served"
        ));
        return;
    }
    findings.info(format!(
        "{setting}: {path} is not here yet, and is downloaded when it is served; `outrider models pull {path}` does \
         so now"
    ));
}

fn describe(findings: &mut Findings, setting: &str, model: &Inspected) {
    let (stored, name) = (&model.stored, &model.outline.name);
    let formats: Vec<_> = stored.keys().map(String::as_str).collect();
    let size = mebibytes(stored.values().sum());
    let weights = format!("{setting}: '{name}', {size} in {}", formats.join(" and "));
    if stored.is_empty() {
        let tokens = model.outline.vocab_size;
        findings.ok(format!(
            "{setting}: '{name}', {tokens} tokens, computed by the engine of {}",
            setting.replace(".model", ".remote")
        ));
        return;
    }
    if let Some(needs) = &model.by_candle {
        findings.ok(format!(
            "{weights}, computed by candle-transformers in {}, context of {} tokens",
            needs.format, needs.context_len
        ));
        return;
    }
    let Some((checkpoint, computation)) = &model.own else {
        findings.ok(format!(
            "{weights}, computed by llama.cpp, which reads the rest when it is served"
        ));
        return;
    };
    let context = checkpoint.config().context_len;
    findings.ok(format!(
        "{weights}, computed in {computation}, context of {context} tokens"
    ));
    let of_16_bits = ["F16", "BF16"]
        .iter()
        .filter_map(|format| stored.get(*format));
    let is_mostly = of_16_bits.sum::<u64>() * 2 > stored.values().sum();
    let is_quantised = matches!(
        computation,
        Computation::Cpu(CpuFormat {
            weights: WeightFormat::Q8_0,
            ..
        })
    );
    if is_mostly && is_quantised {
        findings.info(format!(
            "{setting}: weights of 16 bits are rounded to q8_0, which is faster and all but lossless; \
             {setting}.dtype = \"f32\" computes with them as they are"
        ));
    }
}

/// Returns bytes in words.
pub(super) fn mebibytes(bytes: u64) -> String {
    let mebibytes = bytes as f64 / f64::from(1 << 20);
    if mebibytes < 1024.0 {
        return format!("{mebibytes:.1} MiB");
    }
    format!("{:.1} GiB", mebibytes / 1024.0)
}

/// Returns whether draft and target model fit each other, where both are here.
pub(super) fn pair(models: &InspectedModels) -> Findings {
    let mut findings = Findings::of("pair");
    let target = models.target.as_ref().map(verifier::outline);
    let (Some(draft), Some(target)) = (&models.draft, target) else {
        if models.is_pair {
            findings.info("not known until both models are here and can be read");
        }
        return findings;
    };
    match check_pair(draft, &target) {
        Ok(Fit::SameVocabulary) => findings.ok(format!(
            "'{}' and '{}' share one vocabulary of {} tokens",
            draft.model, target.model, target.vocab_size
        )),
        Ok(Fit::Translates) => findings.ok(format!(
            "'{}' reads the text of '{}' in its own vocabulary: drafts are translated, for method coupled; `outrider \
             calibrate` tells whether that pays",
            draft.model, target.model
        )),
        Err(mismatch) => findings.error(mismatch.to_string(), OF_ONE_FAMILY),
    }
    findings
}

/// The models that somebody asked about. Those built in are none of them where other models are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Requested {
    pub(super) target: bool,
    pub(super) draft: bool,
}

impl Requested {
    /// Returns the models that a process of `role` has by choice, or by default where it is not told of any others;
    /// `names_coordinator` says whether the report is about a coordinator that is named.
    pub(super) fn of(
        loaded: &LoadedConfig<Config>,
        role: ServeRole,
        names_coordinator: bool,
    ) -> Self {
        let (verifier, drafter) = (&loaded.value.verifier, &loaded.value.drafter);
        let is_target_chosen =
            !is_default(loaded, "verifier.model.path") || !verifier.remote.url.is_empty();
        let is_draft_chosen =
            !is_default(loaded, "drafter.model.path") || !drafter.cascade.models.is_empty();
        let is_elsewhere = names_coordinator || !is_default(loaded, "coordinator.models");
        let by_default = role != ServeRole::All || !is_elsewhere;
        Self {
            target: is_target_chosen || by_default,
            draft: is_draft_chosen || (by_default && !(role == ServeRole::All && is_target_chosen)),
        }
    }
}
