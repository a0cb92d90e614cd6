//! The forms in which families of models write their calls.
//!
//! A form is what a family learned in its training, and its chat template shows it: the calls of earlier turns stand there
//! as the model writes those to come. So the form is found by signs in the template. Which families have which form,
//! `docs/decisions/0042-calls-read-from-text.md` lists.

/// How calls are written.
#[derive(Debug, PartialEq, Eq)]
pub struct CallForm {
    /// Its name, in the configuration and in answers.
    pub name: &'static str,
    /// One of these texts stands in the templates of this form.
    signs: &'static [&'static str],
    /// What begins a call, or a list of calls.
    pub(crate) opens: &'static [&'static str],
    /// What ends it; none where it ends with the output, or with the next one.
    pub(crate) closes: &'static [&'static str],
    /// Marks around calls that say nothing.
    pub(crate) around: &'static [&'static str],
    pub(crate) layout: CallLayout,
}

/// What stands between the marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallLayout {
    /// One JSON object with the name and, under this key, the arguments; or several, as a list or one after the other.
    Json {
        arguments: &'static str,
        /// Whether a list is written even of one call.
        list: bool,
        /// Whether a call may begin without a mark, where the output begins.
        bare: bool,
    },
    /// The name, then one of these marks, then the arguments as JSON.
    Named { separators: &'static [&'static str] },
    /// Elements of Qwen3-Coder: `<function=NAME>` and in it `<parameter=KEY>`.
    Xml,
    /// OpenAI's channels: a header with the recipient, and the arguments as the message's text.
    Channels,
}

const JSON: CallLayout = CallLayout::Json {
    arguments: "arguments",
    list: false,
    bare: false,
};

const LIST: CallLayout = CallLayout::Json {
    arguments: "arguments",
    list: true,
    bare: false,
};

/// Marks of OpenAI's channels.
pub(crate) mod channels {
    pub(crate) const START: &str = "<|start|>";
    pub(crate) const CHANNEL: &str = "<|channel|>";
    pub(crate) const CONSTRAIN: &str = "<|constrain|>";
    pub(crate) const MESSAGE: &str = "<|message|>";
    pub(crate) const END: &str = "<|end|>";
    pub(crate) const CALL: &str = "<|call|>";
    pub(crate) const RETURN: &str = "<|return|>";
    /// What stands before the name of a tool in a header.
    pub(crate) const RECIPIENT: &str = "to=functions.";
}

/// Marks of DeepSeek's calls, and of all of them together.
pub(crate) const DEEPSEEK_SEPARATOR: &str = "<｜tool▁sep｜>";
const DEEPSEEK_CALLS: [&str; 2] = ["<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"];

/// All forms. Of several whose signs stand in a template, the first is its form.
pub static FORMS: [CallForm; 9] = [
    CallForm {
        name: "gpt-oss",
        signs: &[channels::CHANNEL],
        opens: &[],
        closes: &[],
        around: &[
            channels::START,
            channels::CHANNEL,
            channels::CONSTRAIN,
            channels::MESSAGE,
            channels::END,
            channels::CALL,
            channels::RETURN,
        ],
        layout: CallLayout::Channels,
    },
    CallForm {
        name: "deepseek",
        signs: &["<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>"],
        opens: &["<｜tool▁call▁begin｜>"],
        closes: &["<｜tool▁call▁end｜>"],
        around: &DEEPSEEK_CALLS,
        layout: CallLayout::Named {
            separators: &[DEEPSEEK_SEPARATOR],
        },
    },
    CallForm {
        name: "mistral-args",
        signs: &["[ARGS]"],
        opens: &["[TOOL_CALLS]"],
        closes: &[],
        around: &[],
        layout: CallLayout::Named {
            separators: &["[ARGS]", "[CALL_ID]"],
        },
    },
    CallForm {
        name: "mistral",
        signs: &["[TOOL_CALLS]"],
        opens: &["[TOOL_CALLS]"],
        closes: &[],
        around: &[],
        layout: LIST,
    },
    CallForm {
        name: "qwen3-coder",
        signs: &["<function="],
        opens: &["<tool_call>", "<function="],
        closes: &["</tool_call>"],
        around: &[],
        layout: CallLayout::Xml,
    },
    CallForm {
        name: "phi-4",
        signs: &["<|/tool|>"],
        opens: &["<|tool_call|>", "functools"],
        closes: &["<|/tool_call|>"],
        around: &[],
        layout: LIST,
    },
    CallForm {
        name: "granite",
        signs: &["<|tool_call|>"],
        opens: &["<|tool_call|>"],
        closes: &[],
        around: &[],
        layout: LIST,
    },
    CallForm {
        name: "hermes",
        signs: &["<tool_call>"],
        opens: &["<tool_call>"],
        closes: &["</tool_call>"],
        around: &[],
        layout: JSON,
    },
    CallForm {
        name: "llama-3",
        signs: &["<|python_tag|>", "\"parameters\": dictionary"],
        opens: &["<|python_tag|>"],
        closes: &[],
        around: &[],
        layout: CallLayout::Json {
            arguments: "parameters",
            list: false,
            bare: true,
        },
    },
];

/// The form of models whose templates know no tools, or show none that is known: the system message tells of the tools and
/// of this form.
pub static GENERIC: CallForm = CallForm {
    name: "generic",
    signs: &[],
    opens: &["<tool_call>"],
    closes: &["</tool_call>"],
    around: &[],
    layout: JSON,
};

/// What tells the form of GLM, which is not known here, from that of Hermes.
const ELEMENTS_OF_GLM: &str = "<arg_key>";

impl CallForm {
    /// Returns the form that the chat template `source` shows; [`GENERIC`] if it shows none.
    pub fn of_template(source: &str) -> &'static Self {
        if source.contains(ELEMENTS_OF_GLM) {
            return &GENERIC;
        }
        let shows = |form: &&Self| form.signs.iter().any(|sign| source.contains(sign));
        FORMS.iter().find(shows).unwrap_or(&GENERIC)
    }

    /// Returns the form called `name`.
    pub fn named(name: &str) -> Option<&'static Self> {
        let mut forms = FORMS.iter().chain([&GENERIC]);
        forms.find(|form| form.name == name)
    }

    /// Returns whether the system message must tell of the tools and of the form.
    pub fn is_generic(&self) -> bool {
        self == &GENERIC
    }

    /// Returns whether every output of it, also without calls, is a row of messages with headers.
    pub fn is_in_channels(&self) -> bool {
        self.layout == CallLayout::Channels
    }

    /// Returns all of its marks.
    pub(crate) fn marks(&self) -> impl Iterator<Item = &'static str> + use<> {
        let separators = match self.layout {
            CallLayout::Named { separators } => separators,
            _ => &[],
        };
        let marks = [self.opens, self.closes, self.around, separators];
        marks.into_iter().flatten().copied()
    }
}

/// The marks around what a model thinks before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReasoningMarks {
    pub(crate) open: &'static str,
    pub(crate) close: &'static str,
}

const REASONING: [ReasoningMarks; 2] = [
    ReasoningMarks {
        open: "<think>",
        close: "</think>",
    },
    ReasoningMarks {
        open: "[THINK]",
        close: "[/THINK]",
    },
];

impl ReasoningMarks {
    /// Returns the marks that the chat template `source` shows.
    pub fn of_template(source: &str) -> Option<Self> {
        let shows = |marks: &Self| source.contains(marks.open) || source.contains(marks.close);
        REASONING.into_iter().find(shows)
    }

    /// Returns whether `prompt` ends with the mark that begins reasoning.
    pub fn begin_at_end_of(self, prompt: &str) -> bool {
        prompt.trim_end().ends_with(self.open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_the_documentation_has_every_form_and_no_other() {
        let decision = include_str!("../../../docs/decisions/0042-calls-read-from-text.md");
        let rows = decision.lines().filter_map(|line| line.strip_prefix("| `"));
        let rows = rows.filter_map(|row| row.split('`').next());
        let mut listed: Vec<&str> = rows.filter(|name| *name != "tool_form").collect();
        let mut known: Vec<&str> = FORMS
            .iter()
            .chain([&GENERIC])
            .map(|form| form.name)
            .collect();
        listed.sort_unstable();
        known.sort_unstable();
        assert_eq!(listed, known);
    }
}
