//! What is told of a model that is served.

use std::fs;
use std::sync::Arc;

use grammar::Grammars;
use model::source::{Outline, ServedModel, TextEncoding};
use speculation::TokenId;
use speculation::ports::LanguageModel;
use wire::describe::fingerprint;
use wire::v1;

/// Returns what a peer will say of a model before its weights are loaded: enough to see whether two models fit.
pub fn outline(outline: &Outline) -> v1::PeerDescription {
    v1::PeerDescription {
        model: outline.name.clone(),
        vocab_size: outline.vocab_size,
        vocab_fingerprint: outline.vocab_fingerprint.to_vec(),
        decoder_start_token_id: outline.decoder_start_token_id,
        ..wire::describe::capabilities()
    }
}

/// Returns what compiles grammars for a model with this `text`, whose token ids are below `vocab_size`, and which ends its
/// output with one of `ends`.
pub fn grammars(text: &Arc<TextEncoding>, vocab_size: u32, ends: Vec<TokenId>) -> Arc<Grammars> {
    let text = Arc::clone(text);
    let json = move || text.tokenizer_json.clone();
    Arc::new(Grammars::of_json(json, vocab_size, ends))
}

/// Returns the description of a peer that serves this model.
pub fn describe<M: LanguageModel>(served: &ServedModel<M>) -> v1::PeerDescription {
    let shape = served.model.shape();
    v1::PeerDescription {
        logits_size: shape.vocab_size as u32,
        context_len: match shape.source_len {
            0 => shape.context_len as u32,
            source_len => shape.context_len.min(source_len) as u32,
        },
        numerics: Some(v1::Numerics {
            weights: served.numerics.weights.clone(),
            dtype: served.numerics.dtype.clone(),
            kernels: served.numerics.kernels.clone(),
        }),
        model_fingerprint: served.weights_fingerprint.clone(),
        eos_token_ids: served.eos_token_ids.clone(),
        rows_vary: !served.model.caps().bit_invariant,
        processors: if served.is_on_processors {
            processors()
        } else {
            Vec::new()
        },
        ..self::outline(&served.outline)
    }
}

/// Returns the name of the processors that this process may use on this machine. Processes with the same name take
/// time from one another. Empty where the system does not report them.
///
/// On a large machine, two processes that may use all processors get the same name although each may need only a few.
fn processors() -> Vec<u8> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    let status = fs::read_to_string("/proc/self/status");
    match (boot, status) {
        (Ok(boot), Ok(status)) => name_of(&boot, &status),
        _ => Vec::new(),
    }
}

fn name_of(boot: &str, status: &str) -> Vec<u8> {
    let mut lines = status.lines();
    let allowed = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let Some(allowed) = allowed.map(str::trim).filter(|allowed| !allowed.is_empty()) else {
        return Vec::new();
    };
    // The name is a digest, so that it does not reveal the boot id of the machine.
    fingerprint(format!("{} {allowed}", boot.trim()).as_bytes())
        .to_le_bytes()
        .to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_share_processors_on_one_machine_alone() {
        let status = |list: &str| {
            format!("Name:\tx\nCpus_allowed:\t3\nCpus_allowed_list:\t{list}\nMems:\t1\n")
        };
        let name = |boot: &str, list: &str| name_of(boot, &status(list));
        assert_eq!(name("a\n", "0-1"), name("a", "0-1"));
        assert_eq!(name("a", "0-1").len(), 8);
        assert_ne!(name("a", "0"), name("a", "1"));
        assert_ne!(name("a", "0-1"), name("b", "0-1"));
        assert!(name_of("a", "Name:\tx\n").is_empty());
    }
}
