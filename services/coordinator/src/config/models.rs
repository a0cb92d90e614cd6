//! The models that a coordinator serves, and their names.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::CoordinatorConfig;

/// A model served, with the peers that serve it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelGroup {
    /// Name clients ask for.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Other names that requests may give it.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// URLs of drafters, `http://HOST:PORT`; a name with several addresses stands for all of them.
    /// None at all is served by the target alone.
    #[serde(default)]
    pub drafters: Vec<String>,
    /// URLs of verifiers, at least one.
    #[schemars(length(min = 1))]
    pub verifiers: Vec<String>,
    /// Whether verifiers of other weights than most of them have are used too. A request and its seed may then give
    /// other tokens each time, and no answer says that it is reproducible.
    #[serde(default)]
    pub mixed_weights: bool,
}

impl CoordinatorConfig {
    /// Returns the models, the first one under the names that `served_model_name` gives it.
    pub(crate) fn groups(&self) -> Vec<ModelGroup> {
        let mut groups = self.models.clone();
        if let (Some(first), [name, aliases @ ..]) =
            (groups.first_mut(), &self.served_model_name[..])
        {
            name.clone_into(&mut first.name);
            first.aliases = aliases.to_vec();
        }
        groups
    }
}

impl ModelGroup {
    /// Returns all names of the model that stands at `index`, each with its setting.
    pub(super) fn names(&self, index: usize) -> impl Iterator<Item = (&str, String)> {
        let aliases = self.aliases.iter().enumerate();
        let aliases = aliases
            .map(move |(at, alias)| (alias.as_str(), format!("models.{index}.aliases.{at}")));
        std::iter::once((self.name.as_str(), format!("models.{index}.name"))).chain(aliases)
    }
}
