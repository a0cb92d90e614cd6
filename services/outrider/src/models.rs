//! `outrider models`: what of the hub is here, and bringing more.

mod families;

use std::io::Write;

use anstream::stdout;
use anyhow::bail;
use clap::{Args, Subcommand};
use model::embedded::ROLES;
#[cfg(feature = "hub")]
use model::hub::{CachedModel, Hub};
#[cfg(feature = "hub")]
use model::source::ModelReference;
use model::source::ModelSource;
use serde_json::{Value, json};

#[cfg(feature = "hub")]
use crate::progress::Bars;

/// Arguments of `outrider models`.
#[derive(Debug, Args)]
pub(crate) struct ModelsArgs {
    #[command(subcommand)]
    action: ModelsAction,
}

#[derive(Debug, Subcommand)]
enum ModelsAction {
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
    /// Lists the families of models, and the engines that compute each; the first is chosen where nobody says.
    Families {
        /// Prints one JSON array.
        #[arg(long)]
        json: bool,
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
        ModelsAction::Pull { models } => {
            // Requests block; an interrupt must still end the program.
            let bars = Bars::on_stderr();
            let shown = bars.clone();
            let pulling = tokio::task::spawn_blocking(move || pull(&models, &shown));
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
        ModelsAction::Pull { .. } => {
            bail!("this build cannot ask the hub: build with the feature \"hub\"")
        }
        ModelsAction::Families { json } => families::list(json),
        ModelsAction::List { json } => list(json),
    }
}

/// Downloads `models`, one after the other; `bars` shows how far that is.
#[cfg(feature = "hub")]
fn pull(models: &[String], bars: &Bars) -> anyhow::Result<()> {
    let mut wanted = Vec::new();
    for name in models {
        match ModelReference::parse(name)? {
            ModelReference::Hub(reference) => wanted.push(reference),
            _ => bail!("{name} is no model of the hub, expected org/name[@revision][:file.gguf]"),
        }
    }
    let hub = Hub::from_env()?.observed(bars.observer());
    for reference in &wanted {
        let snapshot = hub.pull(reference)?;
        let mut out = stdout().lock();
        writeln!(out, "{reference}")?;
        writeln!(out, "  commit {}", snapshot.commit)?;
        writeln!(out, "  path   {}", snapshot.path.display())?;
        for file in &snapshot.files {
            let (size, hash) = (file.size, file.labelled_hash());
            writeln!(out, "  {}  {size} bytes  {hash}", file.name)?;
        }
    }
    Ok(())
}

/// A model that needs no download.
struct LocalModel {
    json: Value,
    /// The same for people.
    text: String,
}

/// Prints the models that need no download.
fn list(as_json: bool) -> anyhow::Result<()> {
    let mut models = embedded();
    models.extend(cached()?);
    let mut out = stdout().lock();
    if as_json {
        let models: Vec<_> = models.into_iter().map(|model| model.json).collect();
        writeln!(out, "{}", serde_json::to_string_pretty(&models)?)?;
        return Ok(());
    }
    for model in &models {
        writeln!(out, "{}", model.text)?;
    }
    Ok(())
}

/// Returns those compiled in.
fn embedded() -> Vec<LocalModel> {
    let mut models = Vec::new();
    for role in ROLES {
        let source = ModelSource::embedded(role);
        let Ok(checkpoint) = source.open() else {
            continue;
        };
        let (name, config) = (&source.path, checkpoint.config());
        let text = format!("{name}\n  built in");
        let json = json!({
            "name": name,
            "vocab_size": config.vocab_size,
            "context_len": config.context_len,
            "files": [],
            "revisions": [],
            "complete": true,
            "missing": null,
        });
        models.push(LocalModel { json, text });
    }
    models
}

/// Returns those of the hub, one for each commit.
#[cfg(feature = "hub")]
fn cached() -> anyhow::Result<Vec<LocalModel>> {
    let models = Hub::from_env()?.cached().into_iter();
    Ok(models.map(of_hub).collect())
}

#[cfg(not(feature = "hub"))]
#[allow(clippy::unnecessary_wraps)]
fn cached() -> anyhow::Result<Vec<LocalModel>> {
    Ok(Vec::new())
}

#[cfg(feature = "hub")]
fn of_hub(model: CachedModel) -> LocalModel {
    let CachedModel {
        snapshot,
        revisions,
        missing,
    } = model;
    let (name, commit) = (&snapshot.repo, &snapshot.commit);
    let bytes: u64 = snapshot.files.iter().map(|file| file.size).sum();
    let mut lines = vec![name.clone()];
    // There is no commit where not one file is whole.
    if !commit.is_empty() {
        lines.push(format!("  commit {commit}  {}", revisions.join(", ")));
    }
    lines.push(format!("  {bytes} bytes in {} files", snapshot.files.len()));
    if let Some(missing) = &missing {
        lines.push(format!(
            "  incomplete: {missing}; `outrider models pull {name}` completes it"
        ));
    }
    let mut files = Vec::new();
    for file in &snapshot.files {
        lines.push(format!("    {}  {} bytes", file.name, file.size));
        files.push(json!({ "name": file.name, "bytes": file.size, "hash": file.labelled_hash() }));
    }
    let json = json!({
        "name": name,
        "commit": commit,
        "revisions": revisions,
        "complete": missing.is_none(),
        "missing": missing,
        "path": snapshot.path,
        "bytes": bytes,
        "files": files,
    });
    let text = lines.join("\n");
    LocalModel { json, text }
}
