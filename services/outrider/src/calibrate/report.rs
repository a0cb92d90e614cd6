//! What is printed.

use std::io::Write;

use serde_json::{Value, json};

use super::figures::MeasuredPair;
use super::forecast::{Costs, Forecast};

/// Less than that is not worth a draft model.
const PAYS: f64 = 1.05;

/// What a draft length turned out to be worth.
#[derive(Clone, Copy, Debug)]
pub(super) struct CheckedLength {
    pub(super) draft_len: u32,
    pub(super) speedup: f64,
}

/// All that was found.
pub(super) struct Report {
    pub(super) pair: MeasuredPair,
    pub(super) method: String,
    pub(super) temperature: f32,
    pub(super) prompts: usize,
    pub(super) costs: Costs,
    pub(super) forecasts: Vec<Forecast>,
    pub(super) checked: Vec<CheckedLength>,
}

impl Report {
    fn best(&self) -> Forecast {
        let all = self.forecasts.iter().copied();
        let best = all.max_by(|one, other| one.speedup.total_cmp(&other.speedup));
        best.unwrap_or(Forecast {
            draft_len: 0,
            speedup: 1.0,
            range: [1.0; 2],
        })
    }

    fn verdict(&self) -> String {
        let best = self.best();
        let [least, most] = best.range;
        let (len, speedup) = (best.draft_len, best.speedup);
        match () {
            () if speedup < PAYS => format!(
                "It does not pay: at best {speedup:.2} times the target alone, with {len} draft tokens a round. Leave the draft model \
                 out, or take one that is faster or nearer to the target."
            ),
            () if least < 1.0 => format!(
                "It may pay: {speedup:.2} times the target alone with {len} draft tokens a round, but {least:.2} to {most:.2} by what \
                 was measured. More prompts tell (--prompts, --per-kind)."
            ),
            () => format!(
                "It pays: {speedup:.2} times the target alone ({least:.2} to {most:.2}) with {len} draft tokens a round. Draft length auto, \
                 the default, finds that by itself, and rests where load makes it wrong."
            ),
        }
    }

    pub(super) fn json(&self) -> Value {
        let costs = &self.costs;
        let line = |it: super::forecast::Line| json!({"fixed_ms": it.fixed, "ms_a_draft": it.each});
        let forecasts = self
            .forecasts
            .iter()
            .map(|it| json!({"draft_len": it.draft_len, "speedup": it.speedup, "range": it.range}));
        let checked = self
            .checked
            .iter()
            .map(|it| json!({"draft_len": it.draft_len, "speedup": it.speedup}));
        json!({
            "target": self.pair.target,
            "draft": self.pair.draft,
            "is_translated": self.pair.is_translated,
            "method": self.method,
            "temperature": self.temperature,
            "prompts": self.prompts,
            "target_ms_a_token": costs.alone_ms,
            "draft": line(costs.draft),
            "verify": line(costs.verify),
            "draft_forwards": line(costs.draft_forward),
            "verify_forward": line(costs.verify_forward),
            "beside_ms_a_round": costs.beside_ms,
            "rounds": costs.rounds,
            "survival": costs.survival,
            "forecasts": forecasts.collect::<Vec<_>>(),
            "measured": checked.collect::<Vec<_>>(),
            "pays": self.best().speedup >= PAYS,
            "verdict": self.verdict(),
        })
    }

    pub(super) fn write(&self, out: &mut impl Write) -> std::io::Result<()> {
        let costs = &self.costs;
        let vocabulary = if self.pair.is_translated {
            "of another vocabulary, translated"
        } else {
            "of the same vocabulary"
        };
        writeln!(
            out,
            "'{}' drafts for '{}' ({vocabulary}): {}, temperature {}, {} prompts\n",
            self.pair.draft, self.pair.target, self.method, self.temperature, self.prompts
        )?;
        writeln!(
            out,
            "a token of the target alone  {:8.2} ms",
            costs.alone_ms
        )?;
        for (what, whole, forward) in [
            ("drafting", costs.draft, costs.draft_forward),
            ("verifying", costs.verify, costs.verify_forward),
        ] {
            writeln!(
                out,
                "{what:<28} {:8.2} ms and {:.2} a draft token (of these, forwards {:.2} and {:.2})",
                whole.fixed, whole.each, forward.fixed, forward.each
            )?;
        }
        writeln!(
            out,
            "else in a round              {:8.2} ms",
            costs.beside_ms
        )?;
        let survival: Vec<_> = costs.survival.iter().map(|it| format!("{it:.2}")).collect();
        writeln!(
            out,
            "accepted by position         {} ({} rounds)\n",
            survival.join(" "),
            costs.rounds
        )?;
        let checks = !self.checked.is_empty();
        let measured = if checks {
            "   measured  forecast over measured"
        } else {
            ""
        };
        writeln!(out, "draft tokens  times the target alone{measured}")?;
        for forecast in &self.forecasts {
            let [least, most] = forecast.range;
            let found = self
                .checked
                .iter()
                .find(|it| it.draft_len == forecast.draft_len);
            let found = found.map(|it| {
                format!(
                    "       {:8.2}  {:22.2}",
                    it.speedup,
                    forecast.speedup / it.speedup
                )
            });
            writeln!(
                out,
                "{:>12}  {:5.2} ({least:.2} to {most:.2}){}",
                forecast.draft_len,
                forecast.speedup,
                found.unwrap_or_default()
            )?;
        }
        writeln!(out, "\n{}", self.verdict())
    }
}
