//! What holds where a request does not say who proposes draft tokens, and how many.

use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use speculation::drafting::Drafting;
use speculation::methods::names::DRAFT_MOST as MAX_DRAFT_LEN;
use speculation::methods::names::{AUTO, drafting, of_drafting};
use speculation::methods::table::DRAFTING;

/// `auto`, or the name of a way of drafting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum DefaultDrafting {
    /// The draft model; Max-Gram where the drafters have no draft model. Streamed where there are no drafters, or they are
    /// [apart](fleet::Drafters::Apart).
    #[default]
    Auto,
    /// This one.
    Fixed(Drafting),
}

impl TryFrom<String> for DefaultDrafting {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        if name == AUTO {
            return Ok(Self::Auto);
        }
        let found = drafting(&name).map(Self::Fixed);
        found.map_err(|_| {
            let known = DRAFTING.forms().join(", ");
            format!("'{name}' drafts nothing, expected one of {AUTO}, {known}")
        })
    }
}

impl From<DefaultDrafting> for String {
    fn from(default: DefaultDrafting) -> Self {
        match default {
            DefaultDrafting::Auto => AUTO.to_owned(),
            DefaultDrafting::Fixed(drafting) => of_drafting(drafting).to_owned(),
        }
    }
}

/// Draft tokens a round where a request names none: `"auto"` or a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "DraftLenSetting", into = "DraftLenSetting")]
pub enum DefaultDraftLen {
    /// As many as the measured acceptance, times and load make pay.
    #[default]
    Auto,
    /// This number in every round.
    Fixed(NonZeroU32),
}

/// [`DefaultDraftLen`] as a configuration file or an environment variable writes it.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected 'auto' or 1 to 64")]
enum DraftLenSetting {
    Number(#[schemars(range(min = 1, max = MAX_DRAFT_LEN))] u32),
    Name(#[schemars(regex(pattern = "^(auto|[0-9]+)$"))] String),
}

impl DefaultDraftLen {
    /// Returns the number, if there is one.
    pub fn fixed(self) -> Option<NonZeroU32> {
        match self {
            Self::Auto => None,
            Self::Fixed(tokens) => Some(tokens),
        }
    }
}

impl TryFrom<DraftLenSetting> for DefaultDraftLen {
    type Error = String;

    fn try_from(setting: DraftLenSetting) -> Result<Self, String> {
        let text = match setting {
            DraftLenSetting::Number(tokens) => tokens.to_string(),
            // An environment variable gives a number as text.
            DraftLenSetting::Name(name) => name,
        };
        match text.parse().ok() {
            _ if text == AUTO => Ok(Self::Auto),
            Some(tokens) => Ok(Self::Fixed(tokens)),
            None => Err(format!(
                "'{text}' is no draft length, expected 'auto' or 1 to {MAX_DRAFT_LEN}"
            )),
        }
    }
}

impl From<DefaultDraftLen> for DraftLenSetting {
    fn from(len: DefaultDraftLen) -> Self {
        match len {
            DefaultDraftLen::Auto => Self::Name(AUTO.to_owned()),
            DefaultDraftLen::Fixed(tokens) => Self::Number(tokens.get()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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

    #[test]
    fn a_default_length_is_auto_or_a_number_also_as_text() {
        let read = |value| serde_json::from_value::<DefaultDraftLen>(value);
        let fixed = |tokens| NonZeroU32::new(tokens).map(DefaultDraftLen::Fixed);
        assert_eq!(read(json!("auto")).ok(), Some(DefaultDraftLen::Auto));
        assert_eq!(read(json!(4)).ok(), fixed(4));
        assert_eq!(read(json!("4")).ok(), fixed(4));
        for len in [DefaultDraftLen::Auto, fixed(9).expect("not zero")] {
            let written = serde_json::to_value(len).expect("JSON");
            assert_eq!(read(written).ok(), Some(len));
        }
        for bad in [json!(0), json!("0"), json!("autos"), json!("")] {
            let error = read(bad).expect_err("refused").to_string();
            assert!(error.contains("expected 'auto' or 1 to 64"), "{error}");
        }
    }
}
