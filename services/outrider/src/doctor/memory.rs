//! Whether weights, keys and values have room in memory.

use model::Computation;
use model::engine::EngineConfig;
use model::source::Inspected;

use super::files::{InspectedModels, mebibytes};
use super::report::Findings;
use crate::config::Config;

/// What one engine takes of this machine's memory.
struct MemoryNeed {
    /// Section of the engine's service.
    service: &'static str,
    weights: u64,
    /// Keys and values, if all the tokens of its budget are held; none if the budget is a share of what is free.
    keys_and_values: Option<u64>,
}

/// Compares what the models on CPUs take with what is `free`.
pub(super) fn findings(config: &Config, models: &InspectedModels, free: Option<u64>) -> Findings {
    let target = models.target.iter();
    let target = target.map(|model| MemoryNeed::of("verifier", model, &config.verifier.engine));
    let drafts = models.drafts.iter();
    let drafts = drafts.map(|(_, model)| MemoryNeed::of("drafter", model, &config.drafter.engine));
    let needs: Vec<_> = target.chain(drafts).flatten().collect();
    let mut findings = Findings::of("memory");
    match free {
        Some(free) if !needs.is_empty() => judge(&mut findings, &needs, free),
        Some(free) => findings.info(format!("{} are free", mebibytes(free))),
        None => findings.info("this system does not tell how much is free"),
    }
    findings
}

impl MemoryNeed {
    /// Returns none on a GPU, which has memory of its own, and with llama.cpp, which sizes its own buffers.
    fn of(service: &'static str, model: &Inspected, engine: &EngineConfig) -> Option<Self> {
        let (weights, a_token) = match (&model.own, &model.by_candle) {
            (Some((checkpoint, computation @ Computation::Cpu(format))), _) => {
                let config = checkpoint.config();
                let heads = 2 * config.layers * config.kv_heads;
                let a_token = heads * format.kv.head_bytes(config.head_dim);
                (checkpoint.computed_bytes(*computation), a_token as u64)
            }
            (None, Some(needs)) if needs.is_on_cpu => (needs.weight_bytes, needs.token_bytes),
            _ => return None,
        };
        let tokens = (engine.kv_tokens > 0).then_some(engine.kv_tokens as u64);
        Some(Self {
            service,
            weights,
            keys_and_values: tokens.map(|tokens| tokens.saturating_mul(a_token)),
        })
    }
}

fn judge(findings: &mut Findings, needs: &[MemoryNeed], free: u64) {
    let weights: u64 = needs.iter().map(|need| need.weights).sum();
    let (of_weights, of_free) = (mebibytes(weights), mebibytes(free));
    if weights > free {
        findings.error(
            format!("weights take {of_weights}, and {of_free} are free"),
            "take smaller models or a smaller dtype (q4_k), stop what else takes memory, or raise the container's limit",
        );
        return;
    }
    findings.ok(format!(
        "weights take {of_weights} of {of_free} that are free"
    ));
    let left = free - weights;
    for need in needs {
        let (service, key) = (need.service, format!("{}.engine.kv_tokens", need.service));
        let Some(most) = need.keys_and_values else {
            findings.ok(format!(
                "{service}: keys and values take a share of the {} that are left, as {key} does not bound them",
                mebibytes(left)
            ));
            continue;
        };
        let taken = format!("{service}: keys and values take up to {}", mebibytes(most));
        if most <= left {
            findings.ok(taken);
        } else {
            findings.error(
                format!(
                    "{taken} by {key}, and beside weights {} are free",
                    mebibytes(left)
                ),
                format!("lower {key}, or leave it at 0"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::FindingLevel;
    use super::*;

    #[test]
    fn a_budget_that_is_set_must_have_room() {
        let levels = |keys_and_values, free| {
            let need = MemoryNeed {
                service: "verifier",
                weights: 100,
                keys_and_values,
            };
            let mut findings = Findings::of("memory");
            judge(&mut findings, &[need], free);
            let levels = findings.found.iter().map(|found| found.level);
            levels.collect::<Vec<_>>()
        };
        assert_eq!(levels(Some(50), 150), [FindingLevel::Ok, FindingLevel::Ok]);
        assert_eq!(
            levels(Some(51), 150),
            [FindingLevel::Ok, FindingLevel::Error]
        );
        assert_eq!(levels(None, 101), [FindingLevel::Ok, FindingLevel::Ok]);
        assert_eq!(levels(Some(1), 99), [FindingLevel::Error]);
    }
}
