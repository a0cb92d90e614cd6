//! Models so small that a round takes microseconds.

use model::source::{ServedModel, serve};
use model::{Checkpoint, Model, ModelConfig, WeightFormat};
use serde_json::{Map, Value, json};

/// Tokens of the tokenizer: the bytes, and the end token.
pub const VOCAB_SIZE: u32 = 257;

/// The end token.
pub const END: u32 = 256;

/// A checkpoint of random weights, with [`tokenizer_json`].
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
    checkpoint.with_tokenizer(tokenizer_json().into_bytes())
}

/// The same, ready to be served.
pub fn served(seed: u64) -> ServedModel<Model> {
    let model = serve(
        &checkpoint(seed),
        WeightFormat::F32,
        "tiny".to_owned(),
        "tiny",
    );
    model.expect("a model")
}

/// A byte-level `tokenizer.json` without merges, whose tokens are the bytes by their value.
pub fn tokenizer_json() -> String {
    let mut vocab = Map::new();
    let mut next = 256;
    for byte in 0..=255_u32 {
        // GPT-2's names of the bytes: printable Latin-1 by itself, the others from U+0100 on.
        let is_printable = matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
        let name = if is_printable { byte } else { next };
        next += u32::from(!is_printable);
        let name = char::from_u32(name).expect("a character");
        vocab.insert(name.to_string(), byte.into());
    }
    vocab.insert("<end>".to_owned(), END.into());
    let byte_level = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
        "use_regex": true});
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "normalizer": null,
        "pre_tokenizer": byte_level, "post_processor": null, "decoder": byte_level,
        "model": {"type": "BPE", "vocab": Value::Object(vocab), "merges": []},
        "added_tokens": [{"id": END, "content": "<end>", "single_word": false, "lstrip": false,
            "rstrip": false, "normalized": false, "special": true}],
    });
    tokenizer.to_string()
}
