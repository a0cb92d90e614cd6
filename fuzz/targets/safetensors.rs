//! Any bytes as the weights of a checkpoint, in safetensors.

#![no_main]

use libfuzzer_sys::fuzz_target;
use model::{Checkpoint, CheckpointFiles, WeightFormat};

/// A Llama of one layer, eight tokens and 32 dimensions.
const CONFIG: &[u8] = include_bytes!("safetensors.config.json");

fuzz_target!(|bytes: &[u8]| {
    let files = CheckpointFiles {
        config: CONFIG.into(),
        weights: bytes.to_vec().into(),
        tokenizer: None,
        tokenizer_config: None,
    };
    if let Ok(checkpoint) = Checkpoint::from_bytes(files) {
        let _ = checkpoint.load(WeightFormat::Q8_0);
        let _ = checkpoint.fingerprint();
    }
});
