//! Flags of commands that connect, and of services that are connected to.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

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
#[derive(Clone, Debug, Default, Args)]
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
        settings["tls"] = json!({
            "ca_file": self.ca_file,
            "cert_file": self.cert_file,
            "key_file": self.key_file,
        });
        if self.insecure {
            settings["insecure"] = json!(true);
        }
    }
}
