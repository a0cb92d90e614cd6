//! The reference page of settings, which is made of the tables.

use std::fs;

use super::*;
use crate::sampling::{FIELDS, SamplingField, SamplingKind};

const PAGE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/reference/settings.md"
);

const HEAD: &str = "\
# Settings

Every setting of a [method](../methods.md) and every sampling field, under the names that the flags of `outrider`, the JSON fields of
the [OpenAI API](../openai.md) and gRPC have for them. A flag has hyphens for underscores; that of `target` is
`--target-distribution`. This page is made of the tables of the code: `OUTRIDER_UPDATE=1 cargo test -p wire page` writes it, and
without that the test fails where it differs.

## Axes

A method is a preset over [axes](../methods.md#axes); a request may set any of them by itself. Capital letters stand for a number.
";

/// Returns a row of a table.
fn row(cells: &[&str]) -> String {
    let cells: Vec<_> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// Returns the first rows of a table.
fn table(columns: &[&str]) -> String {
    format!("\n{}|{}\n", row(columns), "---|".repeat(columns.len()))
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

/// Returns `help` with a capital letter at its beginning.
fn sentence(help: &str) -> String {
    let (first, rest) = help.split_at(1);
    first.to_uppercase() + rest
}

fn axes(listed: &v1::ListMethodsResponse) -> String {
    let one = |axis: &v1::AxisDescription| {
        let help = sentence(&axis.help);
        let heading = format!(
            "\n### {}\n\n{help}. Default: {}.\n",
            axis.name, axis.default
        );
        if axis.values.iter().all(|value| value.help.is_empty()) {
            let forms: Vec<_> = axis.values.iter().map(|value| code(&value.form)).collect();
            return format!("{heading}\nOne of {}.\n", forms.join(", "));
        }
        let values = axis.values.iter();
        let rows = values.map(|value| row(&[&code(&value.form), &value.range, &value.help]));
        heading + &table(&["value", "range", "meaning"]) + &rows.collect::<String>()
    };
    listed.axes.iter().map(one).collect()
}

/// Returns the row of a parameter of `method`.
fn parameter_row(method: &str, parameter: &v1::ParameterDescription) -> String {
    let default = match &parameter.default[..] {
        "none" => "none".to_owned(),
        default => code(default),
    };
    let (name, range) = (code(&parameter.name), &parameter.range);
    row(&[method, &name, range, &default, &parameter.help])
}

fn parameters(listed: &v1::ListMethodsResponse) -> String {
    let head = "\n## Parameters\n\nThose of each method at its presets; the range of `alpha` is that of the rule \
                ([all of them](../methods.md#spec-cascade)).\n";
    let of_all = SETTINGS.iter().filter_map(|setting| match &setting.kind {
        SettingKind::Parameter { range, default } if setting.of.is_empty() => {
            let parameter = v1::ParameterDescription {
                name: setting.name.to_owned(),
                range: range.to_string(),
                default: default.to_string(),
                help: setting.help.to_owned(),
                ..Default::default()
            };
            Some(parameter_row("all", &parameter))
        }
        SettingKind::Parameter { .. } | SettingKind::Axis { .. } => None,
    });
    let of_methods = listed.methods.iter().flat_map(|method| {
        let name = format!("[`{0}`](../methods.md#{0})", method.name);
        let parameters = method.parameters.iter();
        parameters.map(move |parameter| parameter_row(&name, parameter))
    });
    let rows: String = of_all.chain(of_methods).collect();
    let columns = ["method", "parameter", "values", "default", "meaning"];
    head.to_owned() + &table(&columns) + &rows
}

fn sampling() -> String {
    let one = |field: &SamplingField| {
        let values = match field.kind {
            SamplingKind::Number((least, most), _) => format!("{least} to {most}"),
            SamplingKind::Count(..) => "a whole number".to_owned(),
            SamplingKind::TokenIds(most, _) => format!("at most {most} token ids"),
            SamplingKind::Biases(most, _) => format!("at most {most} token ids with a number each"),
        };
        row(&[&code(field.name), &values, field.help])
    };
    let head = "\n## Sampling\n\nHow tokens are drawn: fields of `sampling` over gRPC, and of a request in JSON.\n";
    let fields = FIELDS.iter().map(one);
    head.to_owned() + &table(&["field", "values", "meaning"]) + &fields.collect::<String>()
}

#[test]
fn the_reference_page_is_that_of_the_tables() {
    let listed = listing(false);
    let page = [
        HEAD.to_owned(),
        axes(&listed),
        parameters(&listed),
        sampling(),
    ]
    .concat();
    if std::env::var_os("OUTRIDER_UPDATE").is_some() {
        fs::write(PAGE, &page).expect("the page is written");
    }
    let committed = fs::read_to_string(PAGE).expect("the page is there");
    assert!(
        committed == page,
        "docs/reference/settings.md is not what the tables say: OUTRIDER_UPDATE=1 cargo test -p wire page writes it"
    );
}
