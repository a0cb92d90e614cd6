//! What is asked.

use std::path::Path;

use outrider::prompts::{self, Example};

use super::synthetic::SyntheticPrompts;

/// Where prompts come from.
#[derive(Clone, Debug)]
pub(super) enum PromptSource {
    /// A list, of several kinds.
    Listed(Vec<Example>),
    /// Random words.
    Synthetic(SyntheticPrompts),
}

/// Synthetic prompts of one load point have numbers from this many times its own on, so that no two share any.
const PER_POINT: u64 = 1 << 32;

/// What synthetic prompts are called in a table by kind.
const SYNTHETIC: &str = "synthetic";

impl PromptSource {
    /// Reads the prompts of `file`, or the built-in ones.
    ///
    /// # Errors
    /// Names the file and the line that is wrong.
    pub(super) fn listed(file: Option<&Path>) -> anyhow::Result<Self> {
        Ok(Self::Listed(prompts::load(file, usize::MAX)?))
    }

    /// Returns the prompts of `count` requests of the load point `point`, counted from 0; warm-up is one, too.
    ///
    /// Of a list that is longer, as many are taken from each of its parts, for kinds stand one after another; a shorter
    /// one is taken again.
    pub(super) fn of_point(&self, point: u64, count: usize) -> Vec<Example> {
        (0..count)
            .map(|index| match self {
                Self::Listed(all) if count < all.len() => all[index * all.len() / count].clone(),
                Self::Listed(all) => all[index % all.len()].clone(),
                Self::Synthetic(synthetic) => {
                    let number = point * PER_POINT + index as u64;
                    Example::new(SYNTHETIC, synthetic.prompt(number))
                }
            })
            .collect()
    }

    /// Returns whether requests of several load points, `count` of each, have prompts in common.
    pub(super) fn repeats(&self, points: usize, count: usize) -> bool {
        match self {
            Self::Listed(all) => points > 1 || count > all.len(),
            Self::Synthetic(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed() -> PromptSource {
        let prompt = |index: usize| Example::new(["a", "b", "c"][index / 4], index.to_string());
        PromptSource::Listed((0..12).map(prompt).collect())
    }

    #[test]
    fn a_part_of_a_list_has_all_its_kinds() {
        let taken = listed().of_point(0, 6);
        let kinds: Vec<&str> = taken.iter().map(|prompt| prompt.kind.as_str()).collect();
        assert_eq!(kinds, ["a", "a", "b", "b", "c", "c"]);
        assert!(!listed().repeats(1, 12));
        assert!(listed().repeats(2, 6));
    }

    #[test]
    fn a_list_that_is_too_short_begins_again() {
        let taken = listed().of_point(0, 13);
        assert_eq!(taken[12].text, "0");
        assert!(listed().repeats(1, 13));
    }

    #[test]
    fn synthetic_prompts_of_load_points_differ() {
        let source = PromptSource::Synthetic(SyntheticPrompts { words: 20, seed: 0 });
        let points = [0, 1].map(|point| source.of_point(point, 50));
        let mut all: Vec<String> = points.into_iter().flatten().map(|it| it.text).collect();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 100);
    }
}
