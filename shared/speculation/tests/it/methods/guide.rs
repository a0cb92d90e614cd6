//! The guide in `docs` says what the registry says.

use speculation::methods::{METHODS, TargetKind};
use speculation::target::RULES;

const GUIDE: &str = include_str!("../../../../../docs/methods.md");

/// The section under `heading`.
fn section(heading: &str) -> &'static str {
    let begin = format!("\n## {heading}\n");
    let section = GUIDE.split(&begin).nth(1);
    let section = section.unwrap_or_else(|| panic!("no section '{heading}'"));
    section.split("\n## ").next().unwrap_or_default()
}

fn row(text: &'static str, start: &str) -> Vec<&'static str> {
    let row = text.lines().find(|line| line.starts_with(start));
    let row = row.unwrap_or_else(|| panic!("no row '{start}'"));
    row.split('|').map(str::trim).collect()
}

#[test]
fn every_method_has_its_rows_and_its_section() {
    let yes_no = |yes| if yes { "yes" } else { "no" };
    for method in METHODS {
        let name = method.name;
        let to_choose = [
            method.when,
            method.summary,
            yes_no(method.is_lossless()),
            yes_no(method.is_reproducible()),
        ];
        assert_eq!(
            row(GUIDE, &format!("| [`{name}`](#{name}) |"))[2..6],
            to_choose,
            "{name}"
        );
        let preset = [
            method.plan.name(),
            TargetKind::of(method.target).name(),
            method.verification.name,
            yes_no(method.needs_draft_probs()),
        ];
        assert_eq!(
            row(section("Axes"), &format!("| `{name}` |"))[2..6],
            preset,
            "{name}"
        );
        for setting in method.parameters() {
            assert!(
                section(name).contains(&format!("`{}`", setting.name)),
                "{name}"
            );
        }
    }
}

#[test]
fn every_rule_has_its_row() {
    for rule in RULES.iter().copied() {
        let (least, most) = rule.alpha.range;
        let alpha = format!("{least} to {most}, default {}", rule.alpha.default);
        let row = row(section("spec-cascade"), &format!("| `{}` |", rule.name));
        assert_eq!(row[3], alpha);
    }
}
