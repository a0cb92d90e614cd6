//! The registry for programs.

use serde_json::{Value, json};
use speculation::methods::{
    self, Axis, EffectiveSetting, METHODS, Method, Range, TargetKind, axes_listing,
};
use speculation::target::{Beta, RULES};

/// Everything there is to choose from.
pub(super) fn registry() -> Value {
    let rules = RULES.iter().copied().map(|rule| {
        let (least, most) = rule.alpha.range;
        json!({
            "name": rule.name,
            "alpha": { "range": [least, most], "default": rule.alpha.default },
            "summary": rule.summary,
        })
    });
    json!({
        "methods": METHODS.iter().map(method).collect::<Vec<_>>(),
        "rules": rules.collect::<Vec<_>>(),
        "axes": axes_listing().iter().map(|listed| (listed.name, axis(listed))).collect::<Value>(),
    })
}

fn axis(axis: &Axis) -> Value {
    let values = axis.values.iter().map(|value| {
        json!({
            "form": value.form,
            "range": value.range,
            "help": value.help,
        })
    });
    json!({
        "help": axis.help,
        "default": axis.default,
        "values": values.collect::<Vec<_>>(),
    })
}

/// One method.
pub(super) fn method(method: &Method) -> Value {
    let parameters = method.parameters();
    json!({
        "name": method.name,
        "aliases": method.aliases,
        "when": method.when,
        "summary": method.summary,
        "plan": method.plan.name(),
        "target": TargetKind::of(method.target).name(),
        "verification": method.verification.name,
        "parameters": parameters.iter().map(parameter).collect::<Vec<_>>(),
        "lossless": method.is_lossless(),
        "reproducible": method.is_reproducible(),
        "needs_draft_probs": method.needs_draft_probs(),
        "source": method.source,
    })
}

fn parameter(setting: &EffectiveSetting) -> Value {
    json!({
        "name": setting.name,
        "type": setting.range.kind(),
        "range": range(setting.range),
        "expected": setting.range.to_string(),
        "default": value(setting.default),
        "help": setting.help,
    })
}

/// Least and largest value, or every value. What this leaves open (a largest value that is not
/// allowed itself, a word that stands for a number) `expected` says in words.
fn range(range: Range) -> Value {
    match range {
        Range::Number(least, most)
        | Range::NumberBelow(least, most)
        | Range::NumberOrNone(least, most)
        | Range::Beta(least, most) => {
            json!([least, most])
        }
        Range::Count(least, most) => json!([least, most]),
        Range::Flag => json!([false, true]),
        Range::Rule(rules) => rules.iter().map(|rule| rule.name).collect(),
    }
}

fn value(value: methods::ParameterValue) -> Value {
    match value {
        methods::ParameterValue::Number(number)
        | methods::ParameterValue::Beta(Beta::Fixed(number)) => {
            json!(number)
        }
        methods::ParameterValue::None => Value::Null,
        methods::ParameterValue::Count(count) => json!(count),
        methods::ParameterValue::Flag(flag) => json!(flag),
        methods::ParameterValue::Rule(_) | methods::ParameterValue::Beta(Beta::Tuned) => {
            json!(value.to_string())
        }
    }
}
