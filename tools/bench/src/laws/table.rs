//! The cost of acceptance as a table, and as JSON.

use std::io::{self, Write};

use serde_json::{Value, json};
use speculation::methods::names;
use speculation::proposal::ProposalForm;

use super::case::{Case, FORMS, Figures, TOP, VERIFICATIONS};
use super::inputs::Inputs;
use crate::timing::median;

/// One figure.
pub(super) fn json(inputs: &Inputs, case: &Case, figures: &Figures) -> Value {
    json!({
        "vocab": inputs.vocab,
        "target": case.target,
        "verification": names::of_verification(case.choice.verification),
        "proposal": names::of_proposal(case.choice.proposal),
        "positions": figures.positions,
        "softmax_us": figures.softmax_us,
        "position_us": figures.position_us,
        "ratio": figures.ratio,
        "goal": case.goal,
        "overlap": inputs.overlap(),
    })
}

/// All figures over one vocabulary: a row a target distribution, a column a verification and form.
///
/// # Errors
/// If nobody can read it.
pub(super) fn write(
    out: &mut impl Write,
    inputs: &Inputs,
    measured: &[(Case, Figures)],
) -> io::Result<()> {
    let softmax = median(measured.iter().map(|(_, of)| of.softmax_us).collect());
    writeln!(
        out,
        "V={}: one softmax takes {softmax:.2} us; a position as a multiple of it. Laws overlap by {:.2}.",
        inputs.vocab,
        inputs.overlap()
    )?;
    write!(out, "{:<16}", "target")?;
    for (verification, _) in VERIFICATIONS {
        write!(out, " {:>15}", names::of_verification(verification))?;
    }
    write!(out, "\n{:<16}", "")?;
    for _ in VERIFICATIONS {
        for form in FORMS {
            let name = match form {
                ProposalForm::Sparse { .. } => format!("K={TOP}"),
                _ => "dense".to_owned(),
            };
            write!(out, " {name:>7}")?;
        }
    }
    writeln!(out)?;
    let mut rest = measured;
    while let Some((first, _)) = rest.first() {
        let (row, after): (Vec<_>, Vec<_>) = rest
            .iter()
            .partition(|(case, _)| case.target == first.target);
        write_row(out, &first.target, &row)?;
        rest = &rest[rest.len() - after.len()..];
    }
    let goals = VERIFICATIONS
        .map(|(verification, goal)| format!("{} {goal}", names::of_verification(verification)));
    writeln!(out, "* above its goal: {}\n", goals.join(", "))
}

fn write_row(out: &mut impl Write, target: &str, row: &[&(Case, Figures)]) -> io::Result<()> {
    write!(out, "{target:<16}")?;
    for (verification, goal) in VERIFICATIONS {
        for form in FORMS {
            let found = row.iter().find(|(case, _)| {
                case.choice.verification == verification && case.choice.proposal == form
            });
            let cell = found.map_or_else(
                || "- ".to_owned(),
                |(_, figures)| {
                    let mark = if figures.ratio > goal { "*" } else { " " };
                    format!("{:.2}{mark}", figures.ratio)
                },
            );
            write!(out, " {cell:>7}")?;
        }
    }
    writeln!(out)
}
