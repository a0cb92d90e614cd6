use super::*;

fn likely(entries: &[(TokenId, f64)]) -> Vec<Likely> {
    let entry = |&(token, mass): &(TokenId, f64)| Likely {
        token,
        logprob: mass.ln(),
    };
    entries.iter().map(entry).collect()
}

/// The two most likely of five tokens, and one that was asked for.
fn row(top: &[(TokenId, f64)], asked: &[(TokenId, f64)]) -> Result<PartialRow, BadRow> {
    PartialRow::new(5, 2, &likely(top), &likely(asked), 1e-6)
}

#[test]
fn a_row_knows_what_was_returned_and_bounds_the_rest() {
    let row = row(&[(3, 0.5), (1, 0.2)], &[(4, 0.05), (1, 0.2)]).expect("a row");
    let known: Vec<TokenId> = row.known().iter().map(|likely| likely.token).collect();
    assert_eq!(known, [3, 1, 4]);
    assert_eq!((row.unknown(), row.is_whole()), (2, false));
    assert!(row.contains(4) && row.contains(1) && !row.contains(0));
    assert_eq!((row.peak(), row.ceiling()), (0.5_f64.ln(), 0.2_f64.ln()));
    let (least, most) = row.unknown_mass();
    assert!((least - 0.25 + 1e-6).abs() < 1e-12 && (most - 0.25 - 1e-6).abs() < 1e-12);
}

#[test]
fn equals_are_ordered_by_id_however_they_come() {
    let row = row(&[(3, 0.25), (1, 0.25)], &[(0, 0.25)]).expect("a row");
    let known: Vec<TokenId> = row.known().iter().map(|likely| likely.token).collect();
    assert_eq!(known, [0, 1, 3]);
}

#[test]
fn a_whole_row_leaves_nothing_open() {
    let logprobs: Vec<f64> = [0.1, 0.6, 0.3].map(f64::ln).to_vec();
    let row = PartialRow::whole(&logprobs, 1e-6).expect("a row");
    assert!(row.is_whole());
    assert_eq!(row.unknown_mass(), (0.0, 0.0));
    assert_eq!(row.known()[0].token, 1);
}

#[test]
fn what_is_no_part_of_a_row_is_refused() {
    let top = [(3, 0.5), (1, 0.2)];
    let refused = |top: &[(TokenId, f64)], asked: &[(TokenId, f64)]| {
        row(top, asked).expect_err("a fault").to_string()
    };
    for (found, expected) in [
        (refused(&top[..1], &[]), "row holds 1 most likely tokens"),
        (
            refused(&[(3, 0.5), (1, 0.2), (0, 0.1)], &[]),
            "row holds 3 ",
        ),
        (refused(&[(1, 0.2), (3, 0.5)], &[]), "token 3 after a less"),
        (refused(&[(3, 0.5), (3, 0.2)], &[]), "token 3 twice"),
        (refused(&top, &[(4, 0.1), (4, 0.1)]), "token 4 twice"),
        (refused(&[(3, 0.5), (5, 0.2)], &[]), "token 5, outside"),
        (refused(&top, &[(u32::MAX, 0.1)]), "outside"),
        (refused(&[(3, f64::NAN), (1, 0.2)], &[]), "NaN"),
        (refused(&top, &[(4, f64::NAN)]), "NaN"),
        (refused(&[(3, f64::INFINITY), (1, 0.2)], &[]), "inf"),
        (refused(&[(3, 1.001), (1, 1e-9)], &[]), "expected at most 0"),
        (
            refused(&top, &[(1, 0.21)]),
            "two log probabilities of token 1",
        ),
        (refused(&top, &[(4, 0.21)]), "leaves token 4 out"),
        // Too much in all, and too little for the three others at 0.1 each to make up for.
        (refused(&[(3, 0.8), (1, 0.3)], &[]), "probabilities of 1.1"),
        (refused(&[(3, 0.5), (1, 0.1)], &[]), "probabilities of 0.6"),
        (refused(&[(3, 0.0), (1, 0.0)], &[]), "probabilities of 0 "),
    ] {
        assert!(found.contains(expected), "{found}: {expected}");
    }
}

#[test]
fn rounding_above_one_and_tokens_without_mass_are_none_of_them() {
    let row = row(&[(3, 1.0 + 5e-7), (1, 0.0)], &[]).expect("a row");
    assert_eq!(row.ceiling(), f64::NEG_INFINITY);
    assert_eq!(row.unknown_mass(), (0.0, 0.0));
    assert!(PartialRow::new(5, 0, &[], &likely(&[(2, 0.5)]), 1e-6).is_ok());
}

/// Tokens 3 and 4 pad the row: what is known of the others is the same, and what they weigh is within the bounds, however
/// much of the padding is known.
#[test]
fn what_pads_a_row_is_no_part_of_it() {
    // All padding is known: tokens 0 and 2 have the 0.25 that is left.
    let known = row(&[(3, 0.5), (1, 0.2)], &[(4, 0.05)]).expect("a row");
    assert_eq!(known.clone().within(5), known);
    let known = known.within(3);
    let tokens: Vec<TokenId> = known.known().iter().map(|likely| likely.token).collect();
    assert_eq!(
        (tokens, known.vocab_size(), known.unknown()),
        (vec![1], 3, 2)
    );
    assert!(known.contains(1) && !known.contains(3) && !known.contains(4));
    assert_eq!(known.ceiling(), 0.2_f64.ln());
    let (least, most) = known.unknown_mass();
    assert!(least <= 0.25 && (0.25..=0.4 + 1e-12).contains(&most));
    // Token 4 may have anything up to 0.1, which then token 2 has not.
    let open = row(&[(1, 0.7), (3, 0.1)], &[(0, 0.1)])
        .expect("a row")
        .within(3);
    let (least, most) = open.unknown_mass();
    assert!(least <= 1e-6 && 0.1 - 1e-6 <= most, "{least} {most}");
    assert_eq!(open.unknown(), 1);
}
