//! What is wrong with the models' files, as far as can be seen before their weights are loaded.

use wire::describe::check_pair;

use super::problem::Problem;
use super::role::Role;
use crate::config::Config;

/// What to do about a pair that does not fit.
pub(crate) const OF_ONE_FAMILY: &str = "take a draft model of the target's family, with the same tokenizer.json; or drafter.model.path = \"none\" with a \
     bigram table of this vocabulary";

/// What is wrong with the files of `role`'s models, and in one process whether they fit each other.
pub(super) fn problems(config: &Config, role: Role) -> Vec<Problem> {
    let (mut draft, mut target) = (None, None);
    let mut problems = Vec::new();
    if role.has_drafter() {
        let found = drafter::inspect(&config.drafter);
        let wrong = found.problems.iter();
        problems.extend(wrong.map(|error| Problem::new(error.key(), error)));
        draft = found.description;
    }
    if role.has_verifier() {
        match verifier::inspect(&config.verifier) {
            Ok(found) => target = found.map(|model| verifier::outline(&model)),
            Err(error) => problems.push(Problem::new(error.key(), &error)),
        }
    }
    if let (Some(draft), Some(target)) = (draft, target)
        && let Err(mismatch) = check_pair(&draft, &target)
    {
        problems.push(Problem {
            key: "drafter.model".to_owned(),
            problem: format!(
                "drafter.model: the draft model does not fit the target model: {mismatch}; {OF_ONE_FAMILY}"
            ),
        });
    }
    problems
}
