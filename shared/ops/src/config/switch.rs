//! A setting that is on, off, or left to the program.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `true`, `false` or `auto`; the setting says what decides where it is `auto`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "WrittenSwitch", into = "WrittenSwitch")]
pub enum Switch {
    /// The program decides.
    #[default]
    Auto,
    /// On.
    On,
    /// Off.
    Off,
}

const AUTOMATIC: &str = "auto";

/// A [`Switch`] as a configuration file or an environment variable writes it.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected true, false or auto")]
enum WrittenSwitch {
    Flag(bool),
    Word(#[schemars(extend("enum" = [AUTOMATIC]))] String),
}

impl TryFrom<WrittenSwitch> for Switch {
    type Error = String;

    fn try_from(written: WrittenSwitch) -> Result<Self, String> {
        match written {
            WrittenSwitch::Flag(true) => Ok(Self::On),
            WrittenSwitch::Flag(false) => Ok(Self::Off),
            WrittenSwitch::Word(word) if word == AUTOMATIC => Ok(Self::Auto),
            WrittenSwitch::Word(word) => Err(format!("{word:?}, expected true, false or auto")),
        }
    }
}

impl From<Switch> for WrittenSwitch {
    fn from(switch: Switch) -> Self {
        match switch {
            Switch::Auto => Self::Word(AUTOMATIC.to_owned()),
            Switch::On => Self::Flag(true),
            Switch::Off => Self::Flag(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_switch_is_true_false_or_auto() {
        for (written, switch) in [
            (json!("auto"), Switch::Auto),
            (json!(true), Switch::On),
            (json!(false), Switch::Off),
        ] {
            assert_eq!(serde_json::from_value(written.clone()).ok(), Some(switch));
            assert_eq!(serde_json::to_value(switch).ok(), Some(written));
        }
        for bad in [json!("yes"), json!(1), json!(null)] {
            let refused = serde_json::from_value::<Switch>(bad).expect_err("refused");
            let said = refused.to_string();
            assert!(said.contains("expected true, false or auto"), "{said}");
        }
    }
}
