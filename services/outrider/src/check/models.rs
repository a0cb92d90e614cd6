//! What is wrong with the models' files, as far as can be seen before their weights are loaded.

use wire::describe::check_pair;

use super::problem::Problem;
use super::role::Role;
use crate::config::Config;
use crate::draft::leave_out_misfit;

/// What to do about a pair that does not fit.
pub(crate) const OF_ONE_FAMILY: &str = "name one of the target's family, with the same tokenizer.json, or none: without --draft-model (drafter.model.path), \
     or with none in its place, drafts are copied from the text";

/// Returns what is wrong with the files of `role`'s models, and in one process whether they fit each other.
pub(super) fn problems(config: &Config, role: Role) -> Vec<Problem> {
    let mut config = config.clone();
    if role == Role::All {
        leave_out_misfit(&mut config);
    }
    let (mut draft, mut target) = (None, None);
    let mut problems = Vec::new();
    if role.has_verifier() {
        match verifier::inspect(&config.verifier) {
            Ok(found) => target = found.map(|model| verifier::outline(&model)),
            Err(error) => problems.push(Problem::new(error.key(), &error)),
        }
    }
    if role.has_drafter() {
        let found = drafter::inspect(&config.drafter, target.as_ref());
        let wrong = found.problems.iter();
        problems.extend(wrong.map(|error| Problem::new(error.key(), error)));
        draft = found.description;
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
