//! From settings to an engine elsewhere that serves the target model.

use std::sync::Arc;
use std::time::{Duration, Instant};

use engines::{Engine, EngineIdentity, Ids, ScoringEngine, ScoringError};
use model::source::ModelText;
use ops::process::Process;
use ops::service_error::ServiceError;
use speculation::verification::Verification;
use wire::describe::fingerprint;
use wire::v1;

use super::queue::Queue;
use super::standing::Standing;
use super::watch::Watch;
use super::{Remote, SECTION};
use crate::config::{ROLE, RemoteConfig, VerifierConfig};
use crate::scorer::{Verifier, VerifierRole};

/// Between two tries to reach the engine, and between two lines that say that it is waited for.
const RETRY: Duration = Duration::from_secs(1);
const TELL: Duration = Duration::from_secs(15);
/// How long the engine may take for the tokens of a text.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Texts of which the engine must make the tokens that our tokenizer makes: words, accents, white space, digits, code
/// and other scripts.
const PROBES: [&str; 4] = [
    "Once upon a time, there was a small house.",
    "Tom paid 1,234.50 for 3 cafés;\n\tthat's 411.50 each.",
    "fn main() {\n    println!(\"{}\", 0x1f);\n}",
    "Привет, 世界! 🙂",
];

/// A model that an engine elsewhere serves.
pub struct RemoteModel {
    engine: Engine,
    text: ModelText,
    load_time: Duration,
}

fn at_fault(error: ScoringError) -> ServiceError {
    ServiceError::setting(ROLE, SECTION, error)
}

/// Reads the model's text, waits for the engine, and checks that it serves this model.
///
/// # Errors
/// [`ServiceError`] naming what is wrong with either.
pub(crate) fn load(config: &VerifierConfig) -> Result<RemoteModel, ServiceError> {
    let began = Instant::now();
    let (engine, text) = checked(config, |row_len| reach(&config.remote, row_len))?;
    let EngineIdentity {
        version,
        model,
        dtype,
        ..
    } = &engine.identity;
    tracing::info!(version, model, dtype, "the engine serves the target model");
    if engine.scoring.caps().ids == Ids::None {
        tracing::warn!(
            "{version} scores no given tokens here: each round reads the whole sequence, and tokens are seldom proved at \
             once. Its V2 model runner and --enable-scale-out do better"
        );
    }
    if !engine.scoring.caps().parts_tenants {
        tracing::warn!(
            "{version} does not know extra_key: what it keeps of one session's prompt makes others with the same prompt \
             faster, whoever they are; requests with a tenant are refused unless verifier.remote.share_tenants is set"
        );
    }
    Ok(RemoteModel {
        load_time: began.elapsed(),
        engine,
        text,
    })
}

/// Asks the engine what it is, for as long as it is not up.
fn reach(config: &RemoteConfig, row_len: usize) -> Result<Engine, ScoringError> {
    let mut told: Option<Instant> = None;
    loop {
        let error = match config.engine.probe(config.connection()?, row_len) {
            Err(
                error @ (ScoringError::Unreachable(_)
                | ScoringError::Busy { .. }
                | ScoringError::Late(_)
                // Of what stands before it.
                | ScoringError::Status(502 | 504)),
            ) => error,
            probed => return probed,
        };
        if told.is_none_or(|told| told.elapsed() > TELL) {
            tracing::warn!(url = config.url, "waiting for the engine: {error}");
            told = Some(Instant::now());
        }
        std::thread::sleep(RETRY);
    }
}

/// Reads the model's text, and checks that the engine serves this model: `probe` asks it what it is, being told the length
/// of a row in tokens.
fn checked(
    config: &VerifierConfig,
    probe: impl FnOnce(usize) -> Result<Engine, ScoringError>,
) -> Result<(Engine, ModelText), ServiceError> {
    let text = config.model.text();
    let text = text.map_err(|error| ServiceError::setting(ROLE, "model", error))?;
    let engine = probe(text.row_len).map_err(at_fault)?;
    check_tokens(&engine, &text)?;
    Ok((engine, text))
}

/// Checks that texts are the same tokens to the engine as to us.
fn check_tokens(engine: &Engine, text: &ModelText) -> Result<(), ServiceError> {
    let wrong = |problem: String| Err(ServiceError::setting(ROLE, "model", problem));
    for (number, probe) in PROBES.iter().enumerate() {
        let Some(ours) = text.tokens_of(probe) else {
            return wrong(format!(
                "the tokenizer makes no tokens of probe text {number}"
            ));
        };
        match engine.scoring.tokens_of(probe, Instant::now() + TIMEOUT) {
            Ok(theirs) if theirs == ours => {}
            Ok(theirs) => {
                return wrong(format!(
                    "{} makes {} tokens of probe text {number}, the tokenizer here {}, or others: name the model \
                     that the engine serves, '{}'",
                    engine.identity.version,
                    theirs.len(),
                    ours.len(),
                    engine.identity.model
                ));
            }
            // It was started without its tokenizer's routes; the length of its rows was compared.
            Err(error @ ScoringError::Status(404)) => {
                tracing::warn!("the engine's tokenizer cannot be compared with ours: {error}");
                return Ok(());
            }
            Err(error) => return Err(at_fault(error)),
        }
    }
    Ok(())
}

/// Asks the engine once what it is, and checks that it serves this model; what it said in words.
///
/// # Errors
/// [`ServiceError`] naming what is wrong with it, with the model's text or with a setting.
pub fn ask_engine(config: &VerifierConfig) -> Result<String, ServiceError> {
    let remote = &config.remote;
    let probe = |row_len| remote.engine.probe(remote.connection()?, row_len);
    let (engine, _) = checked(config, probe)?;
    let EngineIdentity {
        version,
        model,
        longest,
        ..
    } = &engine.identity;
    Ok(format!(
        "{version} serves '{model}', sequences of up to {longest} tokens"
    ))
}

impl RemoteModel {
    /// Starts the threads that ask the engine, and the verifier over it.
    ///
    /// # Errors
    /// If there are no threads, or the engine gives no rows.
    pub(crate) fn start(
        self,
        config: &VerifierConfig,
        process: Process,
    ) -> Result<Arc<Verifier>, ServiceError> {
        let description = describe(&self, config);
        let Self {
            engine,
            text,
            load_time,
        } = self;
        let scoring: Arc<dyn ScoringEngine> = Arc::from(engine.scoring);
        let numerics = description.numerics.clone().unwrap_or_default();
        let standing = Arc::new(Standing::new(numerics));
        let again = config.clone();
        let probe = Box::new(move || ask_engine(&again).err().map(|error| error.to_string()));
        let (watched, known) = (Arc::clone(&scoring), Arc::clone(&standing));
        let watch = Watch::new(watched, known, engine.identity, probe).map_err(at_fault)?;
        let caps = scoring.caps();
        let batch = config.engine.max_batch.get().min(caps.max_sequences);
        let (most, threads) = (config.engine.max_queue.get(), config.remote.requests.get());
        let queue = Queue::new(&scoring, most, threads, batch);
        let remote = Remote {
            queue: queue.map_err(|error| ServiceError::setting(ROLE, SECTION, error))?,
            caps,
            row_len: text.row_len,
            standing,
            shares_tenants: config.remote.share_tenants,
        };
        let role = VerifierRole::new(text.text, &description, Arc::new(remote));
        let (load_time, bounds) = ((description.model.clone(), load_time), config.bounds());
        let verifier = role.start(Vec::new(), description, load_time, &bounds, process);
        watch.begin(&verifier)?;
        Ok(verifier)
    }
}

/// Returns the description of a verifier whose rows come in parts.
fn describe(model: &RemoteModel, config: &VerifierConfig) -> v1::PeerDescription {
    let (engine, text) = (&model.engine, &model.text);
    let outline = peer::outline(&text.outline);
    let engine = &engine.identity;
    let hash_of = |parts: &[&String]| {
        let parts: Vec<&str> = parts.iter().map(|part| part.as_str()).collect();
        format!("{:016x}", fingerprint(parts.join("\n").as_bytes()))
    };
    let of_model = hash_of(&[&engine.model, &engine.fingerprint]);
    let numerics = hash_of(&[
        &engine.version,
        &engine.model,
        &engine.fingerprint,
        &engine.dtype,
    ]);
    v1::PeerDescription {
        logits_size: text.row_len as u32,
        context_len: engine.longest as u32,
        limits: Some(config.bounds().to_wire()),
        numerics: Some(v1::Numerics {
            weights: numerics,
            dtype: engine.dtype.clone(),
            kernels: engine.version.clone(),
        }),
        model_fingerprint: of_model,
        eos_token_ids: text.eos_token_ids.clone(),
        verifications: [Verification::COUPLED, Verification::TOKEN]
            .map(|known| known.wire)
            .into(),
        features: Vec::new(),
        trees: false,
        rows_vary: true,
        rows_are_parts: true,
        ..outline
    }
}
