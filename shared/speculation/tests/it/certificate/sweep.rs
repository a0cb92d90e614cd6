//! No wrong proof in random rows. `OUTRIDER_SWEEP=full` tries a hundred times as many.

use std::collections::BTreeMap;

use speculation::TokenId;
use speculation::certificate::{PartialDistribution, RowRefusal};
use speculation::coupled;
use speculation::verification::residual::residual;

use super::case::{Case, POSITION};
use super::random::Random;

/// Number of random rows.
fn rows() -> u64 {
    match std::env::var("OUTRIDER_SWEEP").as_deref() {
        Ok("full") => 10_000_000,
        _ => 100_000,
    }
}

/// How often something was proved.
#[derive(Default)]
struct Tally(BTreeMap<&'static str, [u32; 2]>);

impl Tally {
    fn count<T>(&mut self, what: &'static str, proved: Option<T>) -> Option<T> {
        self.0.entry(what).or_default()[usize::from(proved.is_some())] += 1;
        proved
    }
}

/// What the whole row decides, by the functions that verify dense rows.
struct Dense {
    probs: Vec<f64>,
    choice: TokenId,
    residual: TokenId,
}

impl Dense {
    fn of(case: &Case) -> Option<Self> {
        let probs = case.probs()?;
        let mut excess = vec![0.0; case.vocab()];
        for &(token, mass) in &case.draft {
            excess[token as usize] = mass;
        }
        residual(0.0, &probs, &mut excess);
        Some(Self {
            choice: coupled::choice(&probs, &case.noise, POSITION),
            residual: coupled::choice(&excess, &case.noise.unshared(), POSITION),
            probs,
        })
    }
}

/// Parts of several sizes, and the whole row. What is proved is what the dense row decides, and of the whole row
/// everything is.
#[test]
fn nothing_wrong_is_proved_of_random_rows() {
    let mut tally = Tally::default();
    for number in 0..rows() {
        // A quarter of the rows are small, where the ends of everything are near.
        let most_tokens = if number % 4 == 0 { 8 } else { 256 };
        check(number, &Case::new(number, most_tokens), &mut tally);
    }
    for (what, [unproved, proved]) in &tally.0 {
        println!("{what}: {proved} proved, {unproved} unproved");
        // Neither says nothing.
        assert!(
            proved + unproved < 1000 || *proved * 4 > *unproved,
            "{what}"
        );
        assert!(
            proved + unproved < 1000 || *unproved * 1000 > *proved,
            "{what}"
        );
    }
}

fn check(number: u64, case: &Case, tally: &mut Tally) {
    let mut random = Random::new(!number);
    let dense = Dense::of(case);
    let whole = case.whole();
    let of_whole = PartialDistribution::of(&whole, &case.params, &case.history, POSITION);
    let Some(dense) = dense else {
        assert_eq!(of_whole.err(), Some(RowRefusal::NoSupport), "case {number}");
        return;
    };
    let of_whole = of_whole.expect("a distribution");
    let top = random.below(case.vocab() + 1);
    let noise = random.below(case.vocab() / 2 + 1);
    // As many as are asked for, or more, so that the first of the others is at hand.
    let ranked = noise + [0, 1, 8, 200][random.below(4)];
    let shared = case.ranking(case.noise, ranked);
    let own = case.ranking(case.noise.unshared(), ranked);
    let part = case.part((top, noise), &shared, number);
    let of_part = PartialDistribution::of(&part, &case.params, &case.history, POSITION);
    let of_part = of_part.expect("a distribution");

    let chosen = of_whole.choice(&shared);
    assert_eq!(chosen, Some(dense.choice), "case {number}");
    if let Some(token) = tally.count(setting(case), of_part.choice(&shared)) {
        assert_eq!(token, dense.choice, "case {number}");
    }

    let (token, draft_prob) = case.draft[random.below(case.draft.len())];
    let ratio = dense.probs[token as usize] / draft_prob;
    // Any, and near the ratio.
    let eta = if random.happens(0.5) {
        random.uniform()
    } else {
        ratio * (1.0 + random.normal() * 10_f64.powi(-(1 + random.below(8) as i32)))
    };
    let accepted = Some(eta < ratio);
    let test = of_whole.accepts(token, draft_prob, eta);
    assert_eq!(test, Ok(accepted), "case {number}");
    let test = of_part.accepts(token, draft_prob, eta).expect("known");
    if let Some(accepts) = tally.count("accept test", test) {
        assert_eq!(Some(accepts), accepted, "case {number}");
    }

    // Its own noise, of which other tokens were asked for.
    let part = case.part((top, noise), &own, number);
    let of_part = PartialDistribution::of(&part, &case.params, &case.history, POSITION);
    let found = of_whole.residual(&case.draft, &own);
    assert_eq!(found, Ok(Some(dense.residual)), "case {number}");
    let found = of_part.expect("a distribution").residual(&case.draft, &own);
    if let Some(token) = tally.count("residual", found.expect("known")) {
        assert_eq!(token, dense.residual, "case {number}");
    }
}

/// The setting that the case is counted with.
fn setting(case: &Case) -> &'static str {
    let params = &case.params;
    if params.temperature == 0.0 {
        "T = 0"
    } else if params.top_p < 1.0 {
        match params.temperature {
            1.0 => "top-p, T = 1",
            temperature if temperature < 1.0 => "top-p, T < 1",
            _ => "top-p, T > 1",
        }
    } else if params.top_k > 0 {
        "top-k"
    } else if params.min_p > 0.0 {
        "min-p"
    } else if params.allowed_tokens.is_empty() {
        "T > 0"
    } else {
        "allowed tokens"
    }
}
