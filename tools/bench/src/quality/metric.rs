//! The metrics, by name.

use clap::ValueEnum;
use outrider::prompts::Form;

use super::score::Score;
use super::{answers, bleu, f1, last_number, rouge};

/// What outputs are measured by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Metric {
    /// The first line is a reference, white space around them aside.
    Exact,
    /// The last number is that of a reference: GSM8K.
    LastNumber,
    /// A reference stands somewhere in the output, letters being the same large and small.
    Contains,
    /// F1 over words, as for SQuAD.
    F1,
    /// BLEU-4 over all outputs together, as sacrebleu's.
    Bleu,
    /// ROUGE-2, as rouge-score's, without a stemmer.
    #[value(name = "rouge-2")]
    Rouge2,
    /// ROUGE-L, as rouge-score's, without a stemmer.
    #[value(name = "rouge-l")]
    RougeL,
    /// How likely the target model finds the outputs: the mean of the natural logarithms of their tokens' probabilities,
    /// without temperature and cuts.
    Likelihood,
    /// How likely the target model finds the first reference of each prompt, in the same unit. It does not depend on the
    /// method, and serves as the yardstick for the likelihood of outputs.
    ReferenceLikelihood,
}

/// What a metric's value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// The share of outputs that are right, 0 to 1.
    Right,
    /// Another share, 0 to 1.
    Share,
    /// Natural logarithms, the larger the better.
    Nats,
    /// A number of a scale that we do not know.
    Number,
}

impl Metric {
    /// Returns the metric that examples of a form are usually measured by. Where programs would have to be run, or nothing
    /// is known to be right, it is one that needs neither.
    pub(crate) fn of(form: Form) -> Self {
        match form {
            Form::Own | Form::Named => Self::Exact,
            Form::Gsm8k => Self::LastNumber,
            Form::HumanEval => Self::Bleu,
            Form::SpecBench | Form::ShareGpt | Form::Messages => Self::RougeL,
            Form::Batch | Form::Text => Self::Likelihood,
        }
    }

    /// Returns what it is called on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::LastNumber => "last-number",
            Self::Contains => "contains",
            Self::F1 => "f1",
            Self::Bleu => "bleu",
            Self::Rouge2 => "rouge-2",
            Self::RougeL => "rouge-l",
            Self::Likelihood => "likelihood",
            Self::ReferenceLikelihood => "reference-likelihood",
        }
    }

    /// Returns what its value is.
    pub(crate) fn scale(self) -> Scale {
        match self {
            Self::Exact | Self::LastNumber | Self::Contains => Scale::Right,
            Self::F1 | Self::Bleu | Self::Rouge2 | Self::RougeL => Scale::Share,
            Self::Likelihood | Self::ReferenceLikelihood => Scale::Nats,
        }
    }

    /// Whether it compares with references.
    pub(crate) fn needs_reference(self) -> bool {
        self != Self::Likelihood
    }

    /// Returns its value over `outputs`, each with its references; none of a metric that asks the target model.
    pub(crate) fn score(self, outputs: &[(&str, &[String])]) -> Option<Score> {
        let mean = |of_one: &dyn Fn(&str, &[String]) -> f64| {
            let scores = outputs.iter().map(|(output, known)| of_one(output, known));
            Some(Score::mean(&scores.collect::<Vec<_>>()))
        };
        let right = |is_right: fn(&str, &[String]) -> bool| {
            mean(&|output, known| f64::from(u8::from(is_right(output, known))))
        };
        match self {
            Self::Exact => right(answers::is_exact),
            Self::LastNumber => right(last_number::is_same),
            Self::Contains => right(answers::contains),
            Self::F1 => mean(&f1::token_f1),
            Self::Rouge2 => mean(&rouge::rouge_2),
            Self::RougeL => mean(&rouge::rouge_l),
            Self::Bleu => Some(Score::whole(bleu::bleu(outputs.iter().copied()))),
            Self::Likelihood | Self::ReferenceLikelihood => None,
        }
    }
}
