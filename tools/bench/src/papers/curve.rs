//! A line through points.

/// Returns the height at `x` of the straight lines between points `[x, y]`, in whatever order they come; beyond the first and
/// the last point theirs. None without points.
pub(super) fn height(points: &[[f64; 2]], x: f64) -> Option<f64> {
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| a[0].total_cmp(&b[0]));
    let (first, last) = (sorted.first()?, sorted.last()?);
    if x <= first[0] {
        return Some(first[1]);
    }
    let between = sorted
        .windows(2)
        .find(|pair| x <= pair[1][0] && pair[1][0] > pair[0][0]);
    Some(between.map_or(last[1], |pair| {
        let share = (x - pair[0][0]) / (pair[1][0] - pair[0][0]);
        pair[0][1] + share * (pair[1][1] - pair[0][1])
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_through_its_points_and_ends_with_them() {
        let points = [[2.0, 0.3], [0.5, 0.6], [1.0, 0.4]];
        for (x, expected) in [(0.4, 0.6), (0.5, 0.6), (0.75, 0.5), (1.5, 0.35), (9.0, 0.3)] {
            let found = height(&points, x).expect("points");
            assert!((found - expected).abs() < 1e-12, "{x}: {found}");
        }
        assert_eq!(height(&[], 1.0), None);
    }
}
