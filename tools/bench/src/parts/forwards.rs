//! The forward of several positions against that of one: what verifying a block costs.

use super::PartsArgs;
use super::row::PartRow;
use super::subjects::Subjects;
use crate::timing::in_turn;
use outrider::progress;

/// Positions of a forward; the first is what the others are compared with.
const POSITIONS: [usize; 5] = [1, 2, 4, 8, 16];

/// Measures every model at every context.
pub(super) fn rows(args: &PartsArgs, subjects: &mut Subjects) -> anyhow::Result<Vec<PartRow>> {
    let most = POSITIONS[POSITIONS.len() - 1];
    let mut rows = Vec::new();
    for subject in subjects.all()? {
        let tokens = subject.tokens(most);
        for &context in &args.contexts {
            progress::show(&format!("forwards: {}, {context} tokens", subject.name))?;
            let mut cache = subject.cache(context, most)?;
            let figures = in_turn(args.repeats, &POSITIONS, |&positions| {
                subject.verify(&mut cache, &tokens[..positions], &[], &[])
            })?;
            let measured = POSITIONS.iter().zip(&figures).skip(1);
            rows.extend(measured.map(|(positions, of)| PartRow {
                on: subject.name.clone(),
                context,
                what: format!("{positions} positions"),
                baseline: "1 position".to_owned(),
                us: of.us,
                baseline_us: figures[0].us,
                ratio: of.ratio,
                goal: None,
            }));
        }
    }
    Ok(rows)
}
