use super::*;

/// By the definition: sorted by value, among equals by index, and added up until it suffices.
fn by_sorting<F: Real>(row: &[F], weight: Weight, goal: u64) -> Option<CutPoint<F>> {
    let mut order: Vec<usize> = (0..row.len()).filter(|&v| row[v] > F::zero()).collect();
    order.sort_by(|&a, &b| row[b].partial_cmp(&row[a]).unwrap().then(a.cmp(&b)));
    let mut sum = 0;
    let last = order.iter().position(|&v| {
        sum += weight.of(row[v]);
        sum >= goal
    })?;
    let least = row[order[last]];
    let surplus = order[last + 1..]
        .iter()
        .filter(|&&v| row[v] == least)
        .count();
    Some(CutPoint { least, surplus })
}

/// Distributions of every shape: peaked, flat, with few different values, with zeros, of one token.
fn rows() -> Vec<Vec<f32>> {
    let mut state = 7_u64;
    let mut uniform = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 40) as f32 / (1 << 24) as f32
    };
    let mut rows = Vec::new();
    for len in [1_usize, 2, 3, 7, 8, 9, 15, 16, 17, 100, 1000, 5003] {
        for shape in 0..6 {
            let mut row: Vec<f32> = (0..len)
                .map(|_| match shape {
                    0 => (12.0 * uniform()).exp(),
                    1 => (40.0 * uniform()).exp(),
                    2 => 1.0,
                    3 => (5.0 * uniform()).floor().exp(),
                    4 => (20.0 * uniform()).exp() * f32::from(u8::from(uniform() < 0.3)),
                    _ => 1.0 + uniform() * 1e-6,
                })
                .collect();
            let total: f64 = row.iter().map(|&value| f64::from(value)).sum();
            if total > 0.0 {
                for value in &mut row {
                    *value = (f64::from(*value) / total) as f32;
                }
                rows.push(row);
            }
        }
    }
    rows
}

fn check<F: Real>(row: &[F], weight: Weight, goal: u64) {
    let max = row.iter().copied().fold(F::zero(), F::max);
    let found = find(row, max, weight, goal, &mut Vec::new());
    assert_eq!(
        found,
        by_sorting(row, weight, goal),
        "{weight:?} {goal} {}",
        row.len()
    );
}

#[test]
fn what_is_kept_is_what_sorting_keeps() {
    for row in rows() {
        for top_p in [1e-9, 0.1, 0.5, 0.9, 0.95, 0.999, 0.999_999, 1.0] {
            check(&row, Weight::Mass, Weight::Mass.of(top_p));
        }
        for k in [1, 2, 5, row.len() / 3 + 1, row.len()] {
            check(&row, Weight::Count, k as u64);
        }
        let doubles: Vec<f64> = row.iter().map(|&value| f64::from(value)).collect();
        check(&doubles, Weight::Mass, Weight::Mass.of(0.9));
        check(&doubles, Weight::Count, 3);
    }
}

/// A goal that is met exactly is met, and one unit more takes one value more.
#[test]
fn the_goal_itself_suffices() {
    for row in rows() {
        let mut sorted = row.clone();
        sorted.sort_by(|a, b| b.total_cmp(a));
        let mut sum = 0;
        for &value in sorted.iter().take(20) {
            sum += Weight::Mass.of(value);
            check(&row, Weight::Mass, sum);
            check(&row, Weight::Mass, sum + 1);
        }
    }
}

#[test]
fn wide_instructions_change_no_weight() {
    for row in rows() {
        for weight in [Weight::Count, Weight::Mass] {
            let probes = [0.3, 0.01, 1e-4, 1e-9].map(|probe| probe * row[0].max(1e-9));
            let above = || Above {
                row: &row,
                probes,
                weight,
            };
            let expected = probes.map(|probe| {
                let kept = row.iter().filter(|&&value| value >= probe);
                kept.map(|&value| weight.of(value)).sum::<u64>()
            });
            for level in Level::all() {
                assert_eq!(level.run(above()), expected);
            }
        }
    }
}

#[test]
fn a_mass_is_rounded_to_the_nearest_unit() {
    assert_eq!(Weight::Mass.of(1.0_f64), 1 << 52);
    assert_eq!(Weight::Mass.of(0.25_f32), 1 << 50);
    assert_eq!(Weight::Mass.of(f64::powi(2.0, -52)), 1);
    assert_eq!(Weight::Mass.of(f64::powi(2.0, -54)), 0);
}
