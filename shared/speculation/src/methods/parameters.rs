//! Reading parameters: which of them a request takes follows from its plan and target distribution, and reading them is
//! what makes the list. [`ParameterReader::take`] checks a value and notes that it is taken, so that a method's parameters as
//! listed are those that are read.

use super::setting::{Setting, SettingKind};
use super::spec::MethodSpec;
use super::table::{ALPHA, BETA, CAP, KL_BUDGET, MEAN, PAPER_DEFAULTS, RULE};
use super::values::{EffectiveSetting, Range, SettingValue};
use crate::bad_value::BadValue;
use crate::target::{Beta, Rule, TargetDistribution};

/// Returns the setting of a rule among `rules`.
pub(super) fn rule_among(rules: &'static [Rule], default: Rule) -> Setting {
    RULE.taken_as(RULE.help, Range::Rule(rules), default.name.into())
}

/// Returns the trade-off parameter of `rule`.
pub(super) fn rule_alpha(rule: Rule) -> Setting {
    let (least, most) = rule.alpha.range;
    ALPHA.taken_as(
        "trade-off parameter of the rule, which sets its range and default: larger defers less",
        Range::Number(least, most),
        rule.alpha.default.into(),
    )
}

/// Returns the parameter of the sequence cascade below which score an answer is discarded. With the mean, one is kept
/// that the draft model finds no more perplexing than a choice among `1 / (1 - alpha)` tokens: 20 by default.
pub(super) fn sequence_alpha() -> Setting {
    ALPHA.taken_as(
        "an answer is kept if its score is at least ln(1 - alpha), by default a perplexity of at most 20: \
         larger defers less, 1 never",
        Range::Number(0.0, 1.0),
        0.95.into(),
    )
}

/// Returns the leniency of lossy sampling.
pub(super) fn lossy_alpha(default: f64) -> Setting {
    ALPHA.taken_as(
        "leniency: a draft token is accepted with probability min(1, p/((1 - alpha) q)); 0 is exact",
        Range::NumberBelow(0.0, 1.0),
        default.into(),
    )
}

/// Returns the residual parameter of lossy sampling, beside `alpha`.
pub(super) fn lossy_beta(alpha: f64, default: Beta) -> Setting {
    let least = TargetDistribution::least_beta(alpha);
    let range = Range::Beta(least, TargetDistribution::MAX_BETA);
    BETA.taken_as(BETA.help, range, default.into())
}

/// Returns the rollback threshold of BiLD.
pub(super) fn rollback(default: f64) -> Setting {
    ALPHA.taken_as(
        "rollback threshold in nats: a draft token x is kept while -ln p(x) is at most this",
        Range::Number(0.0, 100.0),
        default.into(),
    )
}

/// Returns how the sequence cascade scores: by the mean, or by the sum as in its paper.
pub(super) fn mean(paper_defaults: bool) -> Setting {
    MEAN.taken_as(MEAN.help, Range::Flag, SettingValue::Flag(!paper_defaults))
}

/// Returns the budget of divergence that `spec` gives, unchecked.
pub(super) fn kl_budget(spec: &MethodSpec) -> Result<Option<f64>, BadValue> {
    Ok(given(spec, &KL_BUDGET)?.and_then(SettingValue::number))
}

/// Returns the rule that `spec` gives.
pub(super) fn rule(spec: &MethodSpec) -> Result<Option<Rule>, BadValue> {
    Ok(given(spec, &RULE)?.and_then(SettingValue::rule))
}

/// Returns the most draft tokens that `spec` allows where their number follows from something else.
///
/// # Errors
/// If it is out of range.
pub(super) fn cap(spec: &MethodSpec) -> Result<Option<u32>, BadValue> {
    if !spec.gives(&CAP) {
        return Ok(None);
    }
    ParameterReader::new(spec)
        .read(&CAP, SettingValue::count)
        .map(Some)
}

/// Returns the value of `setting`, whatever its range.
fn given<'a>(
    spec: &'a MethodSpec,
    setting: &Setting,
) -> Result<Option<&'a SettingValue>, BadValue> {
    let given = spec.get(setting);
    given.map_or(Ok(()), |given| setting.check(given))?;
    Ok(given)
}

/// Reads the parameters of a request, and notes which.
#[derive(Debug)]
pub(super) struct ParameterReader<'a> {
    spec: &'a MethodSpec,
    settings: Vec<EffectiveSetting>,
}

impl<'a> ParameterReader<'a> {
    pub(super) fn new(spec: &'a MethodSpec) -> Self {
        let settings = Vec::new();
        Self { spec, settings }
    }

    /// Returns the value of `setting`: what is given, else its default.
    ///
    /// # Errors
    /// If it is of another kind, or out of range.
    pub(super) fn take(&mut self, setting: &Setting) -> Result<SettingValue, BadValue> {
        let SettingKind::Parameter { range, default } = &setting.kind else {
            return Ok(SettingValue::NONE);
        };
        let name = setting.name;
        let value = given(self.spec, setting)?.unwrap_or(default);
        if !range.contains(value) {
            let problem = if matches!(range, Range::Rule(_)) {
                format!("'{value}' does not fit, expected one of {range}")
            } else {
                format!("{value} is out of range, expected {range}")
            };
            return Err(BadValue::new(name, problem));
        }
        self.settings.push(EffectiveSetting {
            name,
            help: setting.help,
            range: *range,
            default: default.clone(),
            value: value.clone(),
        });
        Ok(value.clone())
    }

    /// Returns the value of `setting` in its own type, as `held` has it.
    ///
    /// # Errors
    /// As [`Self::take`], or if the table has a value of another type.
    pub(super) fn read<T>(
        &mut self,
        setting: &Setting,
        held: fn(&SettingValue) -> Option<T>,
    ) -> Result<T, BadValue> {
        let value = self.take(setting)?;
        held(&value).ok_or_else(|| {
            let problem = format!("'{value}' stands in the table for a value of another kind");
            BadValue::new(setting.name, problem)
        })
    }

    /// Returns what was taken.
    ///
    /// # Errors
    /// If a parameter is given that was not; `who` takes it not.
    pub(super) fn finish(self, who: &str) -> Result<Vec<EffectiveSetting>, BadValue> {
        let is_taken = |name: &str| self.settings.iter().any(|setting| setting.name == name);
        let mut given = self.spec.settings().map(|(setting, _)| setting);
        let untaken = given.find(|setting| {
            let is_parameter = matches!(setting.kind, SettingKind::Parameter { .. });
            let is_everyones = [CAP.name, PAPER_DEFAULTS.name].contains(&setting.name);
            is_parameter && !is_everyones && !is_taken(setting.name)
        });
        let Some(setting) = untaken else {
            return Ok(self.settings);
        };
        let taken: Vec<_> = self.settings.iter().map(|setting| setting.name).collect();
        let taken = match &taken[..] {
            [] => "no parameters".to_owned(),
            names => names.join(", "),
        };
        let problem = format!("{who} does not take it, it takes {taken}");
        Err(BadValue::new(setting.name, problem))
    }
}
