//! Paper A: quality against what it costs, for every way to trade one for the other (its Figures 1 to 9 and Table 2).

mod questions;

use client::Client;
use outrider::prompts::{Example, FieldNames, PromptSource};

use super::Extent;
use super::claims::Claim;
use super::trial::{Trial, Way, ms_a_token, ways};
use crate::quality::Metric;
use crate::report::{BenchReport, number, percent, text};
use crate::request::RequestForm;
use questions::Point;

/// English sentences to be translated into German; the default pair was not trained on them.
const GERMAN: &str = include_str!("../../../../models/default/tasks/german.jsonl");

/// Its methods: families, and the settings that trade quality for calls. The first is what the others are compared with. The
/// block length is the paper's 5.
const FAMILIES: [(&str, &str, &[&str]); 9] = [
    ("TargetOnly", "target-only", &[""]),
    ("SpecDecode", "rejection:draft-len=5:proposal=dense", &[""]),
    (
        "SpecDecode [Lossy]",
        "lossy:draft-len=5:proposal=dense",
        &["alpha=0.3", "alpha=0.6", "alpha=0.9"],
    ),
    (
        "BiLD",
        "bild:fallback=0.6:alpha=2",
        &["window=5", "window=10"],
    ),
    (
        "SeqCascade [Chow]",
        "sequence-cascade:mean=true",
        &["alpha=0.2", "alpha=0.5"],
    ),
    (
        "TokenCascade [Chow]",
        "token-cascade:rule=chow",
        &["alpha=0.1", "alpha=0.3", "alpha=0.5"],
    ),
    (
        "SpecCascade [Chow]",
        "spec-cascade-rejection:draft-len=5:rule=chow",
        &["alpha=0.1", "alpha=0.3", "alpha=0.5"],
    ),
    (
        "SpecCascade [OPT]",
        "spec-cascade-rejection:draft-len=5:rule=opt",
        &["alpha=0.1", "alpha=0.5", "alpha=1"],
    ),
    (
        "SpecCascade [Token]",
        "spec-cascade-rejection:draft-len=5:rule=token-v3",
        &["alpha=0.1", "alpha=0.3", "alpha=0.6", "alpha=0.9"],
    ),
];

/// Returns all its ways, with the family of each.
fn all_ways() -> anyhow::Result<(Vec<&'static str>, Vec<Way>)> {
    let each = FAMILIES.iter().flat_map(|(family, method, settings)| {
        settings.iter().map(move |setting| {
            let between = if setting.is_empty() { "" } else { ":" };
            (*family, *setting, format!("{method}{between}{setting}"))
        })
    });
    let each: Vec<_> = each.collect();
    let families = each.iter().map(|(family, ..)| *family).collect();
    let list = each
        .iter()
        .map(|(_, setting, method)| (*setting, &**method));
    Ok((families, ways(list)?))
}

/// Measures, and returns what became of its claims.
pub(super) async fn measure(
    client: &Client,
    extent: Extent,
    report: &mut BenchReport,
) -> anyhow::Result<Vec<Claim>> {
    let source = PromptSource::built_in("--task", "the built-in task", GERMAN);
    let mut examples: Vec<Example> = source.examples(&FieldNames::default())?;
    examples.truncate(extent.prompts(60));
    let (families, list) = all_ways()?;
    let temperatures: &[f32] = if extent.quick {
        &[1.0]
    } else {
        &[0.0, 0.5, 1.0]
    };
    let mut claims = Vec::new();
    for &temperature in temperatures {
        let trial = Trial {
            client,
            examples: &examples,
            form: RequestForm {
                stop: vec!["\n".to_owned()],
                ..RequestForm::default()
            },
            temperature,
            max_tokens: 64,
            repeats: 1,
            extent,
        };
        let outcomes = trial.run(&list).await?;
        let base = ms_a_token(&outcomes[0].total());
        let mut points = Vec::new();
        for ((family, way), outcome) in families.iter().zip(&list).zip(&outcomes) {
            let total = outcome.total();
            let [bleu, right] = [Metric::Bleu, Metric::Exact].map(|metric| {
                trial
                    .score(metric, outcome)
                    .map_or(f64::NAN, |score| score.value)
            });
            let point = Point {
                family,
                quality: bleu,
                latency: ms_a_token(&total) / base,
                calls: total.totals.target_calls_per_token(),
            };
            report.row(
                "A-tradeoffs",
                vec![
                    text("temperature", temperature),
                    text("method", *family),
                    text("setting", way.name.clone()),
                    percent("bleu", bleu, 1).called("BLEU"),
                    percent("right", right, 1),
                    number("target_calls_per_token", point.calls, 3).called("calls/token"),
                    number("relative_latency", point.latency, 3).called("time over target"),
                    percent("rejection_rate", total.rejection_rate(), 1).called("rejected"),
                ],
            )?;
            points.push(point);
        }
        questions::answer(temperature, &points, report)?;
        claims.extend(questions::claims(temperature, &points));
    }
    Ok(claims)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_methods_can_be_read() {
        let (families, list) = all_ways().expect("methods");
        assert_eq!(families.len(), list.len());
        assert_eq!(families[0], "TargetOnly");
    }
}
