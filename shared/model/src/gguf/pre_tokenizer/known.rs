//! The ways of cutting, by name.

use super::{PreTokenizer, Step};

const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const DEEPSEEK3: &str = r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"##;
const GPT4O: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// All that are known. The first that cuts as a tokenizer does names it when it is written.
pub(super) const KNOWN: [PreTokenizer; 13] = [
    PreTokenizer {
        names: &[
            "llama-bpe",
            "llama3",
            "llama-v3",
            "falcon3",
            "pixtral",
            "lfm2",
        ],
        steps: &[Step::Split(LLAMA3)],
        nfc: false,
        ignore_merges: true,
        add_bos: true,
    },
    PreTokenizer {
        names: &["smaug-bpe", "dbrx", "chatglm-bpe"],
        steps: &[Step::Split(LLAMA3)],
        nfc: false,
        ignore_merges: false,
        add_bos: false,
    },
    PreTokenizer {
        names: &["qwen2", "deepseek-r1-qwen"],
        steps: &[Step::Split(QWEN2)],
        nfc: true,
        ignore_merges: false,
        add_bos: false,
    },
    PreTokenizer {
        names: &["tekken"],
        steps: &[Step::Split(TEKKEN)],
        nfc: false,
        ignore_merges: true,
        add_bos: true,
    },
    PreTokenizer {
        names: &[
            "smollm",
            "starcoder",
            "refact",
            "codeshell",
            "command-r",
            "exaone",
            "minerva-7b",
        ],
        steps: &[Step::Digits, Step::Gpt2],
        nfc: false,
        ignore_merges: false,
        add_bos: false,
    },
    PreTokenizer {
        names: &["gpt-2", "gpt2", "phi-2", "mpt", "olmo", "jais", "trillion"],
        steps: &[Step::Gpt2],
        nfc: false,
        ignore_merges: false,
        add_bos: false,
    },
    PreTokenizer {
        names: &["stablelm2", "hunyuan", "megrez", "grok-2"],
        steps: &[Step::Split(QWEN2)],
        nfc: false,
        ignore_merges: false,
        add_bos: false,
    },
    PreTokenizer {
        names: &["glm4", "glm5"],
        steps: &[Step::Split(LLAMA3)],
        nfc: false,
        ignore_merges: true,
        add_bos: false,
    },
    PreTokenizer {
        names: &["gpt-4o", "llama4"],
        steps: &[Step::Split(GPT4O)],
        nfc: false,
        ignore_merges: false,
        add_bos: false,
    },
    PreTokenizer {
        names: &["deepseek-v3", "hunyuan-dense"],
        steps: &[
            Step::Split(r"\p{N}{1,3}"),
            Step::Split("[一-龥぀-ゟ゠-ヿ]+"),
            Step::Split(DEEPSEEK3),
        ],
        nfc: false,
        ignore_merges: false,
        add_bos: false,
    },
    PreTokenizer {
        names: &["deepseek-coder"],
        steps: &[
            Step::Split(r"[\r\n]"),
            Step::Split(r"\s?\p{L}+"),
            Step::Split(r"\s?\p{P}+"),
            Step::Split("[一-龥ࠀ-一가-퟿]+"),
            Step::Digits,
        ],
        nfc: false,
        ignore_merges: false,
        add_bos: false,
    },
    PreTokenizer {
        names: &["viking"],
        steps: &[Step::Split(r" ?[^(\s|.,!?…。，、।۔،)]+"), Step::Digits],
        nfc: false,
        ignore_merges: false,
        add_bos: false,
    },
    // What llama.cpp falls back to.
    PreTokenizer {
        names: &["default"],
        steps: &[
            Step::Split(r"[\p{P}\$\+<=>\^~\|]+"),
            Step::Gpt2,
            Step::Split(r"\p{N}+"),
            Step::Split("[0-9][0-9][0-9]"),
        ],
        nfc: false,
        ignore_merges: false,
        add_bos: false,
    },
];
