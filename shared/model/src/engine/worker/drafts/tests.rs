//! Who gets rows, with made-up costs.

use super::*;

const ROOMY: Room = Room {
    rows: 100,
    pages: usize::MAX,
};

/// Drafts of `worth` that the task offers, each at `cost`.
fn offered(task: usize, worth: &[f64], cost: f64) -> impl Iterator<Item = Candidate> {
    worth
        .iter()
        .map(move |&worth| Candidate { task, worth, cost })
}

/// A forward of one token that takes a second without drafts, whose rows cost a tenth.
fn begun(has_others: bool) -> DraftRows {
    let mut drafts = DraftRows::new(0.98);
    drafts.begins(has_others, 1.0);
    drafts
}

fn choose(drafts: &mut DraftRows, room: Room) -> Vec<usize> {
    drafts.choose((1.0, 1.0), room, 2, |_, _| 0)
}

/// Tokens a second with the first `count` of the drafts.
fn speed(worth: &[f64], cost: f64, count: usize) -> f64 {
    (1.0 + worth[..count].iter().sum::<f64>()) / (1.0 + cost * count as f64)
}

#[test]
fn rows_are_given_as_long_as_tokens_a_second_grow() {
    let falling = [0.95, 0.9, 0.7, 0.5, 0.3, 0.2, 0.1, 0.05];
    for cost in [0.001, 0.05, 0.1, 0.2, 0.4, 0.8, 0.99] {
        let mut drafts = begun(false);
        drafts.candidates.extend(offered(0, &falling, cost));
        let given = choose(&mut drafts, ROOMY)[0];
        let of = |count| speed(&falling, cost, count);
        let best = (0..=falling.len()).max_by(|&one, &other| of(one).total_cmp(&of(other)));
        assert_eq!(Some(given), best, "a row costs {cost}");
        let (price, refused) = (drafts.price, falling.get(given));
        assert!(refused.is_none_or(|&worth| worth < price), "{price}");
    }
    let mut drafts = begun(false);
    drafts.candidates.extend(offered(0, &falling, 1.0));
    // No draft can stand more surely than what the target adds.
    assert_eq!(choose(&mut drafts, ROOMY), [0, 0]);
    assert_eq!(drafts.price, 1.0);
}

#[test]
fn room_bounds_rows_and_pages() {
    let mut drafts = begun(false);
    drafts.candidates.extend(offered(0, &[1.0; 9], 0.01));
    drafts.candidates.extend(offered(1, &[0.9; 9], 0.01));
    let few = |rows| Room { rows, ..ROOMY };
    for (rows, expected) in [(0, [0, 0]), (3, [3, 0]), (12, [9, 3]), (40, [9, 9])] {
        assert_eq!(choose(&mut drafts, few(rows)), expected, "{rows} rows");
    }
    // Every fourth draft of the first begins a page, the first one too; of the second every second does.
    let pages = |task: usize, count: usize| match task {
        0 => count.div_ceil(4),
        _ => count / 2,
    };
    for (free, expected) in [(0, [0, 1]), (1, [4, 1]), (4, [9, 3]), (9, [9, 9])] {
        let room = Room {
            pages: free,
            ..ROOMY
        };
        let given = drafts.choose((1.0, 1.0), room, 2, pages);
        assert_eq!(given, expected, "{free} pages");
    }
}

#[test]
fn beside_those_that_take_none_drafts_lengthen_forwards_by_little() {
    for cost in [0.002, 0.03, 0.1, 0.24] {
        let mut drafts = begun(true);
        let (mut lengthened, mut longest) = (0.0, 0);
        for _ in 0..1_000 {
            drafts.begins(true, 1.0);
            drafts.candidates.extend(offered(0, &[1.0; 60], cost));
            let given = choose(&mut drafts, ROOMY)[0];
            lengthened += given as f64 * cost;
            longest = longest.max(given);
        }
        let allowed = 1_000.0 * PATIENCE + SAVED;
        assert!(
            lengthened <= allowed && lengthened > 0.5 * allowed,
            "a row costs {cost}: {lengthened} of {allowed}"
        );
        assert!(longest as f64 * cost <= SAVED + 1e-9, "{longest} rows");
    }
    // A row that costs more than may ever be saved is never given.
    let mut drafts = begun(true);
    for _ in 0..1_000 {
        drafts.begins(true, 1.0);
        drafts.candidates.extend(offered(0, &[1.0], 0.3));
        assert_eq!(choose(&mut drafts, ROOMY), [0, 0]);
    }
}

#[test]
fn the_bound_goes_when_the_last_of_them_has_been_away_for_a_while() {
    let mut drafts = begun(true);
    let given: Vec<usize> = (0..=LATELY)
        .map(|_| {
            drafts.begins(false, 1.0);
            drafts.candidates.extend(offered(0, &[1.0; 9], 0.1));
            choose(&mut drafts, ROOMY)[0]
        })
        .collect();
    let (bounded, free) = given.split_at(LATELY as usize - 1);
    assert!(bounded.iter().all(|&given| given <= 2), "{bounded:?}");
    assert_eq!(free, [9, 9]);
}

#[test]
fn a_row_costs_more_where_it_looks_back_on_more() {
    let mut rows_cost = CostLine::new(0.98, 0.0);
    let mut drafts = DraftRows::new(0.98);
    // Of rows nothing is known as long as all forwards have as many, and at first nothing at all.
    assert_eq!(drafts.cost(&rows_cost, 100), ASSUMED * UNMEASURED);
    rows_cost.observe(1.0, 1.0);
    assert_eq!(drafts.cost(&rows_cost, 100), ASSUMED);
    for turn in 0..200 {
        let rows = f64::from(1 + turn % 4);
        rows_cost.observe(rows, 1.0 + 0.1 * rows);
    }
    let plain = rows_cost.slope();
    assert!((0.08..0.12).contains(&plain), "{plain}");
    // A second for 1,024 tokens that all rows of a forward look back on.
    for turn in 0..200 {
        let context = f64::from(1 + turn % 4) / 4.0;
        drafts.context_cost.observe(context, 1.0 + context);
    }
    drafts.context = 0.5;
    let costs = [0, 256, 512, 600, 1_024].map(|len| drafts.cost(&rows_cost, len));
    assert!(costs.is_sorted(), "{costs:?}");
    assert!((costs[2] - plain).abs() < 1e-9, "{costs:?}");
    assert!(costs[4] > 3.0 * plain, "{costs:?}");
    // A short context makes a row cheap, and never free.
    assert!((costs[0] - LEAST * plain).abs() < 1e-9, "{costs:?}");
}

/// A row that once took long by chance would never be measured again.
#[test]
fn now_and_then_a_row_is_given_whatever_it_seems_to_cost() {
    let mut drafts = begun(false);
    let mut tried = Vec::new();
    for forward in 0..1_000 {
        drafts.begins(false, 1.0);
        drafts.candidates.extend(offered(0, &[0.5, 0.4], 3.0));
        if choose(&mut drafts, ROOMY) != [0, 0] {
            tried.push(forward);
        }
    }
    assert_eq!(tried, [256, 513, 770]);
    // Beside tasks that take none nothing is tried.
    let mut drafts = begun(true);
    for _ in 0..100 {
        drafts.begins(true, 1.0);
        drafts.candidates.extend(offered(0, &[0.5, 0.4], 3.0));
        assert_eq!(choose(&mut drafts, ROOMY), [0, 0]);
    }
}
