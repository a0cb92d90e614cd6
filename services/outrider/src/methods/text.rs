//! The registry for people.

use std::io::{self, Write};

use speculation::methods::{
    AxisValue, EffectiveSetting, METHODS, Method, SETTINGS, SettingKind, SettingValue, TargetKind,
    names,
};
use speculation::target::RULES;

/// Writes everything there is to choose from.
pub(super) fn registry(out: &mut impl Write) -> io::Result<()> {
    let (lossless, reproducible) = ("lossless", "reproducible");
    writeln!(
        out,
        "{:<17} {lossless:<9} {reproducible:<13} when to choose it, and what it does",
        "method"
    )?;
    for method in METHODS {
        let lossless = yes_no(method.is_lossless());
        let reproducible = yes_no(method.is_reproducible());
        let Method {
            name,
            when,
            summary,
            ..
        } = method;
        writeln!(out, "{name:<17} {lossless:<9} {reproducible:<13} {when}")?;
        writeln!(out, "{:<41} {summary}", "")?;
    }
    writeln!(out, "\n{MEANINGS}")?;
    axes(out)?;
    rules(out)?;
    parameters(out)?;
    writeln!(out, "\n`outrider methods NAME` shows a method in full.")
}

/// Writes one method, and how to ask for it.
pub(super) fn method(out: &mut impl Write, method: &Method) -> io::Result<()> {
    let name = method.name;
    writeln!(out, "{name}: {}\n  {}\n", method.when, method.summary)?;
    let [sampling, greedy] =
        [1.0, 0.0].map(|temperature| names::of_proposal(method.preset(temperature).proposal));
    let proposal = if sampling == greedy {
        sampling
    } else {
        format!("{sampling}, at temperature 0 {greedy}")
    };
    let aliases = match method.aliases {
        [] => "none".to_owned(),
        aliases => aliases.join(", "),
    };
    for (name, value) in [
        ("aliases", &aliases[..]),
        ("plan", method.plan.name()),
        ("target", TargetKind::of(method.target).name()),
        ("verification", method.verification.name),
        ("lossless", yes_no(method.is_lossless())),
        ("reproducible", yes_no(method.is_reproducible())),
        ("proposal", &proposal[..]),
        ("source", method.source),
    ] {
        writeln!(out, "  {name:<13} {value}")?;
    }
    let settings = method.parameters();
    if !settings.is_empty() {
        writeln!(out, "\nparameters")?;
    }
    for setting in &settings {
        let (range, default) = (setting.range, &setting.default);
        writeln!(out, "  {:<17} {}", setting.name, setting.help)?;
        writeln!(out, "  {:<17} {range}; default {default}", "")?;
    }
    let flags: String = settings.iter().filter_map(flag).collect();
    writeln!(
        out,
        "\n{MEANINGS}\n\nexample\n  outrider generate \"Once upon a time\" --method {name}{flags}"
    )
}

/// Returns the flag that gives a parameter its default; none for those that are off.
fn flag(setting: &EffectiveSetting) -> Option<String> {
    let name = setting.name.replace('_', "-");
    match &setting.default {
        SettingValue::Flag(false) => None,
        SettingValue::Flag(true) => Some(format!(" --{name}")),
        value => Some(format!(" --{name} {value}")),
    }
}

fn yes_no(yes: bool) -> &'static str {
    if yes { "yes" } else { "no" }
}

const MEANINGS: &str = "\
lossless:     every token is an exact sample of the target model
reproducible: a seed gives the same tokens however blocks were cut, retried or moved
p, q:         the probabilities that the target and the draft model give a token";

fn axes(out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "\nA method sets some of these axes. A request may set any of them by itself."
    )?;
    for setting in SETTINGS {
        let SettingKind::Axis {
            default, values, ..
        } = setting.kind
        else {
            continue;
        };
        let flag = setting.name.replace('_', "-");
        writeln!(out, "  {flag:<13} {}; default {default}", setting.help)?;
        let values = values();
        if values.iter().all(|value| value.help.is_empty()) {
            let forms: Vec<_> = match setting.name {
                "target" => vec!["exact", "lossy", "or a rule below"],
                _ => setting.forms(),
            };
            writeln!(out, "  {:<13}   {}", "", forms.join(", "))?;
            continue;
        }
        for AxisValue { form, range, help } in values {
            let range = match &range[..] {
                "" => String::new(),
                range => format!(" ({range})"),
            };
            writeln!(out, "  {:<13}   {form:<15} {help}{range}", "")?;
        }
    }
    Ok(())
}

fn rules(out: &mut impl Write) -> io::Result<()> {
    let (alpha, default) = ("alpha", "default");
    writeln!(out, "\n{:<10} {alpha:<12} {default:<8} meaning", "rule")?;
    for rule in RULES.iter().copied() {
        let (least, most) = rule.alpha.range;
        let (range, default) = (format!("{least} to {most}"), rule.alpha.default);
        let (name, summary) = (rule.name, rule.summary);
        writeln!(out, "{name:<10} {range:<12} {default:<8} {summary}")?;
    }
    Ok(())
}

/// Writes a line for each meaning of a parameter, with the methods that take it.
fn parameters(out: &mut impl Write) -> io::Result<()> {
    let mut lines: Vec<(EffectiveSetting, Vec<&str>)> = Vec::new();
    for method in METHODS {
        for setting in method.parameters() {
            let known = lines
                .iter_mut()
                .find(|(known, _)| (known.name, known.help) == (setting.name, setting.help));
            match known {
                Some((_, takers)) => takers.push(method.name),
                None => lines.push((setting, vec![method.name])),
            }
        }
    }
    lines.sort_by_key(|(setting, _)| setting.name);
    writeln!(out, "\n{:<17} meaning", "parameter")?;
    for (setting, takers) in lines {
        writeln!(out, "{:<17} {}", setting.name, setting.help)?;
        writeln!(out, "{:<17}   of {}", "", takers.join(", "))?;
    }
    Ok(())
}
