//! Checkpoints with fused matrices.

use super::families::changed;
use super::*;
use crate::checkpoint::tests::random_weights;
use crate::decoder::tensors::row_ranges;

/// A Llama, and a Phi-3 that differs from it by nothing but its fused matrices.
fn alike() -> [ModelConfig; 2] {
    [Architecture::Llama, Architecture::Phi3].map(|architecture| ModelConfig {
        architecture,
        // Rows of whole blocks, some of which a part of a matrix would cut.
        hidden_size: 64,
        intermediate_size: 96,
        tie_word_embeddings: true,
        qkv_bias: false,
        output_bias: false,
        mlp_bias: false,
        ..config()
    })
}

#[test]
fn fused_matrices_give_the_bits_of_those_apart() {
    let [llama, phi3] = alike();
    let fused = Checkpoint::random(phi3.clone(), 7).unwrap();
    assert!(
        !fused
            .weights()
            .contains("model.layers.0.self_attn.q_proj.weight")
    );
    let apart = changed(&llama, |name, shape, _| {
        (
            name.to_owned(),
            fused.weights().tensor(name, shape).unwrap(),
        )
    });
    // The rows stand in the order of the parts.
    let all = fused
        .weights()
        .tensor("model.layers.1.self_attn.qkv_proj.weight", &[100, 64]);
    let parts = [("q", 60), ("k", 20), ("v", 20)].map(|(part, rows)| {
        let name = format!("model.layers.1.self_attn.{part}_proj.weight");
        apart.tensor(&name, &[rows, 64]).unwrap()
    });
    assert_eq!(all.unwrap(), parts.concat());
    for format in WeightFormat::ALL {
        let mut models = [(&phi3, fused.weights()), (&llama, &apart), (&phi3, &apart)]
            .map(|(config, weights)| Decoder::load(config, weights, format).unwrap());
        let [expected, ..] = models.each_mut().map(|model| fresh(model, &text(30, 1)));
        for model in &mut models {
            assert_eq!(fresh(model, &text(30, 1)), expected, "{format}");
        }
    }
}

#[test]
fn a_fused_matrix_that_is_missing_or_misshapen_is_named() {
    let [llama, phi3] = alike();
    let refusal = |stored: &ModelConfig, config: &ModelConfig| {
        let weights = Weights::from_bytes(random_weights(stored, 7)).unwrap();
        let weights = weights.with_row_ranges(row_ranges(config, TensorNames::TEXT));
        let refused = Decoder::load(config, &weights, WeightFormat::F32);
        refused.unwrap_err().to_string()
    };
    let wide = ModelConfig {
        kv_heads: 3,
        ..phi3.clone()
    };
    let qkv = "tensor model.layers.0.self_attn.qkv_proj.weight";
    assert_eq!(
        refusal(&wide, &phi3),
        format!("{qkv} has shape [120, 64], the config implies [100, 64]")
    );
    assert_eq!(
        refusal(&llama, &wide),
        "tensor model.layers.0.self_attn.k_proj.weight has shape [20, 64], the config implies [30, 64]"
    );
}
