//! The registry for programs.

use serde_json::{Value, json};
use speculation::methods::{
    self, EffectiveSetting, METHODS, Method, Range, SETTINGS, Setting, SettingKind, TargetKind,
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
        "axes": SETTINGS.iter().filter_map(|setting| axis(setting)).collect::<Value>(),
    })
}

/// Returns name and description of `setting`, if it is an axis.
fn axis(setting: &Setting) -> Option<(&'static str, Value)> {
    let SettingKind::Axis {
        default, values, ..
    } = setting.kind
    else {
        return None;
    };
    let values = values().into_iter().map(|value| {
        json!({
            "form": value.form,
            "range": value.range,
            "help": value.help,
        })
    });
    let described = json!({
        "help": setting.help,
        "default": default,
        "values": values.collect::<Vec<_>>(),
    });
    Some((setting.name, described))
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
