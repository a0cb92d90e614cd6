//! The middle and the ends of many values.

use crate::timing::quantile;

/// Mean and percentiles of values, in their unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) count: usize,
    pub(super) mean: f64,
    pub(super) median: f64,
    pub(super) p90: f64,
    pub(super) p99: f64,
}

impl Spread {
    /// Returns those of `values`; none if there are no values.
    pub(super) fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        Some(Self {
            count: values.len(),
            mean: values.iter().sum::<f64>() / values.len() as f64,
            median: quantile(&values, 0.5)?,
            p90: quantile(&values, 0.9)?,
            p99: quantile(&values, 0.99)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_lie_between_values_as_those_of_numpy() {
        // numpy.percentile(range(1, 11), [50, 90, 99]), in any order.
        let values = [10.0, 1.0, 9.0, 2.0, 8.0, 3.0, 7.0, 4.0, 6.0, 5.0];
        let spread = Spread::of(values.to_vec()).expect("values");
        assert_eq!((spread.count, spread.mean, spread.median), (10, 5.5, 5.5));
        assert!((spread.p90 - 9.1).abs() < 1e-12, "{spread:?}");
        assert!((spread.p99 - 9.91).abs() < 1e-12, "{spread:?}");
    }

    #[test]
    fn one_value_is_all_of_them_and_none_is_nothing() {
        let spread = Spread::of(vec![3.0]).expect("a value");
        let all = [spread.mean, spread.median, spread.p90, spread.p99];
        assert_eq!(all, [3.0; 4]);
        assert_eq!(Spread::of(Vec::new()), None);
    }
}
