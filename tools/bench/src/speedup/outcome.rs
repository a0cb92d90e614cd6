//! What was found on one pair at one temperature, as text and as JSON.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::calibration::Calibrated;
use super::trial::{Compared, DraftLen};
use crate::table::or_dash;

/// What the synthetic pair should gain at least.
const GOAL: f64 = 1.5;

/// A pair measured at one temperature.
pub(super) struct Outcome {
    pub(super) pair: &'static str,
    /// What the pair is, in words.
    pub(super) description: String,
    pub(super) temperature: f32,
    /// How the synthetic pair was made.
    pub(super) calibrated: Option<Calibrated>,
    /// Draft lengths tried, on prompts of their own.
    pub(super) sweep: Vec<(DraftLen, Compared)>,
    pub(super) prompts: usize,
    /// The best fixed one of them, and goodput, measured on other prompts.
    pub(super) compared: Vec<(DraftLen, Compared)>,
}

impl Outcome {
    pub(super) fn json(&self) -> Value {
        let sweep = self.sweep.iter().map(|(draft_len, compared)| {
            json!({
                "draft_len": draft_len.to_string(),
                "speedup": compared.speedup(),
                "draft_acceptance_rate": compared.method.acceptance_rate(),
            })
        });
        let compared = self.compared.iter().map(|(draft_len, compared)| {
            let method = &compared.method;
            let times = &method.times;
            let mean = |ms: f64| ms / times.counted.max(1.0);
            json!({
                "draft_len": draft_len.to_string(),
                "speedup": compared.speedup(),
                "tokens": method.tokens,
                "baseline_tokens_per_second": method.tokens / compared.baseline_seconds,
                "tokens_per_second": method.tokens / compared.method_seconds,
                "draft_acceptance_rate": method.acceptance_rate(),
                "mean_acceptance_length": method.mean_acceptance_length(),
                "round_ms": {
                    "draft_forward": mean(times.draft_forward),
                    "drafter_rest": mean(times.draft_rest),
                    "verify_forward": mean(times.verify_forward),
                    "verifier_rest": mean(times.verify_rest),
                    "wire": mean(times.wire),
                },
            })
        });
        json!({
            "pair": self.pair,
            "synthetic": self.calibrated.is_some(),
            "description": self.description,
            "temperature": self.temperature,
            "scale": self.calibrated.map(|found| found.scale),
            "calibrated_acceptance": self.calibrated.map(|found| found.acceptance),
            "sweep": sweep.collect::<Vec<_>>(),
            "prompts": self.prompts,
            "compared": compared.collect::<Vec<_>>(),
        })
    }

    /// Writes a paragraph.
    ///
    /// # Errors
    /// If nobody can read it.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(
            out,
            "{} pair, T={}: {}",
            self.pair, self.temperature, self.description
        )?;
        if let Some(Calibrated { scale, acceptance }) = self.calibrated {
            writeln!(
                out,
                "  made up: deeper residuals at {scale:.4}, with which {:.0}% of coupled drafts are accepted",
                100.0 * acceptance
            )?;
        }
        write!(out, "  speedup by draft length:")?;
        for (draft_len, compared) in &self.sweep {
            write!(out, "  {draft_len}: {:.2}", compared.speedup())?;
        }
        writeln!(out)?;
        let goal = if self.calibrated.is_some() {
            format!(" (goal {GOAL:.1})")
        } else {
            String::new()
        };
        for (draft_len, compared) in &self.compared {
            let method = &compared.method;
            writeln!(
                out,
                "  speedup {:.2}{goal} with draft length {draft_len} on {} other prompts: {:.0} tokens/s, \
                 target alone {:.0}; {} accepted, {} tokens a round",
                compared.speedup(),
                self.prompts,
                method.tokens / compared.method_seconds,
                method.tokens / compared.baseline_seconds,
                or_dash(method.acceptance_rate(), |rate| format!(
                    "{:.0}%",
                    100.0 * rate
                )),
                or_dash(method.mean_acceptance_length(), |mean| format!("{mean:.2}")),
            )?;
            let times = &method.times;
            let mean = |ms: f64| ms / times.counted.max(1.0);
            writeln!(
                out,
                "  a round, ms: draft forwards {:.3}, drafter's rest {:.3}, verify forward {:.3}, verifier's \
                 rest {:.3}, wire {:.3}",
                mean(times.draft_forward),
                mean(times.draft_rest),
                mean(times.verify_forward),
                mean(times.verify_rest),
                mean(times.wire),
            )?;
        }
        writeln!(out)
    }
}
