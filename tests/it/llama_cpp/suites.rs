//! The suites of our own runtime, run on llama.cpp.
//!
//! `OUTRIDER_TEST_LLAMA_CPP` names the roles whose embedded model llama.cpp computes: `target`, `draft`, or both
//! with a comma between. Weights, keys and values are f32 and flash attention is off, so rows of one sequence that
//! was cut otherwise into forwards differ by rounding only. An answer whose session moved may then differ from
//! what is expected where two scores are nearly the same: such answers are counted, and all others must be equal.

use std::sync::atomic::{AtomicUsize, Ordering};

use model::engine::EngineConfig;
use model::gguf_writer::FileFormat;
use model::source::ServedModel;
use model::{Model, tokenizer};
use speculation::noise::Noise;
use speculation::ports::{LanguageModel, Rows, Segment};
use wire::v1::GenerateRequest;
use wire::v1::generate_request::Prompt;

use super::gguf::Gguf;

/// Names the roles.
const VARIABLE: &str = "OUTRIDER_TEST_LLAMA_CPP";
/// How far two logits of one token may be apart: what the contract tests allow in f32.
const TOLERANCE: f64 = 1e-3;

/// The embedded model of `role`, if llama.cpp is to compute it.
pub(crate) fn model(role: &str) -> Option<ServedModel<Model>> {
    is_on_llama_cpp(role).then(|| {
        let mut served = Gguf::of(role, FileFormat::F32).served();
        role.clone_into(&mut served.outline.name);
        served
    })
}

/// Bounds the memory of an engine, which llama.cpp takes at once, where it is to compute `role`.
pub(crate) fn bound(role: &str, engine: &mut EngineConfig) {
    if is_on_llama_cpp(role) {
        engine.kv_tokens = 8_192;
    }
}

fn is_on_llama_cpp(role: &str) -> bool {
    let roles = std::env::var(VARIABLE).unwrap_or_default();
    roles.split(',').any(|named| named == role)
}

/// Whether `found` parts from `expected` at two tokens whose scores are nearly the same, on a target that
/// llama.cpp computes.
pub(crate) fn is_near_tie(requested: &GenerateRequest, found: &[u32], expected: &[u32]) -> bool {
    static NEAR_TIES: AtomicUsize = AtomicUsize::new(0);
    let mut pairs = found.iter().zip(expected);
    let Some(at) = pairs.position(|(found, expected)| found != expected) else {
        return false;
    };
    if !is_on_llama_cpp("target") {
        return false;
    }
    let gap = gap(requested, &found[..at], [found[at], expected[at]]);
    let is_near = gap <= 2.0 * TOLERANCE;
    if is_near {
        let count = 1 + NEAR_TIES.fetch_add(1, Ordering::Relaxed);
        println!("near tie {count}: scores of token {at} are {gap:.1e} of a logit apart");
    }
    is_near
}

/// How far apart the scores of two tokens after `output` are, in logits.
fn gap(requested: &GenerateRequest, output: &[u32], tokens: [u32; 2]) -> f64 {
    let Some(Prompt::Text(prompt)) = &requested.prompt else {
        panic!("a prompt of text")
    };
    let mut target = model("target").expect("a target");
    let tokenizer = tokenizer::from_bytes(&target.text.tokenizer_json).expect("a tokenizer");
    let encoded = tokenizer.encode(&prompt[..], true).expect("tokens");
    let sequence = [encoded.get_ids(), output].concat();
    let mut rows = Rows::default();
    let mut cache = target.model.new_cache();
    let segment = Segment {
        cache: &mut cache,
        tokens: &sequence,
        parents: &[],
        scored_from: sequence.len() - 1,
    };
    let forwarded = target.model.forward(&mut [segment], &mut rows);
    forwarded.expect("a row");
    let sampling = requested.sampling.clone().unwrap_or_default();
    let temperature = f64::from(sampling.temperature.unwrap_or(1.0));
    let noise = Noise::new(requested.seed.expect("a seed"), requested.choice);
    let scores = tokens.map(|token| {
        let uniform = noise.coupled(output.len() as u32, token)[0];
        let gumbel = -(-uniform.ln()).ln();
        f64::from(rows.logits[token as usize]) + temperature * gumbel
    });
    (scores[0] - scores[1]).abs()
}
