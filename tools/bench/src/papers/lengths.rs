//! Paper B: how far to draft. Discard and verification rate of fixed lengths, a threshold of confidence and learned stopping (its
//! Figure 4 and Table 1), beside the oracle that knows what will be accepted (Lemma 2.1); and heads of several sizes (Table 3).

mod grid;
mod heads;
mod pareto;

use client::Client;
use outrider::config::Config;
use outrider::prompts;

use super::Extent;
use super::claims::Claim;
use super::statistics::{SIGNIFICANT, wilcoxon};
use super::trial::{Outcome, Trial, Way, ms_a_token, ways};
use crate::measure::Measured;
use crate::report::{BenchReport, Facet, Plot, PlotAxis, Row, number, text};
use crate::request::{CutArgs, RequestForm};
use pareto::Rates;

/// Families: the first are its baseline's lengths.
const FAMILIES: [(&str, &[&str]); 3] = [
    (FIXED, &["2", "4", "6", "8", "10", "12", "14"]),
    (
        "confidence",
        &["confidence:0.2", "confidence:0.4", "confidence:0.6"],
    ),
    (
        LEARNED,
        &[
            "specdec++:0.3",
            "specdec++:0.5",
            "specdec++:0.7",
            "specdec++:0.9",
        ],
    ),
];
const FIXED: &str = "fixed";
const LEARNED: &str = "SpecDec++";

/// How tokens are drawn, and of how many: all, or the most likely of the paper's experiments (0 keeps all).
const SAMPLINGS: [(&str, u32); 2] = [("T=1", 0), ("T=1, top-k 50", TOP_K)];
const TOP_K: u32 = 50;

/// The table of rates.
const TABLE: &str = "B-lengths";

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

/// Measures, and returns what became of its claims. Heads are trained where the models are the built-in pair, in this process.
pub(super) async fn measure(
    client: &Client,
    builtin: Option<&Config>,
    extent: Extent,
    report: &mut BenchReport,
) -> anyhow::Result<Vec<Claim>> {
    let mut examples = prompts::load(None, extent.prompts(16))?;
    examples.retain(|it| ["story", "maths", "python"].contains(&&*it.kind));
    let each = FAMILIES.iter().flat_map(|(family, lengths)| {
        lengths
            .iter()
            .map(move |len| (*family, format!("rejection:proposal=dense:draft-len={len}")))
    });
    let each: Vec<(&str, String)> = each.collect();
    let list = ways(each.iter().map(|(family, method)| (*family, &**method)))?;
    let (mut gains, mut frontiers) = (Vec::new(), Vec::new());
    for (sampling, top_k) in SAMPLINGS {
        let cuts = CutArgs {
            top_k,
            ..CutArgs::default()
        };
        let trial = Trial {
            client,
            examples: &examples,
            form: RequestForm {
                cuts,
                ..RequestForm::default()
            },
            temperature: 1.0,
            max_tokens: 64,
            repeats: 1,
            extent,
        };
        let outcomes = trial.run(&list).await?;
        for (way, outcome) in list.iter().zip(&outcomes) {
            let total = outcome.total();
            let names = [sampling, &way.name, &way.method.to_string()];
            let ms = Some(ms_a_token(&total));
            report.row(TABLE, row(names, rates(&total), ms))?;
        }
        if let Some(longest) = outcomes_of(FIXED, &list, &outcomes).last() {
            report.row(TABLE, oracle(sampling, &longest.total()))?;
        }
        gains.extend(Gain::of(sampling, &list, &outcomes));
        let of = |family| -> Vec<Rates> {
            let outcomes = outcomes_of(family, &list, &outcomes);
            outcomes.map(Rates::of).collect()
        };
        let learnt = of(LEARNED);
        let names = FAMILIES[2].1;
        let compared = pareto::compare(&of(FIXED), &learnt, &trial.bootstrap());
        frontiers.extend((names.iter().zip(compared)).map(|(name, it)| (sampling, *name, it)));
    }
    let mut claims = vec![quicker(&gains), pareto::claim(&frontiers)];
    match builtin {
        Some(config) => claims.extend(heads::measure(config, extent, report).await?),
        None => report.note(
            "B-heads, B-thresholds: left out; heads are trained for the built-in pair in this process, `outrider-bench train-head` \
             trains others",
        ),
    }
    Ok(claims)
}

/// Returns what a family gave, in its order.
fn outcomes_of<'a>(
    family: &'a str,
    list: &'a [Way],
    outcomes: &'a [Outcome],
) -> impl Iterator<Item = &'a Outcome> {
    let all = list.iter().zip(outcomes);
    all.filter(move |(way, _)| way.name == family)
        .map(|(_, outcome)| outcome)
}

/// By how much learned stopping is quicker than the best fixed length, each at its best.
#[derive(Debug)]
struct Gain {
    sampling: &'static str,
    share: f64,
    p: f64,
}

impl Gain {
    fn of(sampling: &'static str, list: &[Way], outcomes: &[Outcome]) -> Option<Self> {
        let best = |family| {
            let by_speed =
                |a: &&Outcome, b: &&Outcome| modelled(&a.total()).total_cmp(&modelled(&b.total()));
            outcomes_of(family, list, outcomes).max_by(by_speed)
        };
        let (fixed, learnt) = (best(FIXED)?, best(LEARNED)?);
        let (a, b) = (learnt.each(modelled), fixed.each(modelled));
        let differences: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a - b).collect();
        Some(Self {
            sampling,
            share: modelled(&learnt.total()) / modelled(&fixed.total()) - 1.0,
            p: wilcoxon(&differences),
        })
    }
}

fn quicker(gains: &[Gain]) -> Claim {
    let words = gains.iter().map(|it| {
        let Gain { sampling, share, p } = it;
        format!("{sampling}: {:+.1}% (p={p:.3})", 100.0 * share)
    });
    Claim {
        of: "B, Table 1",
        says: "learned stopping is quicker than the best fixed length: by 7, 11 and 9% with Llama 2 7B and 70B; here by forwards at the \
               paper's costs",
        found: words.collect::<Vec<_>>().join("; "),
        holds: gains
            .iter()
            .map(|it| it.share > 0.0 && it.p < SIGNIFICANT)
            .collect(),
        but: "so many drafts are refused here that two to four tokens are the best fixed length, and of so short blocks there is little to cut",
    }
}

fn row(names: [&str; 3], [discard, verification, draft]: [f64; 3], ms: Option<f64>) -> Row {
    let [sampling, family, method] = names;
    vec![
        text("sampling", sampling),
        text("family", family),
        text("method", method),
        number("discard_rate", discard, 3).called("discarded/token"),
        number("verification_rate", verification, 3).called("calls/token"),
        number("draft_rate", draft, 3).called("draft forwards/token"),
        number("modelled", 1.0 / (verification + DRAFT_COST * draft), 3)
            .called("speedup by forwards"),
        number("ms_per_token", ms, 3).called("ms/token"),
    ]
}

/// Returns the row of an oracle that drafts just what the target accepts of `longest` (Lemma 2.1): it discards nothing, and calls the
/// target once for each token that is not an accepted draft. The longest length drafts on beyond nearly every refusal.
fn oracle(sampling: &str, longest: &Measured) -> Row {
    let accepted = longest.totals.accepted / longest.totals.tokens.max(1.0);
    let names = [sampling, "oracle", "Lemma 2.1, of the longest fixed length"];
    row(names, [0.0, 1.0 - accepted, accepted], None)
}

/// Returns its figures: verification over discard rate, of methods (Figure 4) and of heads.
pub(super) fn figures() -> Vec<(&'static str, Plot<'static>)> {
    let facet = |key, name| Some(Facet { key, name });
    let rates = |table, caption: &str, series| Plot {
        table,
        caption: caption.to_owned(),
        series,
        x: PlotAxis::of("discard_rate", "discarded drafts a token"),
        y: PlotAxis::of("verification_rate", "target calls a token"),
        ..Plot::default()
    };
    vec![
        (
            "B-pareto",
            Plot {
                columns: facet("sampling", ""),
                ..rates(
                    TABLE,
                    "Verification over discard rate: left and below is better",
                    "family",
                )
            },
        ),
        (
            "B-heads-pareto",
            Plot {
                columns: facet("w_rej", "refusals weighted"),
                ..rates(
                    heads::THRESHOLDS,
                    "Heads by depth D: verification over discard rate, replayed",
                    "depth",
                )
            },
        ),
    ]
}
