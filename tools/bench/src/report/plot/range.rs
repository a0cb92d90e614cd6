//! How far an axis goes.

/// Part of the axis before the first value, and behind the last.
const MARGIN: f64 = 0.05;

/// Returns a range from a little below the least of `values` to a little above the largest.
pub(super) fn of(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (least, most) = values.fold(
        (f64::INFINITY, f64::NEG_INFINITY),
        |(least, most), value| (value.min(least), value.max(most)),
    );
    if least > most {
        return (0.0, 1.0);
    }
    let margin = if least == most {
        0.5
    } else {
        MARGIN * (most - least)
    };
    (least - margin, most + margin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_room_around_its_values() {
        assert_eq!(of([50.0, 90.0, 60.0].into_iter()), (48.0, 92.0));
        assert_eq!(of([90.0].into_iter()), (89.5, 90.5));
        assert_eq!(of(std::iter::empty()), (0.0, 1.0));
    }
}
