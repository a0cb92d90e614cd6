//! Analyses the steps that a tokenizer runs before its model, at the places where a text could be cut.

use regex_syntax::hir::ClassUnicode;
use serde_json::Value;

use super::expression::Expression;
use super::{SPACE, letters};

/// The expression of GPT-2's pre-tokenizer, which the tokenizers crate builds in.
const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// The mark that SentencePiece replaces a space with.
pub(super) const MARK: char = '▁';

/// Characters before which a text may be cut, if letters other than those of ASCII count as letters too.
const RIGHT: [char; 4] = [SPACE, '\n', '。', '、'];

/// What the steps do at a place between a letter and one of `right`.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "what the steps have done, each by itself"
)]
pub(super) struct CutContext {
    /// Whether only letters of ASCII count as letters.
    pub(super) is_ascii: bool,
    /// The characters before which a text may be cut.
    pub(super) right: Vec<char>,
    /// The character that a space has become.
    pub(super) space: char,
    /// Whether a mark is prepended to each text, as if it began with a space.
    pub(super) prepends: bool,
    /// Whether the text is split at such a place before the model runs.
    pub(super) is_split: bool,
    /// Whether characters have been replaced by those that stand for their bytes.
    is_bytes: bool,
}

impl CutContext {
    /// Analyses `normalizer` and `pre_tokenizer`, in the form that they have in `tokenizer.json`; `None` if one of
    /// their steps is not supported.
    pub(super) fn read(normalizer: &Value, pre_tokenizer: &Value) -> Option<Self> {
        let mut around = Self {
            is_ascii: false,
            right: RIGHT.to_vec(),
            space: SPACE,
            prepends: false,
            is_split: false,
            is_bytes: false,
        };
        for step in flat(normalizer, "normalizers") {
            around.normalize(step)?;
        }
        if around.is_ascii || around.prepends {
            around.right = vec![SPACE];
        }
        for step in flat(pre_tokenizer, "pretokenizers") {
            around.pre_tokenize(step)?;
        }
        (!around.right.is_empty()).then_some(around)
    }

    fn normalize(&mut self, step: &Value) -> Option<()> {
        match step["type"].as_str()? {
            // Around a letter or a space they change only combining marks, and no place has one beside it.
            "NFC" | "NFKC" => {}
            // They make letters of other than ASCII into letters with combining marks.
            "NFD" | "NFKD" | "Lowercase" | "StripAccents" | "Nmt" | "BertNormalizer"
            | "Precompiled" => self.is_ascii = true,
            "Prepend" if step["prepend"] == MARK.to_string() => self.prepends = true,
            "Replace" => {
                let pattern = step["pattern"]["String"].as_str()?;
                if pattern == " " && step["content"] == MARK.to_string() {
                    self.space = MARK;
                } else if pattern.is_empty()
                    || pattern
                        .contains(|c: char| c.is_alphabetic() || c == MARK || RIGHT.contains(&c))
                {
                    return None;
                }
            }
            _ => return None,
        }
        Some(())
    }

    fn pre_tokenize(&mut self, step: &Value) -> Option<()> {
        match step["type"].as_str()? {
            "ByteLevel" => {
                if step["add_prefix_space"] == true {
                    self.only_spaces()?;
                }
                if step["use_regex"] == true {
                    self.split(GPT2)?;
                }
                self.is_bytes = true;
            }
            "Split" => {
                let pattern = &step["pattern"];
                let literal = pattern["String"].as_str();
                // All spaces have been replaced, so it matches nothing.
                let is_idle = literal.is_some_and(|it| it.contains(SPACE) && self.space != SPACE);
                let behavior = step["behavior"].as_str()?;
                if !is_idle && !self.is_split {
                    if !["Isolated", "Removed"].contains(&behavior) {
                        return None;
                    }
                    let expression = literal.map(regex_syntax::escape);
                    let expression = expression.or(pattern["Regex"].as_str().map(str::to_owned));
                    self.split(&expression?)?;
                }
            }
            // They split at single characters, none of which is a letter or a space.
            "Digits" => {}
            "Punctuation" if ["Isolated", "Removed"].contains(&step["behavior"].as_str()?) => {}
            "Whitespace" | "WhitespaceSplit" | "BertPreTokenizer" => {
                if !self.is_split && (self.is_bytes || self.space != SPACE) {
                    return None;
                }
                self.right.retain(|c| c.is_whitespace());
                self.is_split = true;
            }
            "Metaspace" => {
                self.only_spaces()?;
                if self.is_bytes && !self.is_split {
                    return None;
                }
                if step["split"] == true {
                    self.is_split = true;
                } else if step["replacement"] == MARK.to_string() {
                    self.space = MARK;
                } else if !self.is_split {
                    return None;
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// Allows cuts only before spaces, because the step prepends a space to a piece that begins with anything else.
    fn only_spaces(&mut self) -> Option<()> {
        self.right.retain(|&c| c == SPACE);
        (self.space == SPACE).then_some(())
    }

    /// Runs a step that splits by `expression`.
    fn split(&mut self, expression: &str) -> Option<()> {
        if self.is_split {
            return Some(());
        }
        if self.is_bytes {
            return None;
        }
        let expression = Expression::parse(expression)?;
        let left: ClassUnicode = letters(self.is_ascii);
        let space = self.space;
        self.right.retain(|&c| {
            let c = if c == SPACE { space } else { c };
            expression.parts(&left, c)
        });
        self.is_split = expression.covers(&left);
        (!self.right.is_empty()).then_some(())
    }
}

/// Returns the steps of a sequence, and of the sequences in it, in order; `steps` is the field that lists them.
fn flat<'a>(step: &'a Value, steps: &str) -> Vec<&'a Value> {
    match step {
        Value::Null => Vec::new(),
        step => match step[steps].as_array() {
            Some(parts) => parts.iter().flat_map(|part| flat(part, steps)).collect(),
            None => vec![step],
        },
    }
}
