//! `outrider health`.

use std::io::Write;
use std::process::ExitCode;

use anstream::stdout;
use anyhow::bail;
use clap::Args;
use net::listen::OptionalListen;
use ops::admin::{self, AdminConfig};

use crate::cluster::reachable;

/// Arguments of `outrider health`.
#[derive(Debug, Args)]
pub(crate) struct HealthArgs {
    /// The admin port to ask, http://HOST:PORT; that of the configuration (admin.listen) if left out.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
}

/// Asks a process whether it is ready; prints one line.
pub(crate) async fn run(args: HealthArgs, config: &AdminConfig) -> anyhow::Result<ExitCode> {
    let url = match (args.url, config.listen) {
        (Some(url), _) => url,
        (None, OptionalListen::At(listen)) => format!("http://{}", reachable(listen.address())),
        (None, OptionalListen::Off) => {
            bail!("admin.listen is off in this configuration, so nobody can be asked; give --url")
        }
    };
    let requested = admin::readiness(&url).await?;
    writeln!(stdout(), "{}", requested.line)?;
    Ok(ExitCode::from(u8::from(!requested.is_ready)))
}
