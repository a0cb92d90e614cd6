//! `outrider models pull`.

use std::io::Write;

use anstream::stdout;
use anyhow::bail;
use model::hub::Hub;
use model::source::ModelReference;

use crate::progress::Bars;

/// Downloads `models`, one after the other; `bars` shows how far that is.
pub(super) fn run(models: &[String], bars: &Bars) -> anyhow::Result<()> {
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
