//! Parameters: their ranges, defaults and meanings.
//!
//! Which of them a request takes follows from its plan and target distribution. Reading them is
//! what makes the list: [`Reader::take`] checks a value and notes that it is taken, so that a
//! method's parameters as listed are those that are read.

use super::BadValue;
use super::values::{Range, Setting, Value};
use crate::target::{Beta, Rule, TargetDistribution};

/// The parameters a request gives; none of them where the default will do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parameters {
    /// The deferral rule.
    pub rule: Option<Rule>,
    /// Trade-off parameter of the rule, of lossy sampling, or the rollback threshold of BiLD.
    pub alpha: Option<f64>,
    /// Residual parameter of lossy sampling.
    pub beta: Option<Beta>,
    /// Budget of divergence of lossy sampling, in place of `alpha` and `beta`.
    pub kl_budget: Option<f64>,
    /// Confidence below which the drafter of BiLD hands over.
    pub fallback: Option<f64>,
    /// Most draft tokens of BiLD before the target looks.
    pub window: Option<u32>,
    /// Whether the target of BiLD looks at the last tokens too.
    pub verify_on_finish: Option<bool>,
    /// Whether BiLD runs as its authors' code does.
    pub code_variant: Option<bool>,
    /// Most draft tokens of the token cascade in a row; 0 is no limit.
    pub max_run: Option<u32>,
    /// Whether the sequence cascade scores by the mean log probability of an answer's tokens, rather than by
    /// their sum.
    pub mean: Option<bool>,
}

impl Parameters {
    /// The names of those given.
    fn given(&self) -> impl Iterator<Item = &'static str> {
        let given = [
            (RULE, self.rule.is_some()),
            (ALPHA, self.alpha.is_some()),
            (BETA, self.beta.is_some()),
            (KL_BUDGET.name, self.kl_budget.is_some()),
            (FALLBACK.name, self.fallback.is_some()),
            (WINDOW.name, self.window.is_some()),
            (VERIFY_ON_FINISH.name, self.verify_on_finish.is_some()),
            (CODE_VARIANT.name, self.code_variant.is_some()),
            (MAX_RUN.name, self.max_run.is_some()),
            (MEAN.name, self.mean.is_some()),
        ];
        given
            .into_iter()
            .filter_map(|(name, is_given)| is_given.then_some(name))
    }
}

/// A parameter to be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameter<T> {
    name: &'static str,
    help: &'static str,
    range: Range,
    default: T,
}

const RULE: &str = "rule";
const ALPHA: &str = "alpha";
const BETA: &str = "beta";

/// Lossy sampling: the budget of divergence.
pub(super) const KL_BUDGET: Parameter<Option<f64>> = Parameter {
    name: "kl_budget",
    help: "in place of alpha and beta: accepts as many draft tokens as it can while the divergence of what comes \
           out, KL(p || out), is at most this at each position, in nats; 0 is exact",
    range: Range::NumberOrNone(0.0, TargetDistribution::MAX_KL_BUDGET),
    default: None,
};

/// BiLD: when the drafter hands over.
pub(super) const FALLBACK: Parameter<f64> = Parameter {
    name: "fallback",
    help: "the drafter hands over to the target where its confidence is below this",
    range: Range::Number(0.0, 1.0),
    default: 0.6,
};

/// BiLD: most draft tokens before the target looks.
pub(super) const WINDOW: Parameter<u32> = Parameter {
    name: "window",
    help: "most draft tokens in a row before the target checks them",
    range: Range::Count(1, 64),
    default: 10,
};

/// BiLD: whether the target looks at the last tokens too.
pub(super) const VERIFY_ON_FINISH: Parameter<bool> = Parameter {
    name: "verify_on_finish",
    help: "whether the target also checks the draft tokens that end the output",
    range: Range::Flag,
    default: false,
};

/// BiLD: whether it runs as its authors' code does.
pub(super) const CODE_VARIANT: Parameter<bool> = Parameter {
    name: "code_variant",
    help: "whether it runs as the authors' code does: the target begins, adds a second token after each one that it \
           replaced, and keeps the whole block where it would choose the refused token itself",
    range: Range::Flag,
    default: false,
};

/// Token cascade: most draft tokens in a row.
pub(super) const MAX_RUN: Parameter<u32> = Parameter {
    name: "max_run",
    help: "most draft tokens in a row before the target must add one; 0 is no limit",
    range: Range::Count(0, 1000),
    default: 10,
};

/// Sequence cascade: how an answer is scored.
pub(super) const MEAN: Parameter<bool> = Parameter {
    name: "mean",
    help: "whether an answer's score is the mean log probability of its tokens, rather than their sum, which \
           falls with every token",
    range: Range::Flag,
    default: true,
};

/// Sequence cascade: below which score an answer is discarded. With the mean, one is kept that the draft model
/// finds no more perplexing than a choice among `1 / (1 - alpha)` tokens: 20 by default.
pub(super) const SEQUENCE_ALPHA: Parameter<f64> = Parameter {
    name: ALPHA,
    help: "an answer is kept if its score is at least ln(1 - alpha), by default a perplexity of at most 20: \
           larger defers less, 1 never",
    range: Range::Number(0.0, 1.0),
    default: 0.95,
};

/// A rule among `rules`.
pub(super) fn rule(rules: &'static [Rule], default: Rule) -> Parameter<Rule> {
    Parameter {
        name: RULE,
        help: "deferral rule: where the target decides instead of the draft model",
        range: Range::Rule(rules),
        default,
    }
}

/// The trade-off parameter of `rule`.
pub(super) fn rule_alpha(rule: Rule) -> Parameter<f64> {
    let (least, most) = rule.alpha.range;
    Parameter {
        name: ALPHA,
        help: "trade-off parameter of the rule, which sets its range and default: larger defers less",
        range: Range::Number(least, most),
        default: rule.alpha.default,
    }
}

/// The leniency of lossy sampling.
pub(super) fn lossy_alpha(default: f64) -> Parameter<f64> {
    Parameter {
        name: ALPHA,
        help: "leniency: a draft token is accepted with probability min(1, p/((1 - alpha) q)); 0 is exact",
        range: Range::NumberBelow(0.0, 1.0),
        default,
    }
}

/// The residual parameter of lossy sampling, beside `alpha`.
pub(super) fn lossy_beta(alpha: f64, default: Beta) -> Parameter<Beta> {
    Parameter {
        name: BETA,
        help: "divides p in the residual (p/beta - q)+; at least 1 - alpha, or tuned at each position",
        range: Range::Beta(
            TargetDistribution::least_beta(alpha),
            TargetDistribution::MAX_BETA,
        ),
        default,
    }
}

/// The rollback threshold of BiLD.
pub(super) fn rollback(default: f64) -> Parameter<f64> {
    Parameter {
        name: ALPHA,
        help: "rollback threshold in nats: a draft token x is kept while -ln p(x) is at most this",
        range: Range::Number(0.0, 100.0),
        default,
    }
}

/// Reads the parameters of a request, and notes which.
#[derive(Debug, Default)]
pub(super) struct Reader {
    settings: Vec<Setting>,
}

impl Reader {
    /// The value of `parameter`: what was asked for, else its default.
    pub(super) fn take<T: Copy + Into<Value>>(
        &mut self,
        parameter: Parameter<T>,
        requested: Option<T>,
    ) -> Result<T, BadValue> {
        let Parameter {
            name,
            help,
            range,
            default,
        } = parameter;
        let taken = requested.unwrap_or(default);
        let value = taken.into();
        if !range.contains(value) {
            let problem = match range {
                Range::Rule(_) => format!("'{value}' does not fit, expected one of {range}"),
                Range::Number(..)
                | Range::NumberBelow(..)
                | Range::NumberOrNone(..)
                | Range::Count(..)
                | Range::Flag
                | Range::Beta(..) => format!("{value} is out of range, expected {range}"),
            };
            return Err(BadValue::new(name, problem));
        }
        self.settings.push(Setting {
            name,
            help,
            range,
            default: default.into(),
            value,
        });
        Ok(taken)
    }

    /// What was taken.
    ///
    /// # Errors
    /// If something was asked for that was not; `who` takes it not.
    pub(super) fn finish(
        self,
        requested: &Parameters,
        who: &str,
    ) -> Result<Vec<Setting>, BadValue> {
        let is_taken = |name: &str| self.settings.iter().any(|setting| setting.name == name);
        let Some(name) = requested.given().find(|name| !is_taken(name)) else {
            return Ok(self.settings);
        };
        let taken: Vec<_> = self.settings.iter().map(|setting| setting.name).collect();
        let taken = match &taken[..] {
            [] => "no parameters".to_owned(),
            names => names.join(", "),
        };
        let problem = format!("{who} does not take it, it takes {taken}");
        Err(BadValue::new(name, problem))
    }
}
