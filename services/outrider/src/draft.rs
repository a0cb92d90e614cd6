//! Which draft model goes with the target model of one process.

use drafter::DrafterConfig;
use wire::describe::check_pair;

use crate::config::Config;

/// Leaves the built-in draft model out where nobody named another and it does not fit the target model. Returns what is
/// to be told of that.
pub(crate) fn leave_out_misfit(config: &mut Config) -> Option<String> {
    let built_in = DrafterConfig::default();
    let is_chosen = config.drafter.model != built_in.model
        || !config.drafter.cascade.models.is_empty()
        || !config.drafter.heads.is_empty();
    if is_chosen || config.verifier.model.is_embedded() {
        return None;
    }
    // Loading the target model tells what is wrong with it. One that has yet to be downloaded is none of the built-in ones.
    let target = verifier::inspect(&config.verifier).ok()?;
    let target = target.as_ref().map(verifier::outline);
    let draft = drafter::inspect(&config.drafter, None).description;
    if let (Some(draft), Some(target)) = (&draft, &target)
        && check_pair(draft, target).is_ok()
    {
        return None;
    }
    config.drafter.remove_model();
    Some(format!(
        "'{}' decodes without a draft model, since none of its vocabulary is named: drafts are copied from the text \
         (--draft-model names one of its family)",
        config.verifier.model.served_name()
    ))
}
