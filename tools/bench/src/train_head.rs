//! `outrider-bench train-head`: an acceptance head for learnt stopping.

mod args;
mod dataset;
mod draft;
mod examples;
mod learning;
mod report;
mod sampling;
mod target;

use std::num::NonZeroU32;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use model::Model;
use model::source::{EngineKind, ModelSource, ServedModel, serve};
use model::tokenizer::{self, Tokenizer};
use ops::process::Process;
use speculation::TokenId;
use speculation::methods::SPARSE_TOP;
use speculation::ports::LanguageModel;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};
use verifier::VerifierConfig;

use crate::ranges;
use crate::report::BenchReport;
use crate::request::Shortening;
pub(crate) use args::TrainHeadArgs;
use dataset::{Dataset, Key};
use draft::DraftModel;
use examples::Contexts;
use learning::{StopCosts, fit};
use outrider::cluster;
use outrider::config::Config;
use outrider::connect;
use outrider::global::INTERRUPTED;
use outrider::progress;
use outrider::prompts::Example;
use report::HeadQuality;
use target::{ResponseRequest, TrainingTarget};

/// Fewest prompts: with these, one response is held out.
const LEAST_PROMPTS: usize = 10;
/// Forwards that are timed.
const TIMED: u32 = 24;

/// Trains a head.
pub(crate) async fn run(
    args: TrainHeadArgs,
    config: Config,
    report: &mut BenchReport,
) -> anyhow::Result<ExitCode> {
    args.options("").check()?;
    let sampling = sampling::settings(args.temperature, args.cuts, &[]);
    sampling.validate(u32::MAX)?;
    ranges::at_least_one([("max-tokens", args.max_tokens as usize)])?;
    for (name, ms) in [
        ("--draft-ms", args.draft_ms),
        ("--target-ms", args.target_ms),
    ] {
        ensure!(
            ms.is_none_or(|ms| ms > 0.0 && ms.is_finite()),
            "{name}: expected a number above 0"
        );
    }
    let folder = args
        .out
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    ensure!(folder.is_dir(), "--out: {} is no folder", folder.display());
    ensure!(
        args.force || !args.out.exists(),
        "--out: {} is there already, --force replaces it",
        args.out.display()
    );
    let prompts = args.input.load(Some(&args.prompts), usize::MAX)?;
    let found = prompts.len();
    ensure!(
        found >= LEAST_PROMPTS,
        "--prompts: {found} prompts, expected at least {LEAST_PROMPTS}"
    );
    tokio::select! {
        outcome = train(&args, config, &prompts, report) => outcome.map(|()| ExitCode::SUCCESS),
        interrupted = tokio::signal::ctrl_c() => {
            interrupted?;
            progress::clear()?;
            anstream::eprintln!("interrupted; run again to go on from here");
            Ok(ExitCode::from(INTERRUPTED))
        }
    }
}

/// Loads a model without acceptance heads: those it has may be for other weights.
fn without_heads(source: &ModelSource) -> anyhow::Result<ServedModel<Model>> {
    if source.engine == EngineKind::LlamaCpp {
        return Ok(source.load()?);
    }
    let checkpoint = source.open()?;
    let computation = source.computation_of(&checkpoint)?;
    let name = source.served_name();
    Ok(serve(&checkpoint, computation, name, &source.path)?)
}

async fn train(
    args: &TrainHeadArgs,
    config: Config,
    prompts: &[Example],
    report: &mut BenchReport,
) -> anyhow::Result<()> {
    let mut source = config.drafter.model.clone();
    if let Some(path) = &args.draft {
        source.path.clone_from(path);
    }
    let served = tokio::task::spawn_blocking(move || without_heads(&source));
    let mut draft = DraftModel::new(served.await?.context("--draft")?);
    let (client, url, started) = if let Some(url) = &args.verifier {
        (connect::to_verifier(url, &config)?, url.clone(), None)
    } else {
        let started = StartedVerifier::new(config.verifier, args.target.as_deref()).await?;
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
    let context_len = (described.context_len as usize).min(draft.served.model.shape().context_len);
    let prompts = tokens(
        &draft.served.text.tokenizer_json,
        prompts,
        (context_len, args.max_tokens),
        args.input.max_input,
    )?;
    let requested = ResponseRequest {
        prompt: prompts[0].clone(),
        sampling: sampling::settings(args.temperature, args.cuts, &described.eos_token_ids),
        seed: args.seed,
        max_tokens: args.max_tokens,
    };
    let numerics = described.numerics.clone().unwrap_or_default();
    let key = Key {
        draft: &draft.served.numerics.weights,
        target: &format!(
            "{} {} {}",
            numerics.weights, numerics.dtype, numerics.kernels
        ),
        temperature: args.temperature,
        cuts: (args.cuts.is_cutting()).then_some((
            args.cuts.top_k,
            args.cuts.top_p,
            args.cuts.min_p,
        )),
        max_tokens: args.max_tokens,
        proposal_top: SPARSE_TOP,
        seed: args.seed,
        end_tokens: &described.eos_token_ids,
        prompts: &prompts,
    };
    let mut dataset = Dataset::open(&args.cache, &key)?;
    sampling::complete(&mut dataset, &mut draft, &target, (&prompts, &requested)).await?;
    let costs = costs(args, &mut draft, &target, &requested).await?;
    let ends = &described.eos_token_ids;
    tokio::task::block_in_place(|| {
        learn(args, &mut draft, (&prompts, &dataset), ends, costs, report)
    })?;
    if let Some(started) = started {
        started.stop().await?;
    }
    Ok(())
}

/// Learns from what was sampled, writes the head and tells how good it is.
fn learn(
    args: &TrainHeadArgs,
    draft: &mut DraftModel,
    (prompts, dataset): (&[Vec<TokenId>], &Dataset),
    ends: &[TokenId],
    costs: StopCosts,
    report: &mut BenchReport,
) -> anyhow::Result<()> {
    let contexts = Contexts {
        mix: args.mix,
        label: args.label,
        seed: args.seed,
    };
    let split = examples::split(draft, (prompts, &dataset.samples), ends, &contexts)?;
    let options = args.options(&draft.served.weights_fingerprint);
    let head = fit(&split.learnt, &options, |done, of| {
        if done % 16 == 0 || done == of {
            // A line on a terminal; that it cannot be written changes nothing.
            let _ = progress::show(&format!("learning, step {done} of {of}"));
        }
    })?;
    head.save(&args.out).context("--out")?;
    let found = HeadQuality {
        learnt: (
            &split.learnt.labels,
            &examples::predictions(&head, &split.learnt),
        ),
        held_out: &examples::chains(&head, &split.held_out),
        costs,
    };
    found.add_to(report)?;
    report.note(format!("wrote {}", args.out.display()));
    Ok(())
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

/// What forwards cost: as given, or as measured.
async fn costs(
    args: &TrainHeadArgs,
    draft: &mut DraftModel,
    target: &TrainingTarget,
    requested: &ResponseRequest,
) -> anyhow::Result<StopCosts> {
    let target_ms = if let Some(ms) = args.target_ms {
        ms
    } else {
        let requested = ResponseRequest {
            max_tokens: TIMED.min(requested.max_tokens),
            ..requested.clone()
        };
        let mut times = target.decode(&requested).await?.forward_us;
        // The first forward takes the prompt too.
        if times.len() > 1 {
            times.remove(0);
        }
        times.sort_unstable();
        f64::from(times[times.len() / 2]).max(1.0) / 1e3
    };
    let draft_ms = if let Some(ms) = args.draft_ms {
        ms
    } else {
        let tokens = &requested.prompt.repeat(TIMED as usize)[..TIMED as usize];
        tokio::task::block_in_place(|| draft.forward_ms(tokens))?
    };
    Ok(StopCosts {
        draft: draft_ms,
        target: target_ms,
    })
}

/// A verifier in this process, on loopback.
struct StartedVerifier {
    url: String,
    serving: JoinHandle<Result<(), ops::service_error::ServiceError>>,
    stop: CancellationToken,
    /// Stops it too where the command ends early.
    _stops: DropGuard,
}

impl StartedVerifier {
    async fn new(mut config: VerifierConfig, target: Option<&str>) -> anyhow::Result<Self> {
        if let Some(path) = target {
            path.clone_into(&mut config.model.path);
        }
        config.listen = std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into();
        let listener = config.listen.bind().await?;
        let url = cluster::url(&listener)?;
        let source = config.model.clone();
        let served = tokio::task::spawn_blocking(move || without_heads(&source));
        let verifier = verifier::start(
            served.await?.context("--target")?,
            &config,
            Process::default(),
        )?;
        let stop = CancellationToken::new();
        let until = stop.clone().cancelled_owned();
        Ok(Self {
            url,
            serving: tokio::spawn(verifier.serve(listener, until)),
            _stops: stop.clone().drop_guard(),
            stop,
        })
    }

    async fn stop(self) -> anyhow::Result<()> {
        self.stop.cancel();
        Ok(self.serving.await??)
    }
}
