//! How text is cut into words before byte-level BPE: `tokenizer.ggml.pre` names one of a list.

mod known;

use serde_json::{Value as Json, json};

use self::known::KNOWN;
use super::GgufError;

/// One step of cutting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Every digit alone.
    Digits,
    /// What the pattern matches is a word, and so is what stands between.
    Split(&'static str),
    /// The words of GPT-2.
    Gpt2,
}

/// A way of cutting, and what goes with it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PreTokenizer {
    /// Its names; it is written under the first.
    names: &'static [&'static str],
    steps: &'static [Step],
    /// Whether text is brought to the normal form C before.
    pub(crate) nfc: bool,
    /// Whether a word that is a token is not built up by merges.
    pub(crate) ignore_merges: bool,
    /// Whether llama.cpp begins texts with the token for it where the file does not say.
    pub(crate) add_bos: bool,
}

/// How some files spell the contractions of the patterns above.
const CONTRACTIONS: &str = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])";
const IGNORING_CASE: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)";

impl PreTokenizer {
    /// The one of that name; files without a name mean `default`.
    pub(crate) fn named(name: Option<&str>) -> Result<&'static Self, GgufError> {
        let name = name.unwrap_or("default");
        let found = KNOWN.iter().find(|known| known.names.contains(&name));
        found.ok_or_else(|| GgufError::PreTokenizer {
            found: name.to_owned(),
            supported: KNOWN.map(|known| known.names.join(", ")).join(", "),
        })
    }

    pub(crate) fn name(&self) -> &'static str {
        self.names[0]
    }

    /// The one that cuts as `tokenizer`, the parsed `tokenizer.json` of a byte-level BPE, does.
    pub(crate) fn of(tokenizer: &Json) -> Option<&'static Self> {
        let nfc = match tokenizer["normalizer"]["type"].as_str() {
            None => false,
            Some("NFC") => true,
            Some(_) => return None,
        };
        let ignore_merges = tokenizer["model"]["ignore_merges"] == true;
        let pre = &tokenizer["pre_tokenizer"];
        let parts = match pre["pretokenizers"].as_array() {
            Some(parts) if pre["type"] == "Sequence" => parts.as_slice(),
            _ => std::slice::from_ref(pre),
        };
        KNOWN.iter().find(|known| {
            (known.nfc, known.ignore_merges) == (nfc, ignore_merges) && known.cuts_as(parts)
        })
    }

    fn cuts_as(&self, parts: &[Json]) -> bool {
        // The last part maps bytes to characters, and cuts as GPT-2 did unless told not to.
        let Some((last, parts)) = parts.split_last() else {
            return false;
        };
        if last["type"] != "ByteLevel" || last["add_prefix_space"] == true {
            return false;
        }
        let mut steps = parts.iter().map(Some).collect::<Vec<_>>();
        if last["use_regex"] != false {
            steps.push(None);
        }
        steps.len() == self.steps.len()
            && steps
                .iter()
                .zip(self.steps)
                .all(|(part, step)| match (step, part) {
                    (Step::Gpt2, None) => true,
                    (Step::Digits, Some(part)) => {
                        part["type"] == "Digits" && part["individual_digits"] == true
                    }
                    (Step::Split(pattern), Some(part)) => {
                        let found = part["pattern"]["Regex"].as_str().unwrap_or_default();
                        part["type"] == "Split"
                            && part["behavior"] == "Isolated"
                            && part["invert"] != true
                            && found.replace(CONTRACTIONS, IGNORING_CASE) == *pattern
                    }
                    _ => false,
                })
    }

    /// `normalizer` and `pre_tokenizer` of a `tokenizer.json`.
    pub(crate) fn json(&self) -> (Json, Json) {
        let byte_level = |use_regex: bool| {
            json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
                "use_regex": use_regex})
        };
        let last_is_gpt2 = self.steps.last() == Some(&Step::Gpt2);
        let mut parts: Vec<Json> = Vec::new();
        for step in self.steps {
            parts.push(match step {
                Step::Digits => json!({"type": "Digits", "individual_digits": true}),
                Step::Split(pattern) => split(pattern),
                Step::Gpt2 if last_is_gpt2 => continue,
                Step::Gpt2 => split(GPT2),
            });
        }
        parts.push(byte_level(last_is_gpt2));
        let normalizer = if self.nfc {
            json!({"type": "NFC"})
        } else {
            Json::Null
        };
        (
            normalizer,
            json!({"type": "Sequence", "pretokenizers": parts}),
        )
    }
}

/// The words of GPT-2, where more cutting follows.
const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

fn split(pattern: &str) -> Json {
    json!({"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated",
        "invert": false})
}
