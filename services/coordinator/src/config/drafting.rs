//! Who proposes draft tokens where a request does not say.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use speculation::drafting::Drafting;
use speculation::methods::names::{drafting, of_drafting};
use speculation::methods::table::DRAFTING;

/// `auto`, or the name of a way of drafting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum DefaultDrafting {
    /// The draft model; Max-Gram where the drafters have no draft model.
    #[default]
    Auto,
    /// This one.
    Fixed(Drafting),
}

const AUTOMATIC: &str = "auto";

impl TryFrom<String> for DefaultDrafting {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        if name == AUTOMATIC {
            return Ok(Self::Auto);
        }
        let found = drafting(&name).map(Self::Fixed);
        found.map_err(|_| {
            let known = DRAFTING.forms().join(", ");
            format!("'{name}' drafts nothing, expected one of {AUTOMATIC}, {known}")
        })
    }
}

impl From<DefaultDrafting> for String {
    fn from(default: DefaultDrafting) -> Self {
        match default {
            DefaultDrafting::Auto => AUTOMATIC.to_owned(),
            DefaultDrafting::Fixed(drafting) => of_drafting(drafting).to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_written_as_it_is_read_and_other_names_are_refused() {
        for name in ["auto", "model", "max-gram", "cascade"] {
            let read = DefaultDrafting::try_from(name.to_owned()).expect(name);
            assert_eq!(String::from(read), name);
        }
        let ngram = DefaultDrafting::try_from("ngram".to_owned());
        assert_eq!(ngram, Ok(DefaultDrafting::Fixed(Drafting::MaxGram)));
        let refused = DefaultDrafting::try_from("guess".to_owned()).expect_err("unknown");
        assert!(
            refused.contains("'guess'") && refused.contains("max-gram"),
            "{refused}"
        );
    }
}
