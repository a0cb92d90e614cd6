use std::{fs, io};

use candle_core::quantized::GgmlDType;

use super::*;
use crate::{
    checkpoint::CheckpointFiles,
    config::{Architecture, ModelConfig, RopeConfig},
    linear::WeightFormat,
    rope::{LongRope, RopeScaling, Yarn},
    tests::fresh,
};

/// A model whose rows are multiples of 256, but for one matrix a layer.
fn config() -> ModelConfig {
    ModelConfig {
        vocab_size: 96,
        hidden_size: 256,
        intermediate_size: 96,
        layers: 2,
        heads: 4,
        kv_heads: 2,
        head_dim: 64,
        context_len: 64,
        tie_word_embeddings: false,
        eos_token_ids: vec![2, 5],
        ..ModelConfig::llama()
    }
}

fn unstopped(_: WorkProgress<'_>) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn written(checkpoint: &Checkpoint, format: FileFormat) -> (tempfile::NamedTempFile, WrittenGguf) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let written = write(checkpoint, "test", format, &mut file, &mut unstopped).unwrap();
    verify(checkpoint, file.path()).unwrap();
    (file, written)
}

fn logits(checkpoint: &Checkpoint, format: WeightFormat) -> Vec<f32> {
    let mut model = checkpoint.load(format).unwrap();
    fresh(&mut model, &[1, 7, 3, 90, 44, 12]).0
}

/// A Phi-3 of those sizes, all in which it differs from a Llama.
fn phi3(context_len: usize) -> ModelConfig {
    let long_rope = LongRope {
        short_factors: (0..24).map(|i| 1.0 + i as f32 / 7.0).collect(),
        long_factors: (0..24).map(|i| 2.0 + i as f32 / 3.0).collect(),
        original_context_len: 32,
        attention_factor: 1.19,
    };
    ModelConfig {
        architecture: Architecture::Phi3,
        rope: Some(RopeConfig {
            theta: 10_000.0,
            scaling: RopeScaling::LongRope(long_rope.into()),
            dims: Some(48),
        }),
        window: Some(4),
        windowed: vec![true; 2],
        context_len,
        ..config()
    }
}

#[test]
fn fused_matrices_and_long_rotations_come_out() {
    let [short, long] = [32, 64].map(|context_len| {
        let checkpoint = Checkpoint::random(phi3(context_len), 3).unwrap();
        let (written, report) = written(&checkpoint, FileFormat::Q8_0);
        // Two tensors of factors, three of the ends, and six in each layer.
        assert_eq!(report.tensors, 2 + 3 + 2 * 6);
        let read = Checkpoint::open(written.path()).unwrap();
        assert_eq!(read.config(), checkpoint.config());
        let format = WeightFormat::Q8_0;
        let found = logits(&read, format);
        assert_eq!(found, logits(&checkpoint, format));
        found
    });
    assert_ne!(short, long);
}

#[test]
fn yarn_comes_out_with_any_factor_of_attention() {
    let usual = Yarn {
        factor: 4.0,
        original_context_len: 16,
        beta_fast: 32.0,
        beta_slow: 1.0,
        truncate: true,
        attention_factor: Yarn::attention(4.0, 1.0) as f32,
    };
    let other = Yarn {
        beta_fast: 3.0,
        beta_slow: 0.5,
        // llama.cpp's factor for it comes out as another number.
        attention_factor: 1.26,
        ..usual.clone()
    };
    let model = |yarn: &Yarn| {
        let rope = RopeConfig {
            theta: 10_000.0,
            scaling: RopeScaling::Yarn(yarn.clone()),
            dims: None,
        };
        let config = ModelConfig {
            rope: Some(rope),
            context_len: 64,
            ..config()
        };
        Checkpoint::random(config, 3).unwrap()
    };
    let [usual_logits, other_logits] = [&usual, &other].map(|yarn| {
        let checkpoint = model(yarn);
        let (written, _) = written(&checkpoint, FileFormat::Q8_0);
        let read = Checkpoint::open(written.path()).unwrap();
        assert_eq!(read.config(), checkpoint.config());
        logits(&read, WeightFormat::Q8_0)
    });
    assert_ne!(usual_logits, other_logits);
    let unrounded = Yarn {
        truncate: false,
        ..usual
    };
    let (checkpoint, out) = (model(&unrounded), &mut io::sink());
    let refused = write(&checkpoint, "x", FileFormat::F32, out, &mut unstopped);
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("rope's truncate"), "{message}");
}

#[test]
fn layers_that_do_not_rotate_come_out_if_they_are_every_fourth() {
    let model = |unrotated: &[bool]| {
        let config = ModelConfig {
            architecture: Architecture::SmolLm3,
            unrotated: unrotated.to_vec(),
            windowed: vec![false; unrotated.len()],
            layers: unrotated.len(),
            ..config()
        };
        Checkpoint::random(config, 3).unwrap()
    };
    let every_fourth = model(&[false, false, false, true, false]);
    let (written, _) = written(&every_fourth, FileFormat::Q8_0);
    let read = Checkpoint::open(written.path()).unwrap();
    assert_eq!(read.config(), every_fourth.config());
    let found = logits(&read, WeightFormat::Q8_0);
    assert_eq!(found, logits(&every_fourth, WeightFormat::Q8_0));
    let all = model(&[false; 5]);
    assert_ne!(found, logits(&all, WeightFormat::Q8_0));
    assert_ne!(all.fingerprint(), every_fourth.fingerprint());
    let (others, out) = (model(&[false, true]), &mut io::sink());
    let refused = write(&others, "x", FileFormat::F32, out, &mut unstopped);
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("no_rope_layers"), "{message}");
}

#[test]
fn norms_after_blocks_come_out() {
    let config = ModelConfig {
        architecture: Architecture::Olmo2,
        pre_norms: false,
        post_norms: true,
        qk_norm: true,
        qk_norm_whole: true,
        ..config()
    };
    let checkpoint = Checkpoint::random(config, 3).unwrap();
    let (written, report) = written(&checkpoint, FileFormat::Q8_0);
    // Three of the ends, and eleven in each layer.
    assert_eq!(report.tensors, 3 + 2 * 11);
    let file = crate::gguf::GgufModel::open(written.path()).unwrap();
    for (name, width) in [
        ("attn_q_norm", 256),
        ("attn_k_norm", 128),
        ("post_attention_norm", 256),
        ("post_ffw_norm", 256),
    ] {
        let (info, _) = file.tensor(&format!("blk.1.{name}.weight")).unwrap();
        assert_eq!(info.shape, [width], "{name}");
    }
    let read = Checkpoint::open(written.path()).unwrap();
    assert_eq!(read.config(), checkpoint.config());
    let found = logits(&read, WeightFormat::Q8_0);
    assert_eq!(found, logits(&checkpoint, WeightFormat::Q8_0));
}

#[test]
fn heads_that_rotate_in_part_come_out_as_they_stand() {
    let config = ModelConfig {
        architecture: Architecture::Glm4,
        post_norms: true,
        qkv_bias: true,
        rope: config().rope.map(|rope| RopeConfig {
            dims: Some(32),
            ..rope
        }),
        ..config()
    };
    let checkpoint = Checkpoint::random(config, 3).unwrap();
    let (written, report) = written(&checkpoint, FileFormat::F32);
    // Three of the ends, and in each layer ten and three biases.
    assert_eq!(report.tensors, 3 + 2 * 13);
    let read = Checkpoint::open(written.path()).unwrap();
    assert_eq!(read.config(), checkpoint.config());
    for format in WeightFormat::ALL {
        assert_eq!(logits(&read, format), logits(&checkpoint, format));
    }
    // llama.cpp rotates the rows in the order of the checkpoint.
    let file = crate::gguf::GgufModel::open(written.path()).unwrap();
    let (_, bytes) = file.tensor("blk.1.attn_q.weight").unwrap();
    let numbers: Vec<f32> = bytes
        .chunks_exact(4)
        .map(|word| f32::from_le_bytes(word.try_into().unwrap()))
        .collect();
    let name = "model.layers.1.self_attn.q_proj.weight";
    let turned = checkpoint.weights().tensor(name, &[256, 256]).unwrap();
    let row = |all: &[f32], index: usize| all[index * 256..][..256].to_vec();
    for (place, of_model) in [(0, 0), (1, 16), (2, 1), (31, 31), (32, 32), (65, 80)] {
        assert_eq!(row(&numbers, place), row(&turned, of_model), "{place}");
    }
}

#[test]
fn multipliers_come_out() {
    let plain = ModelConfig {
        architecture: Architecture::Granite,
        windowed: Vec::new(),
        ..config()
    };
    let granite = ModelConfig {
        attention_scale: 0.1,
        embedding_scale: Some(12.0),
        residual_scale: Some(0.22),
        logit_divisor: Some(6.0),
        ..plain.clone()
    };
    let [plain, granite] = [plain, granite].map(|config| {
        let checkpoint = Checkpoint::random(config, 3).unwrap();
        let (written, _) = written(&checkpoint, FileFormat::Q8_0);
        let read = Checkpoint::open(written.path()).unwrap();
        assert_eq!(read.config(), checkpoint.config());
        let found = logits(&read, WeightFormat::Q8_0);
        assert_eq!(found, logits(&checkpoint, WeightFormat::Q8_0));
        (found, checkpoint.fingerprint().clone())
    });
    assert_ne!(plain.0, granite.0);
    assert_ne!(plain.1, granite.1);
}

#[test]
fn the_file_is_the_model_to_the_last_bit() {
    let checkpoint = Checkpoint::random(config(), 3).unwrap();
    assert_eq!(checkpoint.best_format(), WeightFormat::Q8_0);
    for (file, format, best) in [
        (FileFormat::F32, WeightFormat::F32, WeightFormat::Q8_0),
        (FileFormat::F32, WeightFormat::Q8_0, WeightFormat::Q8_0),
        (FileFormat::Q8_0, WeightFormat::Q8_0, WeightFormat::Q8_0),
        (FileFormat::Q4K, WeightFormat::Q4_K, WeightFormat::Q4_K),
    ] {
        let (written, _) = written(&checkpoint, file);
        let read = Checkpoint::open(written.path()).unwrap();
        assert_eq!(read.eos_token_ids(), [2, 5]);
        // The file's own if it is Q4_K.
        assert_eq!(read.best_format(), best, "{file}");
        let (expected, found) = (logits(&checkpoint, format), logits(&read, format));
        assert!(expected == found, "{file} as {format}");
    }
}

#[test]
fn other_formats_are_near() {
    let checkpoint = Checkpoint::random(config(), 3).unwrap();
    let expected = logits(&checkpoint, WeightFormat::F32);
    for (format, bound) in [(FileFormat::F16, 0.01), (FileFormat::Q4K, 1.0)] {
        let (file, _) = written(&checkpoint, format);
        let found = logits(&Checkpoint::open(file.path()).unwrap(), WeightFormat::F32);
        let pairs = expected.iter().zip(&found);
        let farthest = pairs.fold(0.0_f32, |far, (a, b)| far.max((a - b).abs()));
        assert!(farthest > 0.0 && farthest < bound, "{format}: {farthest}");
    }
}

#[test]
fn what_is_in_a_format_already_is_not_quantised_again() {
    let checkpoint = Checkpoint::random(config(), 4).unwrap();
    for format in FileFormat::ALL {
        let (first, _) = written(&checkpoint, format);
        let (second, _) = written(&Checkpoint::open(first.path()).unwrap(), format);
        let (first, second) = (fs::read(first).unwrap(), fs::read(second).unwrap());
        assert!(first == second, "{format}");
    }
}

#[test]
fn matrices_fall_back_where_rows_do_not_fit() {
    let checkpoint = Checkpoint::random(config(), 3).unwrap();
    let (file, report) = written(&checkpoint, FileFormat::Q4K);
    let file = crate::gguf::GgufModel::open(file.path()).unwrap();
    for (name, format) in [
        ("blk.0.attn_q.weight", "Q4_K"),
        ("token_embd.weight", "Q4_K"),
        ("blk.1.ffn_down.weight", "Q8_0"),
        ("blk.1.ffn_norm.weight", "F32"),
    ] {
        let (info, _) = file.tensor(name).unwrap();
        assert_eq!(info.format_name, format, "{name}");
    }
    assert_eq!(report.tensors, 21);
    assert_eq!(report.fallbacks, [(FileFormat::Q8_0, 2)]);
    assert_eq!(FileFormat::Q8_0.of(&[4, 33]), GgmlDType::F32);
}

#[test]
fn sizes_are_known_beforehand() {
    let checkpoint = Checkpoint::random(config(), 3).unwrap();
    let (mut totals, mut done) = (Vec::new(), Vec::new());
    let mut out = Vec::new();
    let mut progress = |at: WorkProgress<'_>| {
        totals.push(at.total_bytes);
        done.push(at.done_bytes);
        ControlFlow::Continue(())
    };
    let format = FileFormat::Q8_0;
    let report = write(&checkpoint, "test", format, &mut out, &mut progress).unwrap();
    assert_eq!(out.len() as u64, report.bytes);
    assert!(totals.iter().all(|total| *total == report.bytes));
    assert!(done.is_sorted() && done.len() == 21);
}

#[test]
fn a_full_disk_and_being_stopped_are_errors() {
    let checkpoint = Checkpoint::random(config(), 3).unwrap();
    // A slice takes as many bytes as it has, as a disk does.
    let mut room = vec![0; 100_000];
    let mut disk = room.as_mut_slice();
    let error = write(&checkpoint, "x", FileFormat::F32, &mut disk, &mut unstopped).unwrap_err();
    let GgufWriteError::Io(error) = error else {
        panic!("{error}");
    };
    assert_eq!(error.kind(), io::ErrorKind::WriteZero);
    let mut tensors = 0;
    let mut stop = |_: WorkProgress<'_>| {
        tensors += 1;
        match tensors {
            ..5 => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    };
    let out = &mut Vec::new();
    let error = write(&checkpoint, "x", FileFormat::F32, out, &mut stop);
    assert!(matches!(error, Err(GgufWriteError::Stopped)));
    assert_eq!(tensors, 5);
}

#[test]
fn a_file_of_another_model_does_not_pass_for_it() {
    let checkpoint = Checkpoint::random(config(), 3).unwrap();
    let (file, _) = written(&checkpoint, FileFormat::Q8_0);
    let other = ModelConfig {
        rms_norm_eps: 2e-5,
        ..config()
    };
    let other = Checkpoint::random(other, 3).unwrap();
    let error = verify(&other, file.path()).unwrap_err().to_string();
    let reported = "rms_norm_eps: 2e-5 became rms_norm_eps: 1e-5";
    assert!(error.ends_with(reported), "{error}");
}

#[test]
fn tokenizers_without_a_form_in_gguf_are_refused() {
    for row in [
        r#"{"model": {"type": "WordLevel"}} | its model is "WordLevel", BPE is written"#,
        r#"BPE_OF 0}, "merges": []}, "pre_tokenizer": {"type": "Whitespace"}} | words has no name in GGUF"#,
        r#"BPE_OF 96}, "merges": []}, "pre_tokenizer": {"type": "ByteLevel"}} | it has a token 96, the model only 96"#,
        r#"BPE_OF 0}, "byte_fallback": true, "merges": []}, "normalizer": {"type": "Lowercase"}} | normalizer"#,
    ] {
        let (json, reported) = row.split_once(" | ").unwrap();
        let json = json.replace("BPE_OF", r#"{"model": {"type": "BPE", "vocab": {"a":"#);
        let checkpoint = Checkpoint::random(config(), 3).unwrap();
        let checkpoint = checkpoint.with_tokenizer(json.into_bytes());
        let out = &mut Vec::new();
        let error = write(&checkpoint, "x", FileFormat::F32, out, &mut unstopped).unwrap_err();
        assert!(
            error.to_string().contains(reported) && out.is_empty(),
            "{error}"
        );
    }
}

#[cfg(feature = "embedded")]
#[test]
fn the_default_pairs_tokenizer_and_template_come_out() {
    // Which is verified; what it computes then, other tests show.
    written(&crate::embedded::target().unwrap(), FileFormat::Q8_0);
}

#[test]
fn broken_weights_are_named() {
    let files = |value: f32| {
        let json = br#"{"model_type": "llama", "vocab_size": 4, "hidden_size": 32,
            "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 1,
            "max_position_embeddings": 8, "rms_norm_eps": 1e-5, "tie_word_embeddings": true}"#;
        let bytes: Vec<u8> = (0..128).flat_map(|_| value.to_le_bytes()).collect();
        let view =
            safetensors::tensor::TensorView::new(safetensors::Dtype::F32, vec![4, 32], &bytes);
        let tensors = [("model.embed_tokens.weight", view.unwrap())];
        Checkpoint::from_bytes(CheckpointFiles {
            config: json.to_vec().into(),
            weights: safetensors::serialize(tensors, None).unwrap().into(),
            tokenizer: None,
            tokenizer_config: None,
        })
        .unwrap()
    };
    let large = "embed_tokens.weight cannot be quantised: a number is too large for";
    let (half, block) = (format!("{large} f16"), format!("{large} Q8_0"));
    let broken = "embed_tokens.weight holds numbers that are not finite";
    for (value, format, reported) in [
        (f32::NAN, FileFormat::F32, broken),
        (1e30, FileFormat::F16, &half),
        (1e30, FileFormat::Q8_0, &block),
        (1.0, FileFormat::F32, "norm.weight is missing"),
    ] {
        let out = &mut Vec::new();
        let found = write(&files(value), "x", format, out, &mut unstopped).unwrap_err();
        assert_eq!(found.to_string(), format!("tensor model.{reported}"));
    }
}
