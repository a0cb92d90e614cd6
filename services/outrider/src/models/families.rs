//! `outrider models families`: which models what engine computes.

use std::io::Write;

use anstream::stdout;
use model::source::{EngineKind, FamilyOfModels, families};
use serde_json::{Value, json};

/// What is not told by a model's family.
const OTHERS: &str = "\
others: GGUF files by --engine llama-cpp, in programs built with that feature (docs/llama-cpp.md); whatever SGLang or
vLLM serves, as a verifier's remote engine (docs/engines.md). Of those above, llama-cpp takes the GGUF files too, and
the remote engines the folders.";

/// Prints all families.
pub(super) fn list(as_json: bool) -> anyhow::Result<()> {
    let mut out = stdout().lock();
    if as_json {
        let all: Vec<_> = families().map(|family| object(&family)).collect();
        writeln!(out, "{}", serde_json::to_string_pretty(&all)?)?;
        return Ok(());
    }
    writeln!(
        out,
        "{:<28} {:<22} others that may compute it",
        "model_type", "chosen"
    )?;
    for family in families() {
        let types = family.model_types.join(", ");
        let (chosen, others) = engines(&family);
        let only = if family.drafts_only {
            ", drafters only"
        } else {
            ""
        };
        let chosen = format!("{chosen}{only}");
        writeln!(out, "{types:<28} {chosen:<22} {}", others.join(", "))?;
    }
    writeln!(out, "{OTHERS}")?;
    Ok(())
}

/// The engine that is chosen where nobody says, and the others.
fn engines(family: &FamilyOfModels) -> (&'static str, Vec<&'static str>) {
    let chosen = match family.engine {
        EngineKind::Candle => "candle",
        EngineKind::LlamaCpp => "llama-cpp",
        EngineKind::Auto | EngineKind::Outrider => "outrider",
    };
    let is_decoder = !family.model_types.contains(&"t5");
    let others = [
        ("llama-cpp (GGUF)", is_decoder),
        ("sglang", is_decoder),
        ("vllm", is_decoder),
    ];
    let others = others.into_iter().filter(|(_, computes)| *computes);
    (chosen, others.map(|(name, _)| name).collect())
}

fn object(family: &FamilyOfModels) -> Value {
    let (chosen, others) = engines(family);
    json!({
        "model_types": family.model_types,
        "architectures": family.classes,
        "engine": chosen,
        "drafts_only": family.drafts_only,
        "other_engines": others,
        "gguf": family.gguf,
    })
}
