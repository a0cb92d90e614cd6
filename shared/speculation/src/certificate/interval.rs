//! A number of which only two bounds are known.

/// A number from `least` to `most`; known exactly where the two are one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Interval {
    pub(super) least: f64,
    pub(super) most: f64,
}

impl Interval {
    /// Part of a number by which sums of weights may differ where they are added up in another order or with
    /// weights of another scale; far more than they do.
    pub(super) const ROUNDING: f64 = 1e-9;

    /// A number that is known.
    pub(super) fn exactly(value: f64) -> Self {
        Self {
            least: value,
            most: value,
        }
    }

    /// Whether the number is known exactly.
    pub(super) fn is_exact(self) -> bool {
        self.least == self.most
    }

    /// The same number with another one from `least` to `most` added, and room for rounding.
    pub(super) fn plus(self, least: f64, most: f64) -> Self {
        Self {
            least: (self.least + least) * (1.0 - Self::ROUNDING),
            most: (self.most + most) * (1.0 + Self::ROUNDING),
        }
    }
}
