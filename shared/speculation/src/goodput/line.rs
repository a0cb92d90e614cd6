//! A cost with a fixed part and a part for each token, fitted as observations come.

/// A line `fixed + slope x` by least squares, older observations counting less.
///
/// Where all observations are at one x they tell nothing of the slope: it then stays what it was, and
/// at the beginning what was assumed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CostLine {
    /// How much of an earlier observation's weight is left after each.
    memory: f64,
    /// Share of the first duration that is taken to be proportional to x, until x has varied.
    assumed: f64,
    weight: f64,
    mean_x: f64,
    mean_y: f64,
    /// Weighted sums of squares and products about the means.
    spread: f64,
    product: f64,
    slope: f64,
    /// Whether the last observation was beyond what was expected.
    was_outlier: bool,
}

/// How often the expected duration one observation counts for at most: it may be a hiccup of the machine or
/// of the link. A second one in a row is news, and counts in full.
const OUTLIER: f64 = 3.0;

/// Weight of the observations from which on an outlier is recognised, and weight up to which the observations so far
/// may be the outlier themselves.
const EXPECTED: f64 = 0.5;
const YOUNG: f64 = 1.5;

/// Weight of the observations up to which a single outlier counts for nothing: of so few it would be the better part.
const SETTLED: f64 = 4.0;

/// Squared spread of x that counts as much as the slope so far.
const INERTIA: f64 = 0.25;

impl CostLine {
    /// A line of which nothing is known. `memory`: how much of an earlier observation's weight is left after each;
    /// `assumed`: the share of the first duration that is taken to be proportional to x, until x has varied.
    pub fn new(memory: f64, assumed: f64) -> Self {
        Self {
            memory,
            assumed,
            ..Self::default()
        }
    }

    /// Takes note of `y` at `x`.
    pub fn observe(&mut self, x: f64, y: f64) {
        self.doubt_first(x, y);
        if self.weight == 0.0 {
            self.slope = if x > 0.0 { self.assumed * y / x } else { 0.0 };
        }
        let y = self.believed(x, y);
        let before = self.weight * self.memory;
        self.weight = before + 1.0;
        let (dx, dy) = (x - self.mean_x, y - self.mean_y);
        self.mean_x += dx / self.weight;
        self.mean_y += dy / self.weight;
        let share = before / self.weight;
        self.spread = self.spread * self.memory + share * dx * dx;
        self.product = self.product * self.memory + share * dx * dy;
        self.slope = (self.product + INERTIA * self.slope) / (self.spread + INERTIA);
        // No token takes less than no time, and more tokens at no x take it all.
        let most = if self.mean_x > 0.0 {
            self.mean_y / self.mean_x
        } else {
            f64::INFINITY
        };
        self.slope = self.slope.clamp(0.0, most.max(0.0));
    }

    /// Forgets a first observation that was far above the next one: it was the outlier.
    fn doubt_first(&mut self, x: f64, y: f64) {
        let is_young = self.weight > 0.0 && self.weight < YOUNG;
        if is_young && self.expected(x) > OUTLIER * y {
            *self = Self::new(self.memory, self.assumed);
        }
    }

    fn expected(&self, x: f64) -> f64 {
        self.mean_y + (self.slope * (x - self.mean_x)).max(0.0)
    }

    /// Returns what `y` at `x` counts for.
    fn believed(&mut self, x: f64, y: f64) -> f64 {
        let expected = self.expected(x);
        let is_outlier = self.weight >= EXPECTED && y > OUTLIER * expected;
        let is_first = is_outlier && !self.was_outlier;
        self.was_outlier = is_outlier;
        match is_first {
            true if self.weight < SETTLED => expected,
            true => OUTLIER * expected,
            false => y,
        }
    }

    /// Lets what was observed count less, as if `observations` others had come.
    pub(super) fn fade(&mut self, observations: u32) {
        let left = self.memory.powi(observations.cast_signed());
        self.weight *= left;
        self.spread *= left;
        self.product *= left;
    }

    /// Whether anything was observed.
    pub fn is_known(&self) -> bool {
        self.weight > 0.0
    }

    /// Cost of each x.
    pub fn slope(&self) -> f64 {
        self.slope
    }

    /// The mean of the latest observations.
    pub fn mean(&self) -> f64 {
        self.mean_y
    }

    /// Cost at x = 0.
    pub fn fixed(&self) -> f64 {
        (self.mean_y - self.slope * self.mean_x).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_once_x_varies() {
        let mut line = CostLine::new(0.95, 1.0);
        line.observe(4.0, 8.0);
        assert_eq!((line.slope(), line.fixed()), (2.0, 0.0), "as assumed");
        for x in [4.0, 6.0, 5.0, 3.0, 6.0, 4.0, 2.0, 5.0] {
            line.observe(x, 6.0 + 0.5 * x);
        }
        assert!((line.slope() - 0.5).abs() < 0.05, "{line:?}");
        assert!((line.fixed() - 6.0).abs() < 0.2, "{line:?}");
    }

    #[test]
    fn a_first_observation_may_have_been_a_hiccup() {
        let mut line = CostLine::new(0.95, 1.0);
        line.observe(4.0, 1_000.0);
        for x in [4.0, 6.0, 5.0] {
            line.observe(x, 2.0 + x);
        }
        let at = line.fixed() + 5.0 * line.slope();
        assert!((at - 7.0).abs() < 1.0, "{at}");
    }

    #[test]
    fn the_slope_stays_where_x_does_not_vary() {
        let mut line = CostLine::new(0.9, 0.0);
        for x in [2.0, 6.0, 4.0, 2.0, 6.0, 2.0, 6.0, 4.0, 2.0, 6.0] {
            line.observe(x, 3.0 + x);
        }
        let before = line.slope();
        assert!((before - 1.0).abs() < 0.05, "{line:?}");
        // Noise at one x tells nothing of the slope, and a slower peer is a higher fixed part.
        for round in 0..500 {
            line.observe(4.0, if round % 2 == 0 { 8.0 } else { 10.0 });
        }
        assert!((line.slope() - before).abs() < 0.1, "{line:?}");
        assert!((line.fixed() - 5.0).abs() < 0.5, "{line:?}");
    }

    #[test]
    fn one_hiccup_is_not_believed_and_two_in_a_row_are() {
        let mut line = CostLine::new(0.95, 1.0);
        for x in [4.0, 6.0, 5.0, 3.0, 6.0, 4.0, 2.0, 5.0] {
            line.observe(x, 1.0 + x);
        }
        let at = |line: &CostLine, x: f64| line.fixed() + line.slope() * x;
        let before = at(&line, 5.0);
        line.observe(5.0, 1_000.0);
        assert!(at(&line, 5.0) < 1.5 * before, "{line:?}");
        line.observe(5.0, 6.0);
        line.observe(5.0, 1_000.0);
        assert!(at(&line, 5.0) < 2.0 * before, "{line:?}");
        line.observe(5.0, 1_000.0);
        assert!(at(&line, 5.0) > 10.0 * before, "{line:?}");
    }

    #[test]
    fn what_has_faded_yields_to_what_comes() {
        let mut line = CostLine::new(0.95, 1.0);
        line.observe(4.0, 100.0);
        line.fade(64);
        assert!(line.is_known());
        line.observe(4.0, 8.0);
        assert!(line.fixed() + 4.0 * line.slope() < 12.0, "{line:?}");
    }

    #[test]
    fn neither_part_is_negative() {
        let mut line = CostLine::new(0.95, 0.0);
        for (x, y) in [(1.0, 9.0), (8.0, 2.0), (1.0, 9.0), (8.0, 2.0)] {
            line.observe(x, y);
        }
        assert_eq!(line.slope(), 0.0);
        let mut steep = CostLine::new(0.95, 0.0);
        for (x, y) in [(2.0, 0.0), (8.0, 30.0), (2.0, 0.0), (8.0, 30.0)] {
            steep.observe(x, y);
        }
        assert!(steep.fixed() >= 0.0);
    }
}
