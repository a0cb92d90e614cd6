//! Paper C: cascades of drafters. Its Table 1 from the formulas, acceptance by position (Figure 2), and what the drafters of this
//! process bring (Tables 2 to 4).

use client::Client;
use outrider::prompts;
use speculation::cascade::ewif::{DraftShare, horizontal};

use super::Extent;
use super::claims::Claim;
use super::trial::{Trial, ms_a_token, ways};
use crate::report::{BenchReport, number, percent, text};
use crate::request::RequestForm;

/// Most positions of which acceptance is told.
const POSITIONS: u32 = 16;

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
    let list = ways([
        ("target alone", "target-only"),
        ("draft model", "coupled:draft-len=4"),
        ("draft model, long blocks", &*long),
        ("Max-Gram", "coupled:drafting=max-gram:draft-len=10"),
        ("cascade", "coupled:drafting=cascade:draft-len=20"),
    ])?;
    let outcomes = trial.run(&list).await?;
    let base = ms_a_token(&outcomes[0].total());
    let calls = |index: usize| outcomes[index].total().totals.target_calls_per_token();
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
    let survived = outcomes[2].survival(POSITIONS as usize);
    for (position, share) in (1..).zip(&survived) {
        let row = vec![text("position", position), percent("accepted", *share, 1)];
        report.row("C-positions", row)?;
    }
    let [first, last] =
        [survived.first(), survived.last()].map(|it| it.copied().unwrap_or(f64::NAN));
    claims.push(Claim {
        of: "C, Figure 2",
        says: "later tokens of a block are accepted less often, so that smaller drafters will do for them",
        found: format!("{:.0}% at the first, {:.0}% at position {POSITIONS}", 100.0 * first, 100.0 * last),
        holds: vec![last < first],
    });
    claims.push(Claim {
        of: "C, Tables 2 to 4",
        says: "a cascade of drafters with Max-Gram needs no more target calls than the draft model alone",
        found: format!("{:.3} against {:.3} calls a token", calls(4), calls(1)),
        holds: vec![calls(4) <= calls(1)],
    });
    Ok(claims)
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
        says: "a horizontal cascade is worth more than either draft model alone, by formula",
        found: format!("all six factors within {most:.3} of the printed ones"),
        holds: vec![most < 0.006],
    })
}
