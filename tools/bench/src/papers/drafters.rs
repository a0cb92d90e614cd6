//! Paper C: cascades of drafters. Its Table 1 from the formulas, acceptance by position (Figure 2), and what the drafters of this
//! process bring (Tables 2 to 4).

mod matrices;

use client::Client;
use outrider::prompts;
use speculation::cascade::ewif::{DraftShare, horizontal};

use super::Extent;
use super::claims::Claim;
use super::resampling::{Bootstrap, Ratio};
use super::statistics::{SIGNIFICANT, wilcoxon};
use super::trial::{Outcome, Trial, ms_a_token, ways};
use crate::report::{BenchReport, Plot, PlotAxis, number, percent, text};
use crate::request::RequestForm;

/// Most positions of which acceptance is told.
const POSITIONS: u32 = 16;

/// The drafters, by their place, whose blocks are long and all of one length: only there a position is as hard for all blocks.
const LONG: [usize; 2] = [2, 3];

/// Measures, and returns what became of its claims.
pub(super) async fn measure(
    client: &Client,
    extent: Extent,
    report: &mut BenchReport,
) -> anyhow::Result<Vec<Claim>> {
    let mut claims = vec![formulas(report)?];
    let examples = prompts::load(None, extent.prompts(12))?;
    let trial = Trial {
        client,
        examples: &examples,
        form: RequestForm::default(),
        temperature: 0.0,
        max_tokens: 64,
        repeats: 1,
        extent,
    };
    let long = format!("coupled:draft-len={POSITIONS}");
    let own = [
        ("target alone", "target-only"),
        ("draft model", "coupled:draft-len=4"),
        ("draft model, long blocks", &*long),
        ("Max-Gram", "coupled:drafting=max-gram:draft-len=10"),
        ("cascade", "coupled:drafting=cascade:draft-len=20"),
    ];
    let list = ways(own.into_iter().chain(matrices::MATRICES))?;
    let outcomes = trial.run(&list).await?;
    let base = ms_a_token(&outcomes[0].total());
    for (way, outcome) in list.iter().zip(&outcomes) {
        let total = outcome.total();
        report.row(
            "C-drafters",
            vec![
                text("drafts", way.name.clone()),
                number(
                    "target_calls_per_token",
                    total.totals.target_calls_per_token(),
                    3,
                )
                .called("calls/token"),
                number(
                    "draft_rate",
                    total.draft_forwards_of(0) / total.totals.tokens.max(1.0),
                    3,
                )
                .called("draft forwards/token"),
                number("speedup", base / ms_a_token(&total), 2),
            ],
        )?;
    }
    for index in LONG {
        for (position, share) in (1..).zip(outcomes[index].survival(POSITIONS as usize)) {
            let row = vec![
                text("position", position),
                text("drafts", list[index].name.clone()).across(),
                percent("accepted", share, 1).cell(),
            ];
            report.row("C-positions", row)?;
        }
    }
    claims.push(exponential(&outcomes[LONG[0]], &trial.bootstrap()));
    claims.push(quicker(&outcomes[4], &outcomes[1]));
    claims.extend(matrices::claims(&outcomes[own.len()..]));
    Ok(claims)
}

/// Whether each draft token is accepted as often as the first, given that those before it were.
fn exponential(long: &Outcome, bootstrap: &Bootstrap) -> Claim {
    let [first, later] = chances(long);
    let [one, other] = [first.whole(), later.whole()];
    let p = bootstrap.p(|picks| later.of(picks) - first.of(picks));
    let survived = long.survival(POSITIONS as usize);
    Claim {
        of: "C, Figure 2",
        says: "the n-th token of a block is accepted with probability α^n: each as often as the first, after those before it",
        found: format!(
            "{:.0}% of the first and {:.0}% of later ones whose predecessors were accepted (p={p:.3}); at position {} {:.1}%, against \
             {:.1}% by α^n",
            100.0 * one,
            100.0 * other,
            survived.len(),
            100.0 * survived.last().copied().unwrap_or(f64::NAN),
            100.0 * one.powi(survived.len() as i32)
        ),
        holds: vec![p >= SIGNIFICANT],
        but: "what follows an accepted token is accepted more often than a first one: easy tokens stand together, so that long blocks are \
              worth more than the formula says",
    }
}

/// Returns how often the first draft token of a block is accepted, and a later one after those before it were. A block that ends
/// after an accepted token, as the last of a request may, counts as if the next one had been refused.
fn chances(outcome: &Outcome) -> [Ratio; 2] {
    let answers = || outcome.answers.iter().map(|it| &it.measured.positions);
    let first = answers().map(|it| it.first().map_or([0.0; 2], |&[had, kept]| [kept, had]));
    let later = answers().map(|positions| {
        let pairs = positions.windows(2).map(|pair| {
            // Of blocks that go on, those whose token before was accepted.
            let [[_, before], [_, kept]] = [pair[0], pair[1]];
            [kept, before]
        });
        pairs.fold([0.0; 2], |sum, it| [sum[0] + it[0], sum[1] + it[1]])
    });
    [first.collect(), later.collect()].map(|parts| Ratio { parts })
}

/// Whether a cascade of drafters is quicker than its draft model alone.
fn quicker(cascade: &Outcome, model: &Outcome) -> Claim {
    let (a, b) = (cascade.each(ms_a_token), model.each(ms_a_token));
    let differences: Vec<f64> = a.iter().zip(&b).map(|(a, b)| b - a).collect();
    let p = wilcoxon(&differences);
    let (cascade, model) = (cascade.total(), model.total());
    let speed = ms_a_token(&model) / ms_a_token(&cascade);
    let [few, many] = [&cascade, &model].map(|of| of.totals.target_calls_per_token());
    Claim {
        of: "C, Tables 2 to 4",
        says: "a cascade of drafters with Max-Gram is quicker than its draft model alone: by up to 81%",
        found: format!(
            "{:+.0}% (p={p:.3}), with {few:.3} target calls a token against {many:.3}",
            100.0 * (speed - 1.0)
        ),
        holds: vec![speed > 1.0 && p < SIGNIFICANT],
        but: "the draft model costs too little here beside what a review of its drafter's tokens costs",
    }
}

/// Returns its figure: acceptance by position (Figure 2).
pub(super) fn figures() -> Vec<(&'static str, Plot<'static>)> {
    vec![(
        "C-positions",
        Plot {
            table: "C-positions",
            caption: "Drafts accepted, by position in their block".to_owned(),
            series: "drafts",
            x: PlotAxis::of("position", "position"),
            y: PlotAxis::of("accepted", "accepted, percent"),
            ..Plot::default()
        },
    )]
}

/// Computes its Table 1.
fn formulas(report: &mut BenchReport) -> anyhow::Result<Claim> {
    let share = |acceptance, tokens, cost| DraftShare {
        acceptance,
        tokens,
        cost,
    };
    // Costs are those that reproduce the printed factors.
    let (small, base) = (0.0069, 0.022);
    let rows: [(&str, &str, &[DraftShare], f64); 6] = [
        ("CNN DailyMail", "small", &[share(0.65, 9, small)], 2.65),
        ("CNN DailyMail", "base", &[share(0.73, 8, base)], 2.96),
        (
            "CNN DailyMail",
            "base, small",
            &[share(0.73, 5, base), share(0.65, 3, small)],
            3.03,
        ),
        ("WMT EnDe", "small", &[share(0.75, 12, small)], 3.61),
        ("WMT EnDe", "base", &[share(0.80, 11, base)], 3.75),
        (
            "WMT EnDe",
            "base, small",
            &[share(0.80, 5, base), share(0.75, 8, small)],
            3.93,
        ),
    ];
    let mut most = 0.0_f64;
    for (data, drafts, shares, printed) in rows {
        let found = horizontal(shares);
        most = most.max((found - printed).abs());
        report.row(
            "C-formulas",
            vec![
                text("data", data),
                text("drafts", drafts),
                number("ewif", found, 3).called("EWIF"),
                number("printed", printed, 2).called("in the paper"),
            ],
        )?;
    }
    Ok(Claim {
        of: "C, Table 1",
        says: "a horizontal cascade is worth more than either draft model alone, by formula: the printed factors follow from it",
        found: format!("all six factors within {most:.3} of the printed ones"),
        holds: vec![most < 0.006],
        but: "a formula of ours is not the paper's",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Measured, MeasuredAnswer};

    #[test]
    fn a_later_token_counts_after_those_before_it() {
        let answer = |positions: &[[f64; 2]]| MeasuredAnswer {
            measured: Measured {
                positions: positions.to_vec(),
                ..Measured::default()
            },
            ..MeasuredAnswer::default()
        };
        let outcome = Outcome {
            answers: vec![
                answer(&[[10.0, 8.0], [10.0, 6.0], [10.0, 3.0]]),
                answer(&[]),
                answer(&[[4.0, 2.0]]),
            ],
        };
        let [first, later] = chances(&outcome);
        assert_eq!(first.parts, [[8.0, 10.0], [0.0, 0.0], [2.0, 4.0]]);
        // 6 of 8, then 3 of 6.
        assert_eq!(later.parts, [[9.0, 14.0], [0.0, 0.0], [0.0, 0.0]]);
    }
}
