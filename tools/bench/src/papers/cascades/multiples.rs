//! Small multiples: quality over cost by temperature and block length (paper A, Figures 6 and 7), on German.

use client::Client;

use super::case::{Case, Sample, TARGET};
use super::panels::{self, Panel};
use super::tasks;
use crate::papers::Extent;
use crate::papers::claims::Claim;
use crate::papers::trial::{Trial, ways};
use crate::report::{BenchReport, number, percent, text};
use crate::request::RequestForm;

/// The table.
pub(super) const TABLE: &str = "A-multiples";

/// Most prompts.
const PROMPTS: usize = 100;

/// Methods for each block length: families and settings. At a temperature of 0 `lossy` emits what speculative decoding does.
const FAMILIES: [(&str, &str, &[&str]); 4] = [
    ("SpecDecode", "rejection:proposal=dense", &[""]),
    (
        "SpecDecode [Lossy]",
        "lossy:proposal=dense",
        &["alpha=0.3", "alpha=0.6", "alpha=0.9"],
    ),
    (
        "SpecCascade [OPT]",
        "spec-cascade-rejection:rule=opt",
        &["alpha=0.1", "alpha=0.5", "alpha=1"],
    ),
    (
        "SpecCascade [Token]",
        "spec-cascade-rejection:rule=token-v3",
        &["alpha=0.5", "alpha=0.9", "alpha=0.98"],
    ),
];

/// A method of one block length.
#[derive(Clone, Debug)]
struct Setting {
    gamma: u32,
    family: &'static str,
    /// What it differs in from others of the family.
    name: &'static str,
    method: String,
}

/// Returns the methods of these block lengths, those of one together.
fn settings(gammas: &[u32]) -> Vec<Setting> {
    let each = gammas.iter().flat_map(|&gamma| {
        FAMILIES.iter().flat_map(move |&(family, method, names)| {
            names.iter().map(move |&name| Setting {
                gamma,
                family,
                name,
                method: [method, &format!("draft-len={gamma}"), name]
                    .join(":")
                    .trim_end_matches(':')
                    .to_owned(),
            })
        })
    });
    each.collect()
}

/// Measures, and returns what became of the claims.
pub(super) async fn measure(
    client: &Client,
    extent: Extent,
    report: &mut BenchReport,
) -> anyhow::Result<Vec<Claim>> {
    let temperatures: &[f32] = if extent.quick {
        &[0.0, 1.0]
    } else {
        &[0.0, 0.1, 0.5, 1.0]
    };
    let gammas = [3, 5, 7];
    let settings = settings(&gammas);
    let named = settings.iter().map(|it| (it.name, &*it.method));
    let list = ways([("", "target-only")].into_iter().chain(named))?;
    let mut task = tasks::german()?;
    task.examples.truncate(extent.prompts(PROMPTS));
    let mut found = Vec::new();
    for &temperature in temperatures {
        let trial = Trial {
            client,
            examples: &task.examples,
            form: RequestForm {
                stop: task.stop.iter().map(|&stop| stop.to_owned()).collect(),
                ..RequestForm::default()
            },
            temperature,
            max_tokens: 64,
            repeats: 1,
            extent,
        };
        let outcomes = trial.run(&list).await?;
        let target = Sample::of(TARGET, &trial, task.metric, &outcomes[0])?;
        for gamma in gammas {
            let (mut samples, mut names) = (vec![target.clone()], vec![""]);
            for (setting, outcome) in settings.iter().zip(&outcomes[1..]) {
                if setting.gamma == gamma {
                    samples.push(Sample::of(setting.family, &trial, task.metric, outcome)?);
                    names.push(setting.name);
                }
            }
            let name = format!("T={temperature}, γ={gamma}");
            let panel = Panel {
                temperature,
                gamma,
                case: Case::new(name, samples, trial.bootstrap()),
            };
            rows(&panel, &names, report)?;
            found.push(panel);
        }
    }
    Ok(panels::claims(&found))
}

/// Adds a panel to the table, which has the block lengths side by side.
fn rows(panel: &Panel, names: &[&'static str], report: &mut BenchReport) -> anyhow::Result<()> {
    for (index, (point, name)) in panel.case.points.iter().zip(names).enumerate() {
        let error = panel.case.quality_error(index);
        let shown = format!(
            "{:.1} ± {:.1}% at {:.3}",
            100.0 * point.quality,
            100.0 * error,
            point.calls
        );
        report.row(
            TABLE,
            vec![
                text("temperature", panel.temperature),
                text("method", point.family),
                text("setting", *name),
                text("gamma", panel.gamma)
                    .said(format!("γ={}", panel.gamma))
                    .across(),
                percent("quality", point.quality, 1).said(shown).cell(),
                percent("quality_error", error, 1).hidden(),
                number("target_calls_per_token", point.calls, 3).hidden(),
                number("relative_latency", point.latency, 3).hidden(),
            ],
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_length_has_every_method() {
        let settings = settings(&[3, 7]);
        assert_eq!(settings.len(), 20);
        assert_eq!(settings[0].method, "rejection:proposal=dense:draft-len=3");
        assert_eq!(
            settings[11].method,
            "lossy:proposal=dense:draft-len=7:alpha=0.3"
        );
        let named = settings.iter().map(|it| (it.name, &*it.method));
        assert_eq!(ways(named).expect("methods").len(), 20);
    }
}
