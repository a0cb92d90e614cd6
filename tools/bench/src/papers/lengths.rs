//! Paper B: how far to draft. Discard and verification rate of fixed lengths, a threshold of confidence and learned stopping (its
//! Figure 4 and Table 1), beside the oracle that knows what will be accepted (Lemma 2.1).

use client::Client;
use outrider::prompts;

use super::Extent;
use super::claims::Claim;
use super::statistics::{SIGNIFICANT, wilcoxon};
use super::trial::{Outcome, Trial, Way, ms_a_token, ways};
use crate::measure::Measured;
use crate::report::{BenchReport, Row, number, text};
use crate::request::RequestForm;

/// Families: the first are its baseline's lengths.
const FAMILIES: [(&str, &[&str]); 3] = [
    ("fixed", &["2", "4", "6", "8", "10", "12", "14"]),
    (
        "confidence",
        &["confidence:0.2", "confidence:0.4", "confidence:0.6"],
    ),
    (
        "SpecDec++",
        &[
            "specdec++:0.3",
            "specdec++:0.5",
            "specdec++:0.7",
            "specdec++:0.9",
        ],
    ),
];

/// What a draft forward costs, in target forwards, as with the paper's models of 7 and 70 billion parameters (its Table 2: .0231
/// and .111 s).
const DRAFT_COST: f64 = 0.21;

/// Returns draft tokens not emitted, target forwards and draft forwards, each by emitted token.
fn rates(measured: &Measured) -> [f64; 3] {
    let tokens = measured.totals.tokens.max(1.0);
    [
        measured.discarded / tokens,
        measured.totals.target_forwards / tokens,
        measured.draft_forwards_of(0) / tokens,
    ]
}

/// Returns the speedup over the target alone where only forwards cost (equation 2.1).
fn modelled(measured: &Measured) -> f64 {
    let [_, target, draft] = rates(measured);
    1.0 / (target + DRAFT_COST * draft)
}

/// Measures, and returns what became of its claims.
pub(super) async fn measure(
    client: &Client,
    extent: Extent,
    report: &mut BenchReport,
) -> anyhow::Result<Vec<Claim>> {
    let mut examples = prompts::load(None, extent.prompts(16))?;
    examples.retain(|it| ["story", "maths", "python"].contains(&&*it.kind));
    let trial = Trial {
        client,
        examples: &examples,
        form: RequestForm::default(),
        temperature: 1.0,
        max_tokens: 64,
        repeats: 1,
        extent,
    };
    let each = FAMILIES.iter().flat_map(|(family, lengths)| {
        lengths
            .iter()
            .map(move |len| (*family, format!("rejection:proposal=dense:draft-len={len}")))
    });
    let each: Vec<(&str, String)> = each.collect();
    let list = ways(each.iter().map(|(family, method)| (*family, &**method)))?;
    let outcomes = trial.run(&list).await?;
    for (way, outcome) in list.iter().zip(&outcomes) {
        let total = outcome.total();
        let [discard, verification, draft] = rates(&total);
        report.row(
            "B-lengths",
            vec![
                text("family", way.name.clone()),
                text("method", way.method.to_string()),
                number("discard_rate", discard, 3).called("discarded/token"),
                number("verification_rate", verification, 3).called("calls/token"),
                number("draft_rate", draft, 3).called("draft forwards/token"),
                number("modelled", modelled(&total), 3).called("speedup by forwards"),
                number("ms_per_token", ms_a_token(&total), 3).called("ms/token"),
            ],
        )?;
    }
    let best = |family: &str| {
        let of_it = list
            .iter()
            .zip(&outcomes)
            .filter(|(way, _)| way.name == family);
        let by_speed =
            |a: &&Outcome, b: &&Outcome| modelled(&a.total()).total_cmp(&modelled(&b.total()));
        of_it.map(|(_, outcome)| outcome).max_by(by_speed)
    };
    if let Some(longest) = longest_fixed(&list, &outcomes) {
        report.row("B-lengths", oracle(&longest.total()))?;
    }
    let (Some(fixed), Some(learnt)) = (best("fixed"), best("SpecDec++")) else {
        return Ok(Vec::new());
    };
    let (a, b) = (learnt.each(modelled), fixed.each(modelled));
    let differences: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a - b).collect();
    let gain = modelled(&learnt.total()) / modelled(&fixed.total()) - 1.0;
    let p = wilcoxon(&differences);
    Ok(vec![Claim {
        of: "B, Table 1",
        says: "learned stopping is quicker than the best fixed length: by 7, 11 and 9% with Llama 2 7B and 70B",
        found: format!(
            "{:+.1}% by forwards at the paper's costs (p={p:.3})",
            100.0 * gain
        ),
        holds: vec![gain > 0.0 && p < SIGNIFICANT],
    }])
}

/// Returns what the longest fixed length gave: it drafts on beyond nearly every refusal.
fn longest_fixed<'a>(list: &[Way], outcomes: &'a [Outcome]) -> Option<&'a Outcome> {
    let fixed = list
        .iter()
        .zip(outcomes)
        .filter(|(way, _)| way.name == FAMILIES[0].0);
    fixed.map(|(_, outcome)| outcome).last()
}

/// Returns the row of an oracle that drafts just what the target accepts of `longest` (Lemma 2.1): it discards nothing, and calls the
/// target once for each token that is not an accepted draft.
fn oracle(longest: &Measured) -> Row {
    let accepted = longest.totals.accepted / longest.totals.tokens.max(1.0);
    let called = 1.0 - accepted;
    vec![
        text("family", "oracle"),
        text("method", "Lemma 2.1, of the longest fixed length"),
        number("discard_rate", 0.0, 3).called("discarded/token"),
        number("verification_rate", called, 3).called("calls/token"),
        number("draft_rate", accepted, 3).called("draft forwards/token"),
        number("modelled", 1.0 / (called + DRAFT_COST * accepted), 3).called("speedup by forwards"),
        number("ms_per_token", None, 3).called("ms/token"),
    ]
}
