//! A prompt, and what is known of its answer.

/// A prompt, and what is known of its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// What its file calls it, where it is called anything.
    pub id: Option<String>,
    /// What kind of text it asks for; may be empty.
    pub kind: String,
    /// The prompt.
    pub text: String,
    /// Answers that are known to be right or good, each of them enough; none where none is known.
    pub references: Vec<String>,
    /// The form it was read from.
    pub form: Form,
}

impl Example {
    /// Returns a prompt of whose answer nothing is known.
    pub fn new(kind: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            id: None,
            kind: kind.into(),
            text: text.into(),
            references: Vec::new(),
            form: Form::Own,
        }
    }
}

/// A form in which files hold prompts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `{"kind", "prompt", "answer"}`: this project's own, of which only the prompt must be there.
    Own,
    /// JSON objects whose fields were named on the command line.
    Named,
    /// `{"question_id", "category", "turns", "reference"}`: Spec-Bench (Xia et al., 2024) and MT-Bench (Zheng et al., 2023).
    SpecBench,
    /// `{"question", "answer"}` with `#### N` at the end of the answer: GSM8K (Cobbe et al., 2021).
    Gsm8k,
    /// `{"task_id", "prompt", "canonical_solution", "test", "entry_point"}`: HumanEval (Chen et al., 2021).
    HumanEval,
    /// `{"conversations": [{"from", "value"}]}`, as conversations shared of ShareGPT are passed on.
    ShareGpt,
    /// `{"messages": [{"role", "content"}]}`, as models are fine-tuned on it.
    Messages,
    /// `{"custom_id", "body"}`: a line of a batch for the OpenAI API.
    Batch,
    /// Plain text.
    Text,
}

impl Form {
    /// Returns what the examples of this form are called as a kind, where they do not say so themselves.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Own | Self::Named | Self::SpecBench => "",
            Self::Gsm8k => "gsm8k",
            Self::HumanEval => "humaneval",
            Self::ShareGpt => "sharegpt",
            Self::Messages => "messages",
            Self::Batch => "batch",
            Self::Text => "text",
        }
    }
}
