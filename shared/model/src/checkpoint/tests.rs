use std::fs;

use safetensors::{Dtype, tensor::TensorView};

use super::*;
use crate::computation::NumberFormat;
use crate::linear::WeightFormat;

const CONFIG: &str = r#"{"model_type": "llama", "vocab_size": 33, "hidden_size": 32,
    "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
    "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "eos_token_id": 2}"#;

pub(crate) fn config() -> ModelConfig {
    ModelConfig::from_json(CONFIG.as_bytes()).unwrap()
}

fn write(folder: &Path, name: &str, bytes: &[u8]) {
    fs::write(folder.join(name), bytes).unwrap();
}

/// A safetensors file of random weights.
pub(crate) fn random_weights(config: &ModelConfig, seed: u64) -> Vec<u8> {
    let file = synthetic::file(config, seed, NumberFormat::F32, usize::MAX, |_| 1.0).unwrap();
    let views = file.iter().map(|(name, info, bytes)| {
        let view = TensorView::new(Dtype::F32, info.shape.clone(), bytes);
        (name, view.unwrap())
    });
    safetensors::serialize(views, None).unwrap()
}

/// A folder with a model, and what else is given.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "config.json", CONFIG.as_bytes());
    let weights = random_weights(&config(), 1);
    write(folder.path(), "model.safetensors", &weights);
    for (name, text) in files {
        write(folder.path(), name, text.as_bytes());
    }
    folder
}

#[test]
fn a_folder_and_its_files_in_memory_are_the_same_model() {
    let folder = folder(&[("tokenizer.json", "{}")]);
    let opened = Checkpoint::open(folder.path()).unwrap();
    let in_memory = Checkpoint::from_bytes(CheckpointFiles {
        config: CONFIG.as_bytes().into(),
        weights: random_weights(&config(), 1).into(),
        tokenizer: None,
        tokenizer_config: None,
    })
    .unwrap();
    assert_eq!(opened.config(), in_memory.config());
    for format in WeightFormat::ALL {
        assert_eq!(opened.numerics(format), in_memory.numerics(format));
    }
    assert_eq!(opened.tokenizer_json(), Some(&b"{}"[..]));
    let tokenizer = in_memory.tokenizer();
    assert!(matches!(tokenizer, Err(TokenizerError::Missing)));
}

#[test]
fn numerics_tell_weights_formats_and_constants_apart() {
    let base = Checkpoint::random(config(), 1).unwrap();
    let other = Checkpoint::random(config(), 2).unwrap();
    let mut constants = config();
    constants.rms_norm_eps = 2e-5;
    let constants = Checkpoint::random(constants, 1).unwrap();
    let fingerprints = [
        base.numerics(WeightFormat::Q8_0),
        base.numerics(WeightFormat::F32),
        other.numerics(WeightFormat::Q8_0),
        constants.numerics(WeightFormat::Q8_0),
    ];
    for (i, fingerprint) in fingerprints.iter().enumerate() {
        assert_eq!(fingerprint.len(), 16);
        assert!(!fingerprints[..i].contains(fingerprint));
    }
    let again = Checkpoint::random(config(), 1).unwrap();
    assert_eq!(again.numerics(WeightFormat::Q8_0), fingerprints[0]);
}

#[test]
fn chat_templates_come_in_three_forms() {
    let one = ("tokenizer_config.json", r#"{"chat_template": "a"}"#);
    let named = r#"{"chat_template": [{"name": "tool", "template": "t"},
        {"name": "default", "template": "d"}]}"#;
    for (files, expected) in [
        (&[one][..], Some("a")),
        (&[("tokenizer_config.json", named)], Some("d")),
        (&[("tokenizer_config.json", "{}")], None),
        (&[one, ("chat_template.jinja", "j")], Some("j")),
        (&[], None),
    ] {
        let checkpoint = Checkpoint::open(folder(files).path()).unwrap();
        assert_eq!(
            checkpoint.text.chat_template.as_deref(),
            expected,
            "{files:?}"
        );
    }
}

#[test]
fn a_tokenizer_may_lie_beside_the_model() {
    let pair = tempfile::tempdir().unwrap();
    let model = folder(&[]);
    fs::rename(model.path(), pair.path().join("draft")).unwrap();
    fs::create_dir(pair.path().join("tokenizer")).unwrap();
    write(&pair.path().join("tokenizer"), "tokenizer.json", b"shared");
    let checkpoint = Checkpoint::open(&pair.path().join("draft")).unwrap();
    assert_eq!(checkpoint.tokenizer_json(), Some(&b"shared"[..]));
}

#[test]
fn what_is_missing_is_named() {
    let empty = tempfile::tempdir().unwrap();
    let error = Checkpoint::open(empty.path()).err().unwrap().to_string();
    let said = format!(
        "{} has no config.json; a model's folder holds",
        empty.path().display()
    );
    assert!(error.starts_with(&said), "{error}");
    let folder = folder(&[("tokenizer_config.json", "{")]);
    let error = Checkpoint::open(folder.path()).err().unwrap().to_string();
    assert_eq!(error, "tokenizer_config.json cannot be read");
}

#[cfg(feature = "embedded")]
#[test]
fn the_embedded_target_translates() {
    use crate::{embedded, tests::extend};
    use speculation::ports::{KvCache, LanguageModel};

    let target = embedded::target().unwrap();
    let tokenizer = target.tokenizer().unwrap();
    assert!(
        target
            .text
            .chat_template
            .as_deref()
            .unwrap()
            .contains("Question: ")
    );
    let prompt = "Question: Translate to German: The dog sees the cat.\nAnswer:";
    let mut tokens = tokenizer.encode(prompt, true).unwrap().get_ids().to_vec();
    let prompt_len = tokens.len();
    let mut model = target.load(WeightFormat::Q8_0).unwrap();
    let mut cache = model.new_cache();
    for _ in 0..32 {
        let (held, len) = (cache.len(), tokens.len());
        let (logits, _) = extend(&mut model, &mut cache, &tokens[held..]);
        let last = &logits[logits.len() - target.config().vocab_size..];
        let best = (0..last.len()).max_by(|&a, &b| last[a].total_cmp(&last[b]));
        tokens.push(best.unwrap() as u32);
        if target.eos_token_ids().contains(&tokens[len]) {
            break;
        }
    }
    let answer = tokenizer.decode(&tokens[prompt_len..], true).unwrap();
    assert_eq!(answer, " Der Hund sieht die Katze.");
}

/// The weights of [`folder`] with another tensor, of 32 numbers.
fn with_tensor(name: &str) -> Vec<u8> {
    use safetensors::SafeTensors;

    let bytes = random_weights(&config(), 1);
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let mut tensors = tensors.tensors();
    let data: Vec<u8> = 1_f32.to_le_bytes().repeat(32);
    let extra = TensorView::new(Dtype::F32, vec![32], &data).unwrap();
    tensors.push((name.to_owned(), extra));
    safetensors::serialize(tensors, None).unwrap()
}

#[test]
fn what_would_make_a_layer_another_is_refused_by_its_name() {
    let load = |name: &str| {
        let folder = folder(&[]);
        write(folder.path(), "model.safetensors", &with_tensor(name));
        let checkpoint = Checkpoint::open(folder.path()).unwrap();
        checkpoint.load(WeightFormat::F32).map(drop)
    };
    for name in [
        "model.layers.0.self_attn.q_proj.bias",
        "model.layers.0.self_attn.q_norm.weight",
        "model.layers.0.mlp.up_proj.lora_A.weight",
    ] {
        let error = load(name).expect_err("another model").to_string();
        assert!(error.contains(name), "{error}");
    }
    for (name, is_told) in [
        ("model.layers.0.self_attn.rotary_emb.inv_freq", false),
        ("model.layers.1.self_attn.q_proj.bias", true),
        ("model.layers.0.self_attn.k_scale", true),
        ("vision.tower.weight", true),
    ] {
        load(name).expect(name);
        let weights = Weights::from_bytes(with_tensor(name)).unwrap();
        let told = unread::find(&config(), &weights).1;
        assert_eq!(told.contains(&name), is_told, "{name}");
    }
}

/// As Qwen's, under the name of Llama.
#[test]
fn biases_may_be_before_attention_alone() {
    let config = CONFIG.replace('{', r#"{"attention_bias": true, "#);
    let all = random_weights(&ModelConfig::from_json(config.as_bytes()).unwrap(), 1);
    let tensors = safetensors::SafeTensors::deserialize(&all).unwrap();
    let mut tensors = tensors.tensors();
    let open = |weights: &[u8]| {
        let folder = folder(&[]);
        write(folder.path(), "config.json", config.as_bytes());
        write(folder.path(), "model.safetensors", weights);
        Checkpoint::open(folder.path()).unwrap()
    };
    assert!(open(&all).config().output_bias);
    tensors.retain(|(name, _)| name != "model.layers.0.self_attn.o_proj.bias");
    let checkpoint = open(&safetensors::serialize(tensors, None).unwrap());
    assert!(checkpoint.config().qkv_bias && !checkpoint.config().output_bias);
    checkpoint.load(WeightFormat::F32).map(drop).unwrap();
}

#[test]
fn the_end_of_turns_may_stand_in_the_tokenizers_config_alone() {
    let tokenizer = r#"{"version": "1.0", "added_tokens": [{"id": 5, "content": "<|im_end|>", "special": true,
        "single_word": false, "lstrip": false, "rstrip": false, "normalized": false}],
        "model": {"type": "WordLevel", "unk_token": "a", "vocab": {"a": 0}}}"#;
    for (eos, expected) in [("<|im_end|>", &[2, 5][..]), ("</s>", &[2])] {
        let config = format!(r#"{{"eos_token": "{eos}"}}"#);
        let files = [
            ("tokenizer.json", tokenizer),
            ("tokenizer_config.json", &config),
        ];
        let opened = Checkpoint::open(folder(&files).path()).unwrap();
        assert_eq!(opened.eos_token_ids(), expected, "{eos}");
    }
}

#[test]
fn a_tokenizer_of_another_kind_alone_is_named_with_what_to_do() {
    for (file, parts) in [
        (
            "tokenizer.model",
            &["tokenizer.model", "save_pretrained"][..],
        ),
        ("other", &["no tokenizer.json"]),
    ] {
        let opened = Checkpoint::open(folder(&[(file, "x")]).path()).unwrap();
        let error = opened.tokenizer().expect_err("none").to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
}

#[test]
fn what_is_in_a_files_place_is_said() {
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n";
    for (text, part) in [
        (pointer, "git lfs pull"),
        ("", "empty"),
        ("<html>", "HTML page"),
    ] {
        for name in ["config.json", "tokenizer.json", "model.safetensors"] {
            let error = Checkpoint::open(folder(&[(name, text)]).path())
                .map(drop)
                .expect_err(name);
            let source = std::error::Error::source(&error).map(ToString::to_string);
            let said = format!("{error}: {source:?}");
            assert!(said.contains(name) && said.contains(part), "{said}");
        }
        let folder = folder(&[("model.gguf", text)]);
        let error = Checkpoint::open(&folder.path().join("model.gguf")).map(drop);
        let error = error.expect_err("no GGUF");
        let said = std::error::Error::source(&error).map(ToString::to_string);
        assert!(
            said.as_ref().is_some_and(|said| said.contains(part)),
            "{said:?}"
        );
    }
}
