//! What no number may depend on, and numbers at the ends of a format.

use super::*;

#[test]
fn later_positions_change_no_bit() {
    let both = |format| [22, 23].map(|visible| (format, visible));
    for (format, visible) in KvFormat::ALL.into_iter().flat_map(both) {
        let mut cache = cache_in(format, 40, 64);
        let attend = |cache: &CpuCache| {
            let rows = rows(cache, [sees(visible - 1), sees(visible)]);
            let of = |level| self::attend(level, &rows, plain(64));
            Level::all().into_iter().map(of).collect::<Vec<_>>()
        };
        let before = attend(&cache);
        cache.layers[0].write(visible, &[9.0; 128], &[9.0; 128]);
        cache.layers[0].write(31, &[9.0; 128], &[f32::NAN; 128]);
        assert_eq!(attend(&cache), before, "{format}");
        // The last row's own, too, is nothing to the row before it.
        cache.layers[0].write(visible - 1, &[f32::NAN; 128], &[f32::NAN; 128]);
        for (after, before) in attend(&cache).iter().zip(&before) {
            assert_eq!(after[..384], before[..384], "{format}");
        }
    }
}

/// The largest share of a chunk is what others are counted in: nothing has no inverse.
#[test]
fn values_of_nothing_come_to_nothing() {
    for format in KvFormat::ALL {
        let mut cache = cache_in(format, 40, 80);
        for (slot, value) in (0..40).zip([0.0, -0.0].into_iter().cycle()) {
            cache.layers[0].write(slot, &[0.5; 160], &[value; 160]);
        }
        for level in Level::all() {
            let found = attend(level, &rows(&cache, [sees(31), sees(40)]), plain(80));
            assert!(
                found.iter().all(|number| *number == 0.0),
                "{format} {level:?}"
            );
        }
    }
}

/// Too large for the format: not taken for a number, whatever is made of it.
#[test]
fn a_key_or_value_that_is_not_held_breaks_who_sees_it() {
    let too_large = [(KvFormat::F16, 1e6), (KvFormat::Q8_0, 1e7)];
    for (format, large) in too_large {
        for (key, value) in [(large, 0.5), (-large, 0.5), (0.5, large)] {
            let mut cache = cache_in(format, 40, 64);
            cache.layers[0].write(30, &[key; 128], &[value; 128]);
            for softcap in [None, Some(2.0)] {
                let rows = rows(&cache, [sees(30), sees(31)]);
                let scoring = AttentionScoring {
                    softcap,
                    ..plain(64)
                };
                for level in Level::all() {
                    let found = attend(level, &rows, scoring);
                    let (before, after) = found.split_at(HEADS * 64);
                    assert!(before.iter().all(|number| number.is_finite()));
                    let is_broken = after.iter().all(|number| number.is_nan());
                    assert!(is_broken, "{format} {key} {value} {level:?}");
                }
            }
        }
    }
}

/// A weight of 0 would not keep away a value that is no number.
#[test]
fn positions_before_a_window_are_not_read() {
    let scoring = AttentionScoring {
        window: Some(7),
        ..plain(64)
    };
    for format in KvFormat::ALL {
        // The first position seen is even, or odd.
        for last in [20, 21] {
            let mut cache = cache_in(format, 40, 64);
            let attend = |cache: &CpuCache, level| {
                self::attend(level, &rows(cache, [sees(last), sees(last + 1)]), scoring)
            };
            let before: Vec<_> = (Level::all().into_iter())
                .map(|level| attend(&cache, level))
                .collect();
            cache.layers[0].write(last - 8, &[9.0; 128], &[f32::NAN; 128]);
            for (level, before) in Level::all().into_iter().zip(before) {
                assert!(attend(&cache, level) == before, "{format} {last} {level:?}");
            }
        }
    }
}
