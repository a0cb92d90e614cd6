//! Which files of a repository a model needs.

use std::collections::BTreeSet;
use std::path::Path;

use super::HubError;
use crate::gguf::part_name;
use crate::reference::{check_path, has_ending};
use crate::weights::shards::named_in;
pub(super) use crate::weights::shards::{INDEX, SINGLE};

pub(super) const CONFIG: &str = "config.json";

/// Small files that are taken where there are any.
const OPTIONAL: [&str; 4] = [
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
];

/// The file by which the weights among these files are found, the same that opening their folder will choose:
/// they are in it, or in the shards that it names.
pub(super) fn weights(names: &BTreeSet<String>) -> Option<&'static str> {
    [SINGLE, INDEX]
        .into_iter()
        .find(|&name| names.contains(name))
}

/// Everything but the weights: config, tokenizer, chat template, and acceptance heads beside them.
pub(super) fn small_files(names: &BTreeSet<String>) -> Vec<String> {
    let listed = std::iter::once(CONFIG).chain(OPTIONAL);
    let listed = listed
        .filter(|name| names.contains(*name))
        .map(str::to_owned);
    let heads = names.iter().filter(|name| is_head(name)).cloned();
    listed.chain(heads).collect()
}

fn is_head(name: &str) -> bool {
    let stem = name.strip_suffix(".safetensors");
    stem.is_some_and(|stem| stem.starts_with("head-")) && check_plain(name).is_ok()
}

/// Checks that a name is that of a file beside the others.
fn check_plain(name: &str) -> Result<(), &'static str> {
    check_path(name)?;
    let plain = !name.contains('/');
    plain.then_some(()).ok_or("is not a plain file name")
}

/// The shards that the index in the file `index` names, each once; `origin` says whose index it is.
///
/// # Errors
/// If it is no index, or a shard is not a plain file name.
pub(super) fn shards(index: &Path, origin: &str) -> Result<Vec<String>, HubError> {
    let json = std::fs::read(index).map_err(HubError::io(index))?;
    let shards =
        named_in(&json).map_err(|error| HubError::answer(origin, format!("{INDEX}: {error}")))?;
    for shard in &shards {
        check_plain(shard).map_err(|problem| HubError::UnsafeName {
            origin: format!("{INDEX} of {origin}"),
            name: shard.clone(),
            problem,
        })?;
    }
    Ok(shards.into_iter().collect())
}

/// Says what there is instead of a checkpoint.
pub(super) fn instead(names: &BTreeSet<String>) -> String {
    let gguf = names.iter().filter(|name| has_ending(name, "gguf"));
    let gguf = part_name::models(gguf.cloned().collect());
    if let [first, ..] = gguf.as_slice() {
        let number = gguf.len();
        return format!(": it has {number} models in GGUF files, choose one, as in :{first}");
    }
    if names.iter().any(|name| name.starts_with("pytorch_model")) {
        return ": its weights are PyTorch's, which are not read; look for a revision with safetensors"
            .to_owned();
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn only_the_files_a_model_needs_are_chosen() {
        let all = names(&[
            ".gitattributes",
            "README.md",
            "chat_template.jinja",
            "config.json",
            "generation_config.json",
            "head-coupled.safetensors",
            "model.safetensors",
            "onnx/head-x.safetensors",
            "pytorch_model.bin",
            "tokenizer.json",
            "tokenizer.model",
            "tokenizer_config.json",
        ]);
        let expected = [
            "config.json",
            "generation_config.json",
            "tokenizer.json",
            "tokenizer_config.json",
            "chat_template.jinja",
            "head-coupled.safetensors",
        ];
        assert_eq!(small_files(&all), expected);
        assert_eq!(weights(&all), Some(SINGLE));
        assert_eq!(weights(&names(&[INDEX])), Some(INDEX));
        assert_eq!(weights(&names(&["pytorch_model.bin"])), None);
    }

    #[test]
    fn an_index_that_names_files_elsewhere_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let index = folder.path().join(INDEX);
        let read = |map: &str| {
            std::fs::write(&index, format!(r#"{{"weight_map": {map}}}"#)).expect("written");
            shards(&index, "org/name")
        };
        let good = r#"{"a": "m-2.safetensors", "b": "m-1.safetensors", "c": "m-2.safetensors"}"#;
        let good = read(good).expect("shards");
        assert_eq!(good, ["m-1.safetensors", "m-2.safetensors"]);
        for shard in ["/etc/passwd", "../../x", "a/b.safetensors", "", "a\\\\b"] {
            let error = read(&format!(r#"{{"a": "{shard}"}}"#)).expect_err(shard);
            let is_unsafe = matches!(error, HubError::UnsafeName { .. });
            assert!(is_unsafe, "{shard}: {error}");
        }
    }
}
