//! Ways of drafting as a table, and as JSON.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::super::measure::Measured;
use super::super::spec::MethodSpec;
use super::cost::{Costs, Fit};

/// One way of drafting on prompts of one kind.
#[derive(Clone, Debug)]
pub(super) struct Way {
    /// The method with its parameters.
    pub(super) method: MethodSpec,
    /// All its requests together.
    pub(super) sum: Measured,
}

/// Ways that differ in a parameter.
#[derive(Clone, Debug)]
pub(super) struct Family {
    /// What they have in common.
    pub(super) label: String,
    /// Each of them.
    pub(super) ways: Vec<Way>,
}

/// Everything measured on prompts of one kind at one temperature.
#[derive(Debug)]
pub(super) struct Measurement {
    pub(super) kind: String,
    pub(super) temperature: f32,
    pub(super) prompts: usize,
    /// The target alone.
    pub(super) baseline: Measured,
    pub(super) families: Vec<Family>,
    /// What forwards cost here; none if the requests do not tell.
    pub(super) fit: Option<Fit>,
    /// The costs to model with, and what they are called.
    pub(super) models: Vec<(String, Costs)>,
}

impl Way {
    fn per_token(&self, count: f64) -> f64 {
        count / self.sum.tokens.max(1.0)
    }

    fn json(&self, of: &Measurement, family: &Family) -> Value {
        let models = of.models.iter();
        let speedups: serde_json::Map<_, _> = models
            .map(|(name, costs)| (name.clone(), costs.speedup(&self.sum).into()))
            .collect();
        json!({
            "kind": of.kind,
            "temperature": of.temperature,
            "prompts": of.prompts,
            "family": family.label,
            "method": self.method.to_string(),
            "tokens": self.sum.tokens,
            "discard_rate": self.per_token(self.sum.discarded),
            "verification_rate": self.per_token(self.sum.target_forwards),
            "draft_forwards_per_token":
                self.sum.draft_forwards.iter().map(|&n| self.per_token(n)).collect::<Vec<_>>(),
            "target_ms": of.fit.as_ref().map(|fit| fit.costs.target),
            "draft_ms": of.fit.as_ref().map(|fit| &fit.costs.drafts),
            "round_ms": of.fit.as_ref().map(|fit| fit.costs.round),
            "position_ms": of.fit.as_ref().map(|fit| fit.costs.position),
            "explained": of.fit.as_ref().map(|fit| fit.explained),
            "modelled_speedup": speedups,
            "measured_speedup": self.measured_speedup(of),
        })
    }

    fn measured_speedup(&self, of: &Measurement) -> f64 {
        self.sum.tokens_per_second() / of.baseline.tokens_per_second().max(1e-9)
    }

    fn write(&self, out: &mut impl Write, width: usize, of: &Measurement) -> io::Result<()> {
        // The sum of nothing is -0.
        let draft_forwards = self.sum.draft_forwards.iter().fold(0.0, |sum, n| sum + n);
        write!(
            out,
            "{:<width$} {:>8.2} {:>8.3} {:>8.2}",
            self.method.to_string(),
            self.per_token(self.sum.discarded),
            self.per_token(self.sum.target_forwards),
            self.per_token(draft_forwards),
        )?;
        for (_, costs) in &of.models {
            write!(out, " {:>9.3}", costs.speedup(&self.sum))?;
        }
        writeln!(out, " {:>9.3}", self.measured_speedup(of))
    }
}

impl Family {
    /// The fastest of the ways by `costs`.
    fn best(&self, costs: &Costs) -> &Way {
        let speedup = |way: &&Way| costs.speedup(&way.sum);
        self.ways
            .iter()
            .max_by(|a, b| speedup(a).total_cmp(&speedup(b)))
            .expect("a family has a way")
    }
}

impl Measurement {
    /// One JSON object a way.
    ///
    /// # Errors
    /// If nobody can read it.
    pub(super) fn write_json(&self, out: &mut impl Write) -> io::Result<()> {
        for family in &self.families {
            for way in &family.ways {
                writeln!(out, "{}", way.json(self, family))?;
            }
        }
        Ok(())
    }

    /// Every way, and the best of each family against the best of the first.
    ///
    /// # Errors
    /// If nobody can read it.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        write!(
            out,
            "{}, T={}, {} prompts",
            self.kind, self.temperature, self.prompts
        )?;
        if let Some(Fit { costs, explained }) = &self.fit {
            let drafts: Vec<_> = costs.drafts.iter().map(|ms| format!("{ms:.3}")).collect();
            write!(
                out,
                ": a target forward takes {:.3} ms and {:.3} for each draft token in it, a draft \
                 forward {} ms, a round {:.3} ms (explains {:.0}% of the variance)",
                costs.target,
                costs.position,
                drafts.join(" and "),
                costs.round,
                100.0 * explained
            )?;
        }
        writeln!(out)?;
        let ways = || self.families.iter().flat_map(|family| &family.ways);
        let width = ways()
            .map(|way| way.method.to_string().len())
            .max()
            .unwrap_or(0);
        write!(
            out,
            "{:<width$} {:>8} {:>8} {:>8}",
            "", "discard", "verify", "draft"
        )?;
        for (name, _) in &self.models {
            write!(out, " {name:>9}")?;
        }
        writeln!(out, " {:>9}", "wall time")?;
        for way in ways() {
            way.write(out, width, self)?;
        }
        let labels = self.families.iter().map(|family| family.label.len());
        let width = labels.max().unwrap_or(0);
        for (name, costs) in &self.models {
            let first = self.families[0].best(costs);
            writeln!(out, "best of each, cost {name}:")?;
            for family in &self.families {
                let best = family.best(costs);
                let gain = costs.speedup(&best.sum) / costs.speedup(&first.sum) - 1.0;
                let speedup = costs.speedup(&best.sum);
                let (label, gain) = (&family.label, 100.0 * gain);
                writeln!(
                    out,
                    "  {label:<width$} {speedup:>7.3} {gain:>+6.1}%  {}",
                    best.method
                )?;
            }
        }
        writeln!(out)
    }
}
