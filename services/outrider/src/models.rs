//! `outrider models`: what of the hub is here, and bringing more.

#[cfg(feature = "hub")]
mod pull;

use std::io::Write;

use anstream::stdout;
use clap::{Args, Subcommand};
use model::embedded::ROLES;
use model::source::ModelSource;
use serde_json::{Value, json};

#[cfg(feature = "hub")]
use crate::progress::Bars;

/// Arguments of `outrider models`.
#[derive(Debug, Args)]
pub(crate) struct ModelsArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Downloads models from the hub into its cache, or goes on where that stopped.
    ///
    /// Files that are here already are compared with their hashes, and downloaded again if they are damaged;
    /// commands that only use a model trust what is here.
    ///
    /// HF_HOME or HF_HUB_CACHE says where the cache is, HF_TOKEN gives access to what is not public, HF_ENDPOINT
    /// names another hub, and with HF_HUB_OFFLINE=1 only the cache is looked at.
    Pull {
        /// org/name, org/name@revision or org/name:file.gguf.
        #[arg(required = true, value_name = "MODEL")]
        models: Vec<String>,
    },
    /// Lists the models in the hub's cache, and those built in. Of downloads that did not end it is said what
    /// they lack.
    List {
        /// Prints one JSON array. A failure is {"error": {"message": ...}}.
        #[arg(long)]
        json: bool,
    },
}

/// Downloads or lists.
pub(crate) async fn run(args: ModelsArgs) -> anyhow::Result<()> {
    match args.action {
        #[cfg(feature = "hub")]
        Action::Pull { models } => {
            // Requests block; an interrupt must still end the program.
            let bars = Bars::new();
            let shown = bars.clone();
            let pulling = tokio::task::spawn_blocking(move || pull::run(&models, &shown));
            tokio::select! {
                pulled = pulling => pulled?,
                signal = tokio::signal::ctrl_c() => {
                    signal?;
                    bars.end();
                    anstream::eprintln!("interrupted: the same command goes on from here");
                    std::process::exit(crate::global::INTERRUPTED.into())
                }
            }
        }
        #[cfg(not(feature = "hub"))]
        Action::Pull { .. } => {
            anyhow::bail!("this build cannot ask the hub: build with the feature \"hub\"")
        }
        Action::List { json } => list(json),
    }
}

/// Prints the models that need no download.
fn list(as_json: bool) -> anyhow::Result<()> {
    let mut models = embedded();
    models.extend(cached()?);
    let mut out = stdout().lock();
    if as_json {
        writeln!(out, "{}", serde_json::to_string_pretty(&models)?)?;
        return Ok(());
    }
    for model in &models {
        let text = |key: &str| model[key].as_str().unwrap_or_default();
        let revisions: Vec<&str> = model["revisions"].as_array().map_or(Vec::new(), |names| {
            names.iter().filter_map(Value::as_str).collect()
        });
        writeln!(out, "{}", text("name"))?;
        if !text("commit").is_empty() {
            let commit = text("commit");
            writeln!(out, "  commit {commit}  {}", revisions.join(", "))?;
        }
        let files = model["files"].as_array().map_or(0, Vec::len);
        match model["bytes"].as_u64() {
            Some(bytes) => writeln!(out, "  {bytes} bytes in {files} files")?,
            None => writeln!(out, "  built in")?,
        }
        if let Some(missing) = model["missing"].as_str() {
            let name = text("name");
            writeln!(
                out,
                "  incomplete: {missing}; `outrider models pull {name}` completes it"
            )?;
        }
        for file in model["files"].as_array().into_iter().flatten() {
            let name = file["name"].as_str().unwrap_or_default();
            writeln!(out, "    {name}  {} bytes", file["bytes"])?;
        }
    }
    Ok(())
}

/// Those compiled in.
fn embedded() -> Vec<Value> {
    let opened = ROLES.iter().filter_map(|role| {
        let source = ModelSource::embedded(role);
        Some((source.path.clone(), source.open().ok()?))
    });
    opened
        .map(|(name, checkpoint)| {
            let config = checkpoint.config();
            json!({
                "name": name,
                "vocab_size": config.vocab_size,
                "context_len": config.context_len,
                "files": [],
                "revisions": [],
                "complete": true,
                "missing": null,
            })
        })
        .collect()
}

/// Those of the hub, one for each commit.
#[cfg(feature = "hub")]
fn cached() -> anyhow::Result<Vec<Value>> {
    let hub = model::hub::Hub::from_env()?;
    let entry = |model: model::hub::CachedModel| {
        let snapshot = model.snapshot;
        let bytes: u64 = snapshot.files.iter().map(|file| file.size).sum();
        let files: Vec<Value> = snapshot
            .files
            .iter()
            .map(|file| json!({ "name": file.name, "bytes": file.size, "hash": file.labelled_hash() }))
            .collect();
        json!({
            "name": snapshot.repo,
            "commit": snapshot.commit,
            "revisions": model.revisions,
            "complete": model.missing.is_none(),
            "missing": model.missing,
            "path": snapshot.path,
            "bytes": bytes,
            "files": files,
        })
    };
    Ok(hub.cached().into_iter().map(entry).collect())
}

#[cfg(not(feature = "hub"))]
#[allow(clippy::unnecessary_wraps)]
fn cached() -> anyhow::Result<Vec<Value>> {
    Ok(Vec::new())
}
