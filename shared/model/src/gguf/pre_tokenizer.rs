//! How text is cut into words before byte-level BPE: `tokenizer.ggml.pre` names one of a list.

use serde_json::{Value as Json, json};

use super::GgufError;

/// One step of cutting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CutStep {
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
    steps: &'static [CutStep],
    /// Whether text is brought to the normal form C before.
    pub(crate) nfc: bool,
    /// Whether a word that is a token is not built up by merges.
    pub(crate) ignore_merges: bool,
    /// Whether llama.cpp begins texts with the token for it where the file does not say.
    pub(crate) add_bos: bool,
}

/// A way of cutting by `steps`, with nothing that goes with it.
const fn cuts(names: &'static [&'static str], steps: &'static [CutStep]) -> PreTokenizer {
    PreTokenizer {
        names,
        steps,
        nfc: false,
        ignore_merges: false,
        add_bos: false,
    }
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
                    (CutStep::Gpt2, None) => true,
                    (CutStep::Digits, Some(part)) => {
                        part["type"] == "Digits" && part["individual_digits"] == true
                    }
                    (CutStep::Split(pattern), Some(part)) => {
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
        let last_is_gpt2 = self.steps.last() == Some(&CutStep::Gpt2);
        let mut parts: Vec<Json> = Vec::new();
        for step in self.steps {
            parts.push(match step {
                CutStep::Digits => json!({"type": "Digits", "individual_digits": true}),
                CutStep::Split(pattern) => split(pattern),
                CutStep::Gpt2 if last_is_gpt2 => continue,
                CutStep::Gpt2 => split(GPT2),
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

const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const DEEPSEEK3: &str = r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"##;
const GPT4O: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// All that are known, by name. The first that cuts as a tokenizer does names it when it is written.
const KNOWN: [PreTokenizer; 13] = [
    PreTokenizer {
        ignore_merges: true,
        add_bos: true,
        ..cuts(
            &[
                "llama-bpe",
                "llama3",
                "llama-v3",
                "falcon3",
                "pixtral",
                "lfm2",
            ],
            &[CutStep::Split(LLAMA3)],
        )
    },
    cuts(
        &["smaug-bpe", "dbrx", "chatglm-bpe"],
        &[CutStep::Split(LLAMA3)],
    ),
    PreTokenizer {
        nfc: true,
        ..cuts(&["qwen2", "deepseek-r1-qwen"], &[CutStep::Split(QWEN2)])
    },
    PreTokenizer {
        ignore_merges: true,
        add_bos: true,
        ..cuts(&["tekken"], &[CutStep::Split(TEKKEN)])
    },
    cuts(
        &[
            "smollm",
            "starcoder",
            "refact",
            "codeshell",
            "command-r",
            "exaone",
            "minerva-7b",
        ],
        &[CutStep::Digits, CutStep::Gpt2],
    ),
    cuts(
        &["gpt-2", "gpt2", "phi-2", "mpt", "olmo", "jais", "trillion"],
        &[CutStep::Gpt2],
    ),
    cuts(
        &["stablelm2", "hunyuan", "megrez", "grok-2"],
        &[CutStep::Split(QWEN2)],
    ),
    PreTokenizer {
        ignore_merges: true,
        ..cuts(&["glm4", "glm5"], &[CutStep::Split(LLAMA3)])
    },
    cuts(&["gpt-4o", "llama4"], &[CutStep::Split(GPT4O)]),
    cuts(
        &["deepseek-v3", "hunyuan-dense"],
        &[
            CutStep::Split(r"\p{N}{1,3}"),
            CutStep::Split("[一-龥぀-ゟ゠-ヿ]+"),
            CutStep::Split(DEEPSEEK3),
        ],
    ),
    cuts(
        &["deepseek-coder"],
        &[
            CutStep::Split(r"[\r\n]"),
            CutStep::Split(r"\s?\p{L}+"),
            CutStep::Split(r"\s?\p{P}+"),
            CutStep::Split("[一-龥ࠀ-一가-퟿]+"),
            CutStep::Digits,
        ],
    ),
    cuts(
        &["viking"],
        &[
            CutStep::Split(r" ?[^(\s|.,!?…。，、।۔،)]+"),
            CutStep::Digits,
        ],
    ),
    // What llama.cpp falls back to.
    cuts(
        &["default"],
        &[
            CutStep::Split(r"[\p{P}\$\+<=>\^~\|]+"),
            CutStep::Gpt2,
            CutStep::Split(r"\p{N}+"),
            CutStep::Split("[0-9][0-9][0-9]"),
        ],
    ),
];
