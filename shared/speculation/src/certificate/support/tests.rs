use super::*;

fn adjusted(known: &[f64], unknown: &[f64]) -> Adjusted {
    let known = known.iter().enumerate();
    let mass: f64 = unknown.iter().sum();
    Adjusted {
        known: known
            .map(|(token, mass)| (token as u32, mass.ln()))
            .collect(),
        unknown: Unknown {
            count: unknown.len(),
            ceiling: unknown.iter().copied().fold(0.0, f64::max).ln(),
            mass: (mass, mass),
            lowered: 0,
        },
    }
}

fn support(params: &SamplingParams, known: &[f64], unknown: &[f64]) -> Option<Support> {
    let vocab_size = known.len() + unknown.len();
    Support::of(&adjusted(known, unknown), params, vocab_size)
}

fn at(temperature: f32) -> SamplingParams {
    SamplingParams {
        temperature,
        ..Default::default()
    }
}

#[test]
fn the_total_lies_between_its_bounds_and_they_are_reached() {
    let known = [0.5, 0.2];
    for temperature in [0.25_f32, 0.7, 1.0, 1.4, 4.0] {
        let total = |unknown: &[f64]| -> f64 {
            let power = 1.0 / f64::from(temperature);
            let all = known.iter().chain(unknown);
            all.map(|mass| (mass / 0.5).powf(power)).sum()
        };
        // Spread evenly, gathered in few tokens, and neither.
        let even = [0.1; 3];
        let gathered = [0.15, 0.15, 0.0];
        for unknown in [even, gathered, [0.2, 0.07, 0.03]] {
            let found = support(&at(temperature), &known, &unknown).expect("a support");
            let WeightInterval { least, most } = found.total;
            let total = total(&unknown);
            assert!((least..=most).contains(&total), "{temperature} {unknown:?}");
            if unknown == even || unknown == gathered {
                let off = (total - least).min(most - total);
                assert!(off < 1e-8 * total, "{temperature} {unknown:?} {off}");
            }
        }
    }
}

#[test]
fn a_top_p_is_decided_where_both_ends_cut_alike() {
    let cut = |top_p: f32, temperature: f32| {
        let params = SamplingParams {
            top_p,
            ..at(temperature)
        };
        let found = support(&params, &[0.5, 0.2, 0.1], &[0.1, 0.05, 0.05]).expect("a support");
        (found.sure, found.possible, found.open)
    };
    assert_eq!(cut(0.6, 1.0), (2, 2, false));
    assert_eq!(cut(0.45, 0.7), (1, 1, false));
    // 0.5 of 1, and rounding.
    assert_eq!(cut(0.5, 1.0), (1, 2, false));
    // The third may be a tie with an unknown one.
    assert_eq!(cut(0.75, 1.0), (2, 3, true));
    assert_eq!(cut(0.95, 1.0), (2, 3, true));
    // Between the ends of the total.
    let total = support(&at(0.5), &[0.5, 0.2, 0.1], &[0.1, 0.05, 0.05]);
    let total = total.expect("a support").total;
    let between = 2.0 / (total.least + total.most);
    assert_eq!(cut(between as f32, 0.5), (1, 2, false));
}

#[test]
fn a_top_k_is_decided_above_the_unknown() {
    let cut = |top_k: u32| {
        let params = SamplingParams { top_k, ..at(1.0) };
        support(&params, &[0.5, 0.2, 0.1], &[0.1, 0.1]).map(|found| found.possible)
    };
    assert_eq!(
        [1, 2, 3, 4, 5].map(cut),
        [Some(1), Some(2), None, None, Some(3)]
    );
}

#[test]
fn a_min_p_closes_the_support_or_leaves_the_bound() {
    let cut = |min_p: f32| {
        let params = SamplingParams { min_p, ..at(1.0) };
        let found = support(&params, &[0.5, 0.2, 0.1], &[0.1, 0.1]).expect("a support");
        (found.sure, found.possible, found.open)
    };
    assert_eq!(cut(0.3), (2, 2, false));
    assert_eq!(cut(0.1), (3, 3, true));
    assert_eq!(cut(1.0), (1, 1, false));
    let params = SamplingParams {
        min_p: 0.1,
        ..at(1.0)
    };
    assert!(support(&params, &[0.1, 0.1], &[0.6, 0.2]).is_none());
}
