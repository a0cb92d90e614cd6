//! `outrider methods`.

mod text;

use std::io::Write;

use anstream::stdout;
use clap::Args;
use serde_json::{Value, json};
use speculation::methods::{
    EffectiveSetting, METHODS, Method, Range, SETTINGS, Setting, SettingKind, SettingValue,
    TargetKind, find,
};
use speculation::target::RULES;

/// Arguments of `outrider methods`.
#[derive(Debug, Args)]
pub(crate) struct MethodsArgs {
    /// Shows one method in full; without it, all of them and what they are made of.
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Prints one JSON object. A failure is {"error": {"message": ...}}.
    #[arg(long)]
    json: bool,
}

/// Prints the registry, or a method of it.
pub(crate) fn run(args: &MethodsArgs) -> anyhow::Result<()> {
    let mut out = stdout().lock();
    let method = args.name.as_deref().map(find).transpose()?;
    match (method, args.json) {
        (Some(method), false) => text::method(&mut out, method)?,
        (None, false) => text::registry(&mut out)?,
        (method, true) => {
            let listed = method.map_or_else(registry, self::method);
            writeln!(out, "{}", serde_json::to_string_pretty(&listed)?)?;
        }
    }
    Ok(())
}

/// Returns everything there is to choose from, for programs.
fn registry() -> Value {
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
    let values: Vec<_> = (values().iter())
        .map(|value| json!({ "form": value.form, "range": value.range, "help": value.help }))
        .collect();
    let described = json!({ "help": setting.help, "default": default, "values": values });
    Some((setting.name, described))
}

/// Returns one method, for programs.
fn method(method: &Method) -> Value {
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
        "default": default(setting),
        "help": setting.help,
    })
}

/// Returns least and largest value, or every value. What this leaves open (a largest value that is not
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

fn default(setting: &EffectiveSetting) -> Value {
    match (&setting.default, setting.range) {
        (SettingValue::Number(_), Range::Count(..)) => json!(setting.default.count()),
        (SettingValue::Number(number), _) => json!(number),
        (SettingValue::Flag(flag), _) => json!(flag),
        (none, _) if *none == SettingValue::NONE => Value::Null,
        (SettingValue::Text(text), _) => json!(text),
    }
}
