//! Paper D: token, block and greedy block verification at block lengths 4, 6 and 8 (its Tables 2 to 4), and its toy (Figure 2).

use client::Client;
use outrider::prompts;

use super::claims::Claim;
use super::resampling::{Bootstrap, whole};
use super::statistics::{SIGNIFICANT, wilcoxon};
use super::trial::{Trial, ms_a_token, ways};
use super::{Extent, toy};
use crate::measure::Measured;
use crate::quality::Score;
use crate::report::{BenchReport, Plot, PlotAxis, number, only_json, percent, text};
use crate::request::RequestForm;

/// Its block lengths.
const LENGTHS: [u32; 3] = [4, 6, 8];

/// Outputs of each prompt, as there.
const REPEATS: usize = 3;

/// Returns tokens emitted by target forward, the paper's block efficiency.
fn efficiency(measured: &Measured) -> f64 {
    measured.totals.tokens / measured.totals.target_forwards.max(1.0)
}

/// Measures, and returns what became of its claims.
pub(super) async fn measure(
    client: &Client,
    extent: Extent,
    report: &mut BenchReport,
) -> anyhow::Result<Vec<Claim>> {
    flip_coins(report)?;
    let examples = prompts::load(None, extent.prompts(16))?;
    let trial = Trial {
        client,
        examples: &examples,
        form: RequestForm::default(),
        temperature: 1.0,
        max_tokens: 64,
        repeats: if extent.quick { 1 } else { REPEATS },
        extent,
    };
    let mut gains = Vec::new();
    let mut both = Vec::new();
    for len in LENGTHS {
        let settings = format!("draft-len={len}:proposal=dense");
        let methods = ["rejection", "block", "block-greedy"].map(|it| format!("{it}:{settings}"));
        let names = ["token", "block", "block-greedy"].into_iter();
        let list = ways(names.zip(methods.iter().map(String::as_str)))?;
        let outcomes = trial.run(&list).await?;
        let base = outcomes[0].each(efficiency);
        let base_time = outcomes[0].total();
        for (way, outcome) in list.iter().zip(&outcomes) {
            let each = outcome.each(efficiency);
            let differences: Vec<f64> = each.iter().zip(&base).map(|(a, b)| a - b).collect();
            let mean = Score::mean(&each);
            let gain = Score::mean(&differences).value / Score::mean(&base).value;
            let p = (way.name != "token").then(|| wilcoxon(&differences));
            // What the paper calls block verification.
            if way.name == "block-greedy" {
                gains.push((len, gain, p.unwrap_or(1.0)));
                both.push((len, each.clone(), base.clone()));
            }
            let time = ms_a_token(&outcome.total()) / ms_a_token(&base_time);
            report.row(
                "D-blocks",
                vec![
                    text("length", len),
                    text("verification", way.name.clone()),
                    text("requests", each.len()),
                    number("efficiency", mean.value, 3)
                        .called("tokens a target call")
                        .said(format!(
                            "{:.3} ± {:.3}",
                            mean.value,
                            mean.standard_error.unwrap_or_default()
                        )),
                    only_json("efficiency_error", mean.standard_error),
                    percent("gain", gain, 2).called("gain over token"),
                    number("p", p, 4),
                    number("time", time, 3).called("time over token"),
                ],
            )?;
        }
    }
    let found = gains
        .iter()
        .map(|(len, gain, p)| format!("L={len}: {:+.2}% (p={p:.3})", 100.0 * gain));
    let mut claims = vec![Claim {
        of: "D, Tables 2 to 4",
        says: "greedy block verification emits more tokens a call than token verification: with PaLM-2 0.2 to 0.8% at L=4, 0.9 to 1.9% at \
               L=6, 1.5 to 2.8% at L=8",
        found: found.collect::<Vec<_>>().join(", "),
        holds: (gains.iter())
            .map(|(_, gain, p)| *gain > 0.0 && *p < SIGNIFICANT)
            .collect(),
        but: "the gain is smaller than so few requests can show",
    }];
    claims.extend(longer(&both, &trial.bootstrap()));
    Ok(claims)
}

/// Returns the gain in efficiency over token verification, of the requests at `picks`.
fn gain(each: &[f64], base: &[f64], picks: &[usize]) -> f64 {
    let sum = |of: &[f64]| -> f64 { picks.iter().map(|&pick| of[pick]).sum() };
    sum(each) / sum(base) - 1.0
}

/// Whether the gain of the longest blocks is above that of the shortest. Each length has its efficiencies by block and by token.
fn longer(lengths: &[(u32, Vec<f64>, Vec<f64>)], bootstrap: &Bootstrap) -> Option<Claim> {
    let (first, last) = (lengths.first()?, lengths.last()?);
    let of = |(_, each, base): &(u32, Vec<f64>, Vec<f64>), picks: &[usize]| gain(each, base, picks);
    let all = whole(first.1.len());
    let [short, long] = [first, last].map(|it| of(it, &all));
    let p = bootstrap.p(|picks| of(last, picks) - of(first, picks));
    Some(Claim {
        of: "D, Tables 2 to 4",
        says: "it gains more with longer blocks",
        found: format!(
            "{:+.2}% at L={}, {:+.2}% at L={} (p={p:.3})",
            100.0 * short,
            first.0,
            100.0 * long,
            last.0
        ),
        holds: vec![long > short && p < SIGNIFICANT],
        but: "most blocks end before their fourth token here, so that longer ones hardly add to the gain",
    })
}

/// Returns its figure: tokens a target call by block length.
pub(super) fn figures() -> Vec<(&'static str, Plot<'static>)> {
    vec![(
        "D-blocks",
        Plot {
            table: "D-blocks",
            caption: "Tokens a target call by block length".to_owned(),
            series: "verification",
            x: PlotAxis::of("length", "draft tokens of a block"),
            y: PlotAxis {
                error: Some("efficiency_error"),
                ..PlotAxis::of("efficiency", "tokens a target call")
            },
            ..Plot::default()
        },
    )]
}

/// Computes the toy of Figure 2.
fn flip_coins(report: &mut BenchReport) -> anyhow::Result<()> {
    // The paper's q.
    let draft = 0.75;
    for target in [0.25, 0.5, 0.65, 0.9] {
        for len in [2, 4, 8, 16] {
            let (tokens, blocks) = (
                toy::by_tokens(draft, target, len),
                toy::by_blocks(draft, target, len),
            );
            report.row(
                "D-toy",
                vec![
                    number("target", target, 2).called("p, q = .75"),
                    text("length", len),
                    number("by_tokens", tokens, 3).called("accepted by tokens"),
                    number("by_blocks", blocks, 3).called("by blocks"),
                    number("ratio", blocks / tokens, 3),
                ],
            )?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_blocks_gain_more_if_their_gain_is_larger() {
        assert!((gain(&[3.0, 6.0], &[2.0, 4.0], &[0, 1, 1]) - 0.5).abs() < 1e-12);
        let base = vec![2.0; 9];
        let short = (4, vec![2.2; 9], base.clone());
        let long = (8, vec![2.6; 9], base);
        let bootstrap = Bootstrap::new(9, 1, 0);
        for (first, last, holds) in [
            (&short, &long, true),
            (&long, &short, false),
            (&short, &short, false),
        ] {
            let claim = longer(&[first.clone(), last.clone()], &bootstrap);
            assert_eq!(claim.expect("a claim").holds, [holds]);
        }
    }
}
