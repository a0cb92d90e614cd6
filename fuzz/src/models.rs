//! Models so small that a round takes microseconds.

use model::source::{ServedModel, serve};
use model::{Checkpoint, Model, ModelConfig, WeightFormat};

/// Tokens of the tokenizer: the bytes, and the end token.
pub const VOCAB_SIZE: u32 = 257;

/// The end token.
pub const END: u32 = 256;

/// A byte-level tokenizer without merges, whose tokens are the bytes by their value.
pub const TOKENIZER_JSON: &str = include_str!("../corpus/tokenizer/byte-level");

/// As short as one can be: few tokens fit into the context.
const CHAT_TEMPLATE: &str = "{% for m in messages %}{{ m['content'] }}{% endfor %}";

/// A checkpoint of random weights, with [`TOKENIZER_JSON`].
pub fn checkpoint(seed: u64) -> Checkpoint {
    let config = ModelConfig {
        vocab_size: VOCAB_SIZE as usize,
        hidden_size: 32,
        intermediate_size: 32,
        layers: 1,
        heads: 1,
        kv_heads: 1,
        head_dim: 32,
        context_len: 64,
        eos_token_ids: vec![END],
        ..ModelConfig::llama()
    };
    let checkpoint = Checkpoint::random(config, seed).expect("random weights");
    checkpoint.with_tokenizer(TOKENIZER_JSON.as_bytes())
}

/// The same, ready to be served.
pub fn served(seed: u64) -> ServedModel<Model> {
    let model = serve(
        &checkpoint(seed),
        WeightFormat::F32,
        "tiny".to_owned(),
        "tiny",
    );
    let mut served = model.expect("a model");
    served.text.chat_template = Some(CHAT_TEMPLATE.to_owned());
    served
}
