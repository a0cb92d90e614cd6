//! The registry of methods, as it is listed to clients.

use crate::v1;
use speculation::methods::{
    EffectiveSetting, METHODS, Method, SETTINGS, Setting, SettingKind, TargetKind,
};
use speculation::target::{RULES, Rule};

/// Every method, every deferral rule and every axis; `lossless_only` tells whether only lossless ones are served.
pub fn methods(lossless_only: bool) -> v1::ListMethodsResponse {
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
