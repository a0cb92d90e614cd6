//! What is recorded of a draft block.

use speculation::TokenId;
use speculation::confidence::Confidence;

/// How far the mass of a distribution may be from 1: single precision over a large vocabulary.
const MASS_TOLERANCE: f64 = 1e-3;

/// A draft block and the distributions its tokens were drawn from and scored with.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RecordedBlock {
    /// Index of the prompt.
    pub(crate) prompt: u32,
    /// Kind of text the prompt belongs to.
    pub(crate) kind: String,
    /// Output tokens before the block.
    pub(crate) base_len: u32,
    /// The draft tokens.
    pub(crate) drafts: Vec<TokenId>,
    /// One for each draft token.
    pub(crate) positions: Vec<RecordedPosition>,
    /// How many draft tokens the generation accepted.
    pub(crate) accepted: u32,
}

/// Both models at one position, on the tokens kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RecordedPosition {
    /// The tokens kept, in ascending order; the draft token is among them.
    pub(crate) ids: Vec<TokenId>,
    /// The draft model.
    pub(crate) draft: RecordedDistribution,
    /// The target model.
    pub(crate) target: RecordedDistribution,
    /// The tokens not kept, in at most two groups: those likelier by the draft model's sampling distribution,
    /// and the others.
    pub(crate) rest: Vec<Rest>,
}

/// Tokens that are not kept, by what they have in sum.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Rest {
    /// Mass of the draft model's sampling distribution.
    pub(crate) draft: f32,
    /// Mass of the target model's sampling distribution.
    pub(crate) target: f32,
    /// Mass of the draft model's unscaled distribution.
    pub(crate) draft_unscaled: f32,
    /// Mass of the target model's unscaled distribution.
    pub(crate) target_unscaled: f32,
    /// `-Σ q ln p`, with the unscaled distributions; infinite where q has mass and p has none.
    pub(crate) cross_entropy: f32,
}

/// The distribution of one model on the tokens kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RecordedDistribution {
    /// The sampling distribution, as it was before the cut.
    pub(crate) probabilities: Vec<f32>,
    /// The unscaled distribution; none if it is the same.
    pub(crate) unscaled: Option<Vec<f32>>,
    /// Confidence of the whole unscaled distribution.
    pub(crate) confidence: Confidence<f32>,
}

/// A record that cannot have come from two models.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub(crate) struct BadRecord {
    /// Path of the field, as in the file format.
    pub(crate) field: String,
    /// What is wrong with it.
    pub(crate) problem: String,
}

impl BadRecord {
    fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            problem: problem.into(),
        }
    }
}

impl RecordedBlock {
    /// Checks that the block holds distributions over a vocabulary of `vocab_size` tokens, from which its
    /// draft tokens can have been drawn. `differ` is whether sampling distributions and unscaled distributions
    /// differ, so that both must be there.
    ///
    /// # Errors
    /// Names the first field that is wrong.
    pub(crate) fn check(&self, vocab_size: u32, differ: bool) -> Result<(), BadRecord> {
        let (drafts, positions) = (self.drafts.len(), self.positions.len());
        if drafts == 0 {
            return Err(BadRecord::new("draft_token_ids", "none"));
        }
        if positions != drafts {
            let problem = format!("{positions} for {drafts} draft tokens");
            return Err(BadRecord::new("positions", problem));
        }
        if self.accepted as usize > drafts {
            let problem = format!("{} of {drafts} draft tokens", self.accepted);
            return Err(BadRecord::new("accepted", problem));
        }
        for (at, (position, &token)) in self.positions.iter().zip(&self.drafts).enumerate() {
            let within = |bad: BadRecord| {
                BadRecord::new(format!("positions[{at}].{}", bad.field), bad.problem)
            };
            position.check(token, vocab_size, differ).map_err(within)?;
        }
        Ok(())
    }
}

impl RecordedPosition {
    fn check(&self, token: TokenId, vocab_size: u32, differ: bool) -> Result<(), BadRecord> {
        let bad = |problem: String| Err(BadRecord::new("token_ids", problem));
        if let Some(id) = self.ids.iter().find(|&&id| id >= vocab_size) {
            return bad(format!("{id} is not in a vocabulary of {vocab_size}"));
        }
        if !self.ids.is_sorted_by(|a, b| a < b) {
            return bad("not in ascending order".to_owned());
        }
        let Ok(drafted) = self.ids.binary_search(&token) else {
            return bad(format!("the draft token {token} is missing"));
        };
        if self.rest.len() > 2 {
            let problem = format!("{} groups, expected at most 2", self.rest.len());
            return Err(BadRecord::new("rest", problem));
        }
        let of = |mass: fn(&Rest) -> f32| self.rest.iter().map(mass).collect::<Vec<_>>();
        let draft = [of(|rest| rest.draft), of(|rest| rest.draft_unscaled)];
        let target = [of(|rest| rest.target), of(|rest| rest.target_unscaled)];
        for (probs, rest, name) in [
            (&self.draft, draft, "draft"),
            (&self.target, target, "target"),
        ] {
            let within =
                |bad: BadRecord| BadRecord::new(format!("{name}.{}", bad.field), bad.problem);
            probs.check(self.ids.len(), &rest, differ).map_err(within)?;
        }
        if self.draft.probabilities[drafted] <= 0.0 {
            let problem = format!("the draft token {token} has no mass");
            return Err(BadRecord::new("draft.probabilities", problem));
        }
        // May be infinite; NaN is in no range.
        let impossible = |rest: &&Rest| !(0.0..=f32::INFINITY).contains(&rest.cross_entropy);
        if let Some(rest) = self.rest.iter().find(impossible) {
            let problem = format!("{} is not a number from 0 on", rest.cross_entropy);
            return Err(BadRecord::new("rest.cross_entropy", problem));
        }
        Ok(())
    }
}

impl RecordedDistribution {
    /// `rest` holds the masses that the sampling distribution and the unscaled distribution have elsewhere.
    fn check(&self, ids: usize, rest: &[Vec<f32>; 2], differ: bool) -> Result<(), BadRecord> {
        check_row("probabilities", &self.probabilities, &rest[0], ids)?;
        match &self.unscaled {
            Some(unscaled) => check_row("unscaled", unscaled, &rest[1], ids)?,
            None if differ => {
                let problem =
                    "missing, and at the recorded temperature or cuts the distributions differ";
                return Err(BadRecord::new("unscaled", problem));
            }
            None => {}
        }
        let Confidence { max, entropy } = self.confidence;
        if !(max > 0.0 && max <= 1.001) {
            let problem = format!("{max} is not within 0 to 1");
            return Err(BadRecord::new("max_probability", problem));
        }
        if !(entropy >= 0.0 && entropy.is_finite()) {
            let problem = format!("{entropy} is not a number from 0 on");
            return Err(BadRecord::new("entropy", problem));
        }
        Ok(())
    }
}

fn check_row(field: &str, row: &[f32], rest: &[f32], ids: usize) -> Result<(), BadRecord> {
    if row.len() != ids {
        let problem = format!("{} for {ids} tokens", row.len());
        return Err(BadRecord::new(field, problem));
    }
    let with_rest = || row.iter().chain(rest);
    // NaN is in no range.
    if let Some(mass) = with_rest().find(|mass| !(0.0..=1.001).contains(*mass)) {
        let problem = format!("{mass} is not within 0 to 1");
        return Err(BadRecord::new(field, problem));
    }
    let mass: f64 = with_rest().map(|&mass| f64::from(mass)).sum();
    if (mass - 1.0).abs() > MASS_TOLERANCE {
        let problem = format!("they add up to {mass:.6} with the rest, expected 1");
        return Err(BadRecord::new(field, problem));
    }
    Ok(())
}
