//! Which panels there are, and which rows are in each.

use super::{Plot, field};
use crate::report::{ReportField, Row};

/// A column whose values make panels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facet<'a> {
    pub(crate) key: &'a str,
    /// Stands before the value in titles, with `=` between them; if it is empty, the value stands alone.
    pub(crate) name: &'a str,
}

/// Returns the values of the facet's column, in the order they first came; a single empty one without a facet or rows.
pub(super) fn values(facet: Option<&Facet<'_>>, rows: &[Row]) -> Vec<String> {
    let mut values: Vec<String> = Vec::new();
    for row in rows {
        let value = value(facet, row);
        if !values.contains(&value) {
            values.push(value);
        }
    }
    if values.is_empty() {
        values.push(String::new());
    }
    values
}

fn value(facet: Option<&Facet<'_>>, row: &Row) -> String {
    let field = facet.and_then(|facet| field(row, facet.key));
    field.map(ReportField::written).unwrap_or_default()
}

/// Returns the rows with this value of the facet's column.
pub(super) fn of<'a>(
    facet: Option<&Facet<'_>>,
    wanted: &str,
    rows: impl IntoIterator<Item = &'a Row>,
) -> Vec<&'a Row> {
    let rows = rows.into_iter();
    rows.filter(|row| value(facet, row) == wanted).collect()
}

/// Returns the title of the panel with these values of the plot's rows and columns.
pub(super) fn title(plot: &Plot<'_>, values: [&str; 2]) -> String {
    let parts = [plot.rows, plot.columns].into_iter().zip(values);
    let parts = parts.filter_map(|(facet, value)| {
        Some(match facet?.name {
            "" => value.to_owned(),
            name => format!("{name}={value}"),
        })
    });
    parts.collect::<Vec<_>>().join(", ")
}
