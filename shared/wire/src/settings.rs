//! What a request chooses, a method and settings by name; and what there is to choose from, as it is listed to clients.

use std::collections::BTreeMap;

use prost_types::value::Kind;
use prost_types::{Struct, Value};
use speculation::bad_value::BadValue;
use speculation::methods::{
    EffectiveSetting, METHODS, Method, MethodSpec, SETTINGS, Setting, SettingKind, SettingValue,
    TargetKind,
};
use speculation::target::{RULES, Rule};

use crate::status::BadField;
use crate::v1;

/// The field of a request that holds the settings.
pub const FIELD: &str = "settings";

/// Reads method and settings of `request`. Null says nothing.
///
/// # Errors
/// Names the setting that is none, or whose value is neither a number, a flag nor a text.
pub fn from_wire(request: &v1::GenerateRequest) -> Result<MethodSpec, BadField> {
    let mut spec = MethodSpec::new(&request.method);
    let given = request.settings.iter().flat_map(|given| &given.fields);
    for (name, value) in given {
        let bad = |problem: &str| Err(named(BadValue::new(name, problem)));
        let value = match &value.kind {
            Some(Kind::NumberValue(number)) if number.is_finite() => SettingValue::Number(*number),
            Some(Kind::NumberValue(number)) => {
                return bad(&format!("{number} is no number that can be used"));
            }
            Some(Kind::BoolValue(flag)) => SettingValue::Flag(*flag),
            Some(Kind::StringValue(text)) => text.as_str().into(),
            None | Some(Kind::NullValue(_)) => continue,
            Some(Kind::StructValue(_) | Kind::ListValue(_)) => {
                return bad("expected a number, true, false or a text");
            }
        };
        spec.set(name, value).map_err(named)?;
    }
    Ok(spec)
}

/// Returns whether `request` gives `setting`.
pub fn gives(request: &v1::GenerateRequest, setting: &Setting) -> bool {
    let given = request.settings.as_ref();
    given.is_some_and(|given| given.fields.contains_key(setting.name))
}

/// Returns the names of the settings that `request` gives, each with its text, which is empty if it is none.
pub fn texts(request: &v1::GenerateRequest) -> impl Iterator<Item = (&str, &str)> {
    let given = request.settings.iter().flat_map(|given| &given.fields);
    given.map(|(name, value)| match &value.kind {
        Some(Kind::StringValue(text)) => (name.as_str(), text.as_str()),
        _ => (name.as_str(), ""),
    })
}

/// Writes method and settings to `request`.
pub fn to_wire(spec: &MethodSpec, request: &mut v1::GenerateRequest) {
    request.method.clone_from(&spec.method);
    let fields: BTreeMap<_, _> = spec
        .settings()
        .map(|(setting, value)| (setting.name.to_owned(), value_to_wire(value)))
        .collect();
    request.settings = (!fields.is_empty()).then_some(Struct { fields });
}

fn value_to_wire(value: &SettingValue) -> Value {
    let kind = match value {
        SettingValue::Number(number) => Kind::NumberValue(*number),
        SettingValue::Flag(flag) => Kind::BoolValue(*flag),
        SettingValue::Text(text) => Kind::StringValue(text.to_string()),
    };
    Value { kind: Some(kind) }
}

/// A fault in a setting, by the name that it has in a request.
pub fn named(bad: BadValue) -> BadField {
    match &bad.field[..] {
        "method" => BadField::new("method", bad.problem),
        name => BadField::new(format!("{FIELD}.{name}"), bad.problem),
    }
}

/// Every method, every deferral rule and every axis; `lossless_only` tells whether only lossless ones are served.
pub fn listing(lossless_only: bool) -> v1::ListMethodsResponse {
    v1::ListMethodsResponse {
        methods: METHODS
            .iter()
            .map(|method| describe(method, lossless_only))
            .collect(),
        rules: RULES.iter().copied().map(rule).collect(),
        axes: SETTINGS
            .iter()
            .filter_map(|setting| axis(setting))
            .collect(),
    }
}

fn describe(method: &Method, lossless_only: bool) -> v1::MethodDescription {
    let aliases = method.aliases.iter();
    v1::MethodDescription {
        name: method.name.to_owned(),
        aliases: aliases.map(|&alias| alias.to_owned()).collect(),
        summary: method.summary.to_owned(),
        lossless: method.is_lossless(),
        reproducible: method.is_reproducible(),
        source: method.source.to_owned(),
        plan: method.plan.name().to_owned(),
        target: TargetKind::of(method.target).name().to_owned(),
        verification: method.verification.name.to_owned(),
        needs_draft_probs: method.needs_draft_probs(),
        parameters: method.parameters().iter().map(parameter).collect(),
        allowed: method.is_lossless() || !lossless_only,
    }
}

fn parameter(setting: &EffectiveSetting) -> v1::ParameterDescription {
    v1::ParameterDescription {
        name: setting.name.to_owned(),
        r#type: setting.range.kind().to_owned(),
        range: setting.range.to_string(),
        default: setting.default.to_string(),
        help: setting.help.to_owned(),
    }
}

fn axis(setting: &Setting) -> Option<v1::AxisDescription> {
    let SettingKind::Axis {
        default, values, ..
    } = setting.kind
    else {
        return None;
    };
    let values = values().into_iter().map(|value| v1::AxisValue {
        form: value.form.to_owned(),
        range: value.range,
        help: value.help.to_owned(),
    });
    Some(v1::AxisDescription {
        name: setting.name.to_owned(),
        help: setting.help.to_owned(),
        default: default.to_owned(),
        values: values.collect(),
    })
}

fn rule(rule: Rule) -> v1::RuleDescription {
    let (least_alpha, most_alpha) = rule.alpha.range;
    v1::RuleDescription {
        name: rule.name.to_owned(),
        summary: rule.summary.to_owned(),
        least_alpha,
        most_alpha,
        default_alpha: rule.alpha.default,
    }
}

#[cfg(test)]
mod tests;
