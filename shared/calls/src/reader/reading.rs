//! How an output is to be read.

use std::sync::Arc;

use crate::form::{CallForm, ReasoningMarks};
use crate::tools::Tools;

/// How an output is to be read.
#[derive(Clone, Debug)]
pub struct OutputReading {
    /// The form of its calls; none if there are no tools, or the answer is to be text.
    pub form: Option<&'static CallForm>,
    /// The marks around reasoning; none for a model that has none.
    pub reasoning: Option<ReasoningMarks>,
    /// Whether the prompt ends within reasoning.
    pub begins_in_reasoning: bool,
    /// The tools, whose schemas tell what values without quotes are.
    pub tools: Arc<Tools>,
    /// The marks that are special tokens of the model. Text that only spells them is text.
    pub special_marks: Vec<&'static str>,
    /// Whether a grammar holds calls from their mark on: what is cut off behind a mark is no text then.
    pub is_held: bool,
}

impl OutputReading {
    /// Returns all marks that an output of `form` with `reasoning` may have.
    pub fn marks(
        form: Option<&'static CallForm>,
        reasoning: Option<ReasoningMarks>,
    ) -> impl Iterator<Item = &'static str> {
        let of_reasoning = reasoning.map(|marks| [marks.open, marks.close]);
        let of_form = form.map(CallForm::marks).into_iter().flatten();
        of_form.chain(of_reasoning.into_iter().flatten())
    }

    /// Returns those of `marks` that are text of several tokens, or of a token with text.
    pub(super) fn spelled(&self, marks: &[&'static str]) -> Vec<&'static str> {
        let marks = marks.iter().copied();
        marks
            .filter(|mark| !self.special_marks.contains(mark))
            .collect()
    }
}
