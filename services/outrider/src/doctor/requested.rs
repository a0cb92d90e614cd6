//! Which models a report tells of.

use server::config::Loaded;

use crate::check::Role;
use crate::config::Config;
use crate::global::is_default;

/// The models that somebody asked about. Those built in are none of them where other models are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Requested {
    pub(super) target: bool,
    pub(super) draft: bool,
}

impl Requested {
    /// Returns the models that a process of `role` has by choice, or by default where it is not told of any others;
    /// `names_coordinator` says whether the report is about a coordinator that is named.
    pub(super) fn of(loaded: &Loaded<Config>, role: Role, names_coordinator: bool) -> Self {
        let (verifier, drafter) = (&loaded.value.verifier, &loaded.value.drafter);
        let is_target_chosen =
            !is_default(loaded, "verifier.model.path") || !verifier.remote.url.is_empty();
        let is_draft_chosen =
            !is_default(loaded, "drafter.model.path") || !drafter.cascade.models.is_empty();
        let is_elsewhere = names_coordinator || !is_default(loaded, "coordinator.models");
        let by_default = role != Role::All || !is_elsewhere;
        Self {
            target: is_target_chosen || by_default,
            draft: is_draft_chosen || (by_default && !(role == Role::All && is_target_chosen)),
        }
    }
}
