//! Flags for the models of services that a command runs in its own process.

use clap::{Args, ValueHint};
use serde_json::{Value, json};
use speculation::drafting::Drafting;
use speculation::methods::names::drafting;

/// Models of the services in this process.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Services")]
pub struct ModelArgs {
    /// Target model: a folder, a GGUF file, org/name of the hub.
    ///
    /// It is that of the services in this process. `outrider serve verifier --help` tells all forms.
    #[arg(long, value_name = "MODEL", value_hint = ValueHint::AnyPath)]
    target_model: Option<String>,
    /// Draft model, of the target model's vocabulary; or none.
    ///
    /// It is that of the services in this process, in the forms of a target model. Without one that fits, or with
    /// `none` (`ngram`, `lookup` and `max-gram` are the same), drafts are copied from the text where that pays.
    #[arg(long, value_name = "MODEL", value_hint = ValueHint::AnyPath)]
    draft_model: Option<String>,
}

impl ModelArgs {
    /// The flags given, as settings.
    pub fn settings(&self) -> Value {
        let draft_model = self
            .draft_model
            .as_deref()
            .map(|model| match drafting(model) {
                Ok(Drafting::MaxGram) => "none",
                _ => model,
            });
        json!({
            "verifier": { "model": { "path": self.target_model } },
            "drafter": { "model": { "path": draft_model } },
        })
    }

    /// Whether none is given.
    pub(crate) fn is_empty(&self) -> bool {
        self.target_model.is_none() && self.draft_model.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drafts_from_the_text_have_several_names() {
        for (name, expected) in [
            ("none", "none"),
            ("ngram", "none"),
            ("lookup", "none"),
            ("max-gram", "none"),
            ("./ngram", "./ngram"),
            ("model", "model"),
        ] {
            let args = ModelArgs {
                draft_model: Some(name.to_owned()),
                ..ModelArgs::default()
            };
            assert_eq!(args.settings()["drafter"]["model"]["path"], expected);
        }
    }
}
