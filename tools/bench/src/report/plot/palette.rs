//! The colours of series.

use plotters::style::RGBColor;

/// Dark enough for thin lines on white. The first seven are those that Okabe and Ito chose for readers who see some colours
/// alike, without yellow.
const PALETTE: [RGBColor; 14] = [
    RGBColor(0, 0, 0),
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(128, 0, 0),
    RGBColor(128, 0, 128),
    RGBColor(128, 128, 0),
    RGBColor(0, 0, 160),
    RGBColor(220, 20, 60),
    RGBColor(120, 120, 120),
    RGBColor(0, 90, 40),
];

/// Returns the colour of the series at this index.
pub(super) fn colour(index: usize) -> RGBColor {
    PALETTE[index % PALETTE.len()]
}
