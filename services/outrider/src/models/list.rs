//! `outrider models list`.

use std::io::Write;

use anstream::stdout;
use model::embedded::ROLES;
use model::source::ModelSource;
use serde_json::{Value, json};

/// Prints the models that need no download.
pub(super) fn run(as_json: bool) -> anyhow::Result<()> {
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
