//! The constants of a model as text, which its fingerprints are digests of.
//!
//! Acceptance heads carry the fingerprint of their draft model, and peers compare theirs: this text must stay as it
//! is for every model that can be run today. So each constant stands here under a name of its own. One that is added
//! to [`ModelConfig`] is appended, and only where it differs from what all models had before it.

use crate::config::{Architecture, EncoderConfig, ModelConfig, RopeConfig};
use crate::rope::{RopeScaling, Yarn};

/// Everything of `config` that changes numbers and is no size of a tensor, as the tensors are digested by
/// themselves; of models that are no Llama all but what only bounds a text.
pub(super) fn constants(config: &ModelConfig) -> String {
    let none = (0.0, &RopeScaling::Default);
    let rope = config.rope.as_ref();
    let (theta, scaling) = rope.map_or(none, |rope| (rope.theta, &rope.scaling));
    let scaling = self::scaling(scaling, config.context_len);
    let text = format!(
        "({}, {}, {}) {:?} {theta:?} {scaling}",
        config.heads, config.kv_heads, config.head_dim, config.rms_norm_eps,
    );
    match config.architecture {
        // It came first, and its acceptance heads carry a digest of this much.
        Architecture::Llama => text,
        _ => format!("{text} {}", all(config)),
    }
}

/// The fields of `config` by their names.
fn all(config: &ModelConfig) -> String {
    // Without `..`, so that a new field is missed here.
    let ModelConfig {
        architecture,
        vocab_size,
        hidden_size,
        intermediate_size,
        layers,
        heads,
        kv_heads,
        head_dim,
        rms_norm_eps,
        norm_plus_one,
        pre_norms,
        post_norms,
        qk_norm,
        qk_norm_whole,
        qkv_bias,
        output_bias,
        mlp_bias,
        activation,
        gated,
        attention_scale,
        attention_softcap,
        logit_softcap,
        logit_divisor,
        embedding_scale,
        residual_scale,
        output_scale,
        rope,
        window_rope,
        unrotated,
        window,
        windowed,
        context_len,
        tie_word_embeddings,
        encoder,
        bos_token_id: _,
        eos_token_ids: _,
    } = config;
    let [rope, window_rope] = [rope, window_rope]
        .map(|rope| optional(rope.as_ref().map(|rope| self::rope(rope, *context_len))));
    let encoder = optional(encoder.map(self::encoder));
    // What came later is named only where a model has it: the fingerprints of those without stay.
    let constant =
        |name: &str, number: &Option<f32>| number.map(|number| format!(", {name}: {number:?}"));
    let later = [
        unrotated
            .contains(&true)
            .then(|| format!(", unrotated: {unrotated:?}")),
        (!pre_norms).then(|| ", pre_norms: false".to_owned()),
        qk_norm_whole.then(|| ", qk_norm_whole: true".to_owned()),
        constant("logit_divisor", logit_divisor),
        constant("residual_scale", residual_scale),
    ];
    let later: String = later.into_iter().flatten().collect();
    format!(
        "ModelConfig {{ architecture: {architecture}, vocab_size: {vocab_size}, hidden_size: {hidden_size}, \
         intermediate_size: {intermediate_size}, layers: {layers}, heads: {heads}, kv_heads: {kv_heads}, \
         head_dim: {head_dim}, rms_norm_eps: {rms_norm_eps:?}, norm_plus_one: {norm_plus_one}, \
         post_norms: {post_norms}, qk_norm: {qk_norm}, qkv_bias: {qkv_bias}, output_bias: {output_bias}, \
         mlp_bias: {mlp_bias}, activation: {activation}, gated: {gated}, attention_scale: {attention_scale:?}, \
         attention_softcap: {attention_softcap:?}, logit_softcap: {logit_softcap:?}, \
         embedding_scale: {embedding_scale:?}, output_scale: {output_scale:?}, rope: {rope}, \
         window_rope: {window_rope}, window: {window:?}, windowed: {windowed:?}, context_len: 0, \
         tie_word_embeddings: {tie_word_embeddings}, encoder: {encoder}, bos_token_id: None, eos_token_ids: []{later} }}"
    )
}

fn rope(rope: &RopeConfig, context_len: usize) -> String {
    let RopeConfig {
        theta,
        scaling,
        dims,
    } = rope;
    let scaling = self::scaling(scaling, context_len);
    let dims = dims.map_or_else(String::new, |dims| format!(", dims: {dims}"));
    format!("RopeConfig {{ theta: {theta:?}, scaling: {scaling}{dims} }}")
}

fn scaling(scaling: &RopeScaling, context_len: usize) -> String {
    match scaling {
        RopeScaling::Default => "Default".to_owned(),
        RopeScaling::Linear { factor } => format!("Linear {{ factor: {factor:?} }}"),
        RopeScaling::Llama3 {
            factor,
            low_freq_factor,
            high_freq_factor,
            original_context_len,
        } => format!(
            "Llama3 {{ factor: {factor:?}, low_freq_factor: {low_freq_factor:?}, \
             high_freq_factor: {high_freq_factor:?}, original_context_len: {original_context_len} }}"
        ),
        RopeScaling::Yarn(yarn) => {
            // Without `..`, so that a new field is missed here.
            let Yarn {
                factor,
                original_context_len,
                beta_fast,
                beta_slow,
                truncate,
                attention_factor,
            } = yarn;
            format!(
                "Yarn {{ factor: {factor:?}, original_context_len: {original_context_len}, beta_fast: {beta_fast:?}, \
                 beta_slow: {beta_slow:?}, truncate: {truncate}, attention_factor: {attention_factor:?} }}"
            )
        }
        RopeScaling::LongRope(long_rope) => {
            let factors = long_rope.factors(context_len);
            let attention_factor = long_rope.attention_factor;
            format!("LongRope {{ factors: {factors:?}, attention_factor: {attention_factor:?} }}")
        }
    }
}

fn encoder(encoder: EncoderConfig) -> String {
    let EncoderConfig {
        layers,
        relative_buckets,
        relative_max_distance,
        decoder_start_token_id,
    } = encoder;
    format!(
        "EncoderConfig {{ layers: {layers}, relative_buckets: {relative_buckets}, \
         relative_max_distance: {relative_max_distance}, decoder_start_token_id: {decoder_start_token_id} }}"
    )
}

fn optional(text: Option<String>) -> String {
    text.map_or("None".to_owned(), |text| format!("Some({text})"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::checkpoint::Checkpoint;
    use crate::embedded;

    #[test]
    fn the_shipped_models_fingerprints_are_what_they_were() {
        let found = ["target", "draft", "small"]
            .map(|role| embedded::model(role).expect("a model").fingerprint());
        assert_eq!(
            found,
            ["8804658d19fcd55a", "45cd555c9433ad9e", "78fdf853196db013",]
        );
    }

    #[test]
    fn the_fingerprints_of_every_family_are_what_they_were() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/models");
        let expected = [
            ("gemma2", "00a69e831a8364f1"),
            ("gemma3", "4bed76071a8ce6a6"),
            ("llama", "299456a96aa4d2a8"),
            ("llama3-rope", "20ea3711f6fdef88"),
            ("mistral-sliding", "c4e9223dbed6f757"),
            ("qwen2", "d2d823465af5f007"),
            ("qwen3", "21aadfbf18a0aa39"),
            ("t5-original", "2721cffe04afd969"),
            ("t5-v1_1", "c29cb9633ce0642c"),
        ];
        let found = expected.map(|(name, _)| {
            let model = Checkpoint::open(&folder.join(name)).expect("a model");
            (name, model.fingerprint())
        });
        assert_eq!(found, expected.map(|(name, of)| (name, of.to_owned())));
    }
}
