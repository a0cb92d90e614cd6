//! Whether a file that was written is the model it was made from.

use std::path::Path;

use super::error::GgufWriteError;
use crate::{checkpoint::Checkpoint, config::ModelConfig, tokenizer::vocabulary_fingerprint};

/// Texts that tokenizers are compared on: words, digits, punctuation, scripts, white space.
const TEXTS: [&str; 8] = [
    "",
    "Hello, world! It's 1234567 o'clock, isn't it?",
    "  two  spaces\n\n\tand a tab\r\nend ",
    "def f(x):\n    return {\"a\": [x, 3.14e-10]}  # done",
    "Der Hund sieht die Kätzchen über die Straße.",
    "日本語とहिन्दी, русский и العربية: ½ ² ①",
    "👩‍👩‍👧‍👦 naïve café e\u{301}\u{200b}",
    "<s>special</s> <|im_start|>user\n<pad>",
];

/// Opens the file at `path` and compares config, end tokens, tokenizer and chat template with those of
/// `checkpoint`: what the format cannot express comes out here.
///
/// # Errors
/// Names what differs.
pub fn verify(checkpoint: &Checkpoint, path: &Path) -> Result<(), GgufWriteError> {
    let written = Checkpoint::open(path);
    let written = written.map_err(|error| GgufWriteError::Unreadable(Box::new(error)))?;
    let differs =
        |what: &'static str, difference: String| Err(GgufWriteError::Differs { what, difference });
    // End tokens may stand in another file of the checkpoint.
    let expected = ModelConfig {
        eos_token_ids: checkpoint.eos_token_ids(),
        bos_token_id: written.config().bos_token_id,
        ..checkpoint.config().clone()
    };
    if let Some(difference) = difference(&expected, written.config()) {
        return differs("config", difference);
    }
    if checkpoint.text.chat_template != written.text.chat_template {
        return differs("chat template", "it did not come out the same".to_owned());
    }
    if checkpoint.tokenizer_json().is_none() {
        return Ok(());
    }
    let (before, after) = (checkpoint.tokenizer()?, written.tokenizer()?);
    if vocabulary_fingerprint(&before) != vocabulary_fingerprint(&after) {
        return differs(
            "vocabulary",
            "tokens or their ids are not the same".to_owned(),
        );
    }
    for text in TEXTS {
        let ids = |tokenizer: &tokenizers::Tokenizer| {
            let encoding = tokenizer.encode(text, true);
            encoding.map(|encoding| encoding.get_ids().to_vec()).ok()
        };
        if ids(&before) != ids(&after) {
            return differs("tokenizer", format!("it cuts {text:?} otherwise"));
        }
    }
    Ok(())
}

/// The first fields that are not the same, in words.
fn difference(expected: &ModelConfig, found: &ModelConfig) -> Option<String> {
    let lines = |config: &ModelConfig| format!("{config:#?}");
    let (expected, found) = (lines(expected), lines(found));
    let pairs = expected.lines().zip(found.lines());
    let (expected, found) = pairs.into_iter().find(|(a, b)| a != b)?;
    let line = |text: &str| text.trim().trim_end_matches(',').to_owned();
    Some(format!("{} became {}", line(expected), line(found)))
}
