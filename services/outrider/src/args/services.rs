//! Flags that say whom a command asks, how it connects, and which models services in its own process have.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use serde::Serialize;
use serde_json::{Value, json};
use speculation::drafting::Drafting;
use speculation::methods::names::drafting;

/// Whom a command asks.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Services")]
pub struct ServicesArgs {
    /// A running coordinator, HOST:PORT or a URL.
    ///
    /// Without it the three services run in this process, and stop with it.
    #[arg(long, value_name = "URL")]
    pub coordinator: Option<String>,
    #[command(flatten)]
    /// Models of the services in this process.
    pub models: ModelArgs,
    #[command(flatten)]
    /// How the coordinator is connected to.
    pub connection: ConnectionArgs,
}

impl ServicesArgs {
    /// Returns the flags given, as settings.
    pub(crate) fn settings(&self) -> Value {
        let mut settings = self.models.settings();
        self.connection.add_to(&mut settings);
        settings
    }
}

/// Models of the services in this process.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Services")]
pub struct ModelArgs {
    /// Target model: a folder, a GGUF file, org/name of the hub.
    ///
    /// It is that of the services in this process. `outrider serve verifier --help` tells all forms.
    #[arg(long, value_name = "MODEL", value_hint = ValueHint::AnyPath)]
    target_model: Option<String>,
    /// Draft model, best one of the target model's family; or none.
    ///
    /// It is that of the services in this process, in the forms of a target model. Without one that fits, or with
    /// `none` (`ngram`, `lookup` and `max-gram` are the same), drafts are copied from the text where that pays.
    #[arg(long, value_name = "MODEL", value_hint = ValueHint::AnyPath)]
    draft_model: Option<String>,
}

impl ModelArgs {
    /// Returns the flags given, as settings.
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

    /// Returns whether none is given.
    pub(crate) fn is_empty(&self) -> bool {
        self.target_model.is_none() && self.draft_model.is_none()
    }
}

/// How whom a command asks is believed, and what is shown to it.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Connection")]
pub struct ConnectionArgs {
    /// File with the token that is shown to the coordinator; of several lines the first.
    #[arg(
        long,
        value_name = "FILE",
        env = "OUTRIDER_TOKEN_FILE",
        hide_short_help = true
    )]
    token_file: Option<PathBuf>,
    #[command(flatten)]
    tls: TlsArgs,
}

/// Settings of the section `tls`.
#[derive(Clone, Debug, Default, Args, Serialize)]
#[command(next_help_heading = "Connection")]
pub(crate) struct TlsArgs {
    /// Certificates in PEM of the CAs by which servers are believed, for URLs that begin with https://; in
    /// tls.mode mutual clients too.
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    ca_file: Option<PathBuf>,
    /// Certificate chain in PEM to show: by a service, and by a client that is asked for one.
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    cert_file: Option<PathBuf>,
    /// Private key of the certificate, in PEM.
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    key_file: Option<PathBuf>,
    /// Serves in clear on addresses that other machines can reach, and shows tokens over http:// to other
    /// machines.
    #[arg(long, global = true, hide_short_help = true)]
    #[serde(skip)]
    insecure: bool,
}

impl ConnectionArgs {
    /// Adds the flags given to `settings`.
    pub(crate) fn add_to(&self, settings: &mut Value) {
        settings["auth"] = json!({ "token_file": self.token_file });
        self.tls.add_to(settings);
    }
}

impl TlsArgs {
    /// Adds the flags given to `settings`.
    pub(crate) fn add_to(&self, settings: &mut Value) {
        settings["tls"] = json!(self);
        if self.insecure {
            settings["insecure"] = json!(true);
        }
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
