//! Which drafts get rows, and which rows they get.

use outrider_tests::toy::ToyModel;

use super::super::toy::Toy;
use super::*;

const VOCAB: usize = 64;

/// Has the tasks begin together, each on a slot of its own, in one engine. Returns what they tell.
fn together<M>(
    model: M,
    change: impl FnOnce(&mut EngineConfig),
    tasks: Vec<(Stream, Receiver<Told>)>,
) -> Vec<Receiver<Told>>
where
    M: LanguageModel + Send + 'static,
    M::Cache: Send,
{
    let mut config = EngineConfig {
        prefill_time: None,
        ..EngineConfig::default()
    };
    change(&mut config);
    let (handle, _thread) = spawn(model, config, "toy").unwrap();
    let gate = Arc::new(Mutex::new(()));
    let closed = gate.lock().unwrap();
    // It holds the engine up until all have been submitted.
    let (mut first, _told) = Stream::new(&[9], 0, Some(Offer::default()));
    first.gate = Arc::clone(&gate);
    handle.try_submit(SlotId(99), first).unwrap();
    while handle.stats().queued > 0 {
        thread::yield_now();
    }
    let submitted = (0..).zip(tasks).map(|(slot, (task, told))| {
        handle.try_submit(SlotId(slot), task).unwrap();
        told
    });
    let submitted = submitted.collect();
    drop(closed);
    submitted
}

/// A forward takes long enough that a row is nothing beside it.
fn slow() -> Toy {
    Toy {
        forward_time: Duration::from_millis(3),
        ..Toy::default()
    }
}

/// Drafts of each forward that had any: one entry a task. The tasks decode as long as each other.
fn given(
    offers: &[&[f32]],
    extra: usize,
    change: impl FnOnce(&mut EngineConfig),
) -> Vec<Vec<usize>> {
    let tasks = offers.iter().map(|worth| {
        let mut offer = Offer::wrong(worth);
        offer.tokens.fill(7);
        Stream::new(&[1], extra, Some(offer))
    });
    let told = together(slow(), change, tasks.collect());
    let drafts: Vec<Vec<usize>> = told.iter().map(drafts_of).collect();
    let steps = drafts[0].len();
    let forwards = (0..steps).map(|at| drafts.iter().map(|own| own[at]).collect());
    let forwards = forwards.filter(|given: &Vec<usize>| given.iter().any(|&count| count > 0));
    forwards.collect()
}

/// Though nobody knows yet what a row takes; beside the prompt there are none.
#[test]
fn the_first_forward_after_a_prompt_has_drafts() {
    let mut offer = Offer::wrong(&[0.9]);
    offer.tokens.fill(7);
    let (task, told) = Stream::new(&[1, 2, 3], 1, Some(offer));
    let config = EngineConfig {
        prefill_time: None,
        ..EngineConfig::default()
    };
    let (handle, _thread) = spawn(slow(), config, "toy").unwrap();
    handle.try_submit(SlotId(0), task).unwrap();
    assert_eq!(drafts_of(&told), [0, 1]);
}

#[test]
fn drafts_of_a_forward_are_bounded() {
    let offers: [&[f32]; 3] = [&[1.0; 20]; 3];
    for most in [0, 1, 3, 9] {
        let found = given(&offers, 12, |config| config.max_draft_rows = most);
        assert_eq!(found.is_empty(), most == 0, "{most}");
        for forward in &found {
            assert!(forward.iter().sum::<usize>() <= most, "{most}: {found:?}");
        }
    }
    // No task has more than a tree may have.
    let found = given(&offers, 12, |config| config.tree_tokens = 2);
    assert!(!found.is_empty());
    assert!(found.iter().flatten().all(|&count| count <= 2), "{found:?}");
}

#[test]
fn rows_go_to_the_best_drafts_of_all_tasks() {
    let offers: [&[f32]; 3] = [&[0.9, 0.8, 0.7, 0.1], &[0.95, 0.3, 0.2], &[0.85, 0.84]];
    let full = |most, expected: [usize; 3]| {
        let found = given(&offers, 20, |config| config.max_draft_rows = most);
        let is_full = |forward: &&Vec<usize>| forward.iter().sum::<usize>() == most;
        let full: Vec<_> = found.iter().filter(is_full).collect();
        assert!(!full.is_empty(), "{found:?}");
        assert!(
            full.iter().all(|forward| **forward == expected),
            "{found:?}"
        );
    };
    full(1, [0, 1, 0]);
    full(2, [1, 1, 0]);
    full(4, [1, 1, 2]);
    full(6, [3, 1, 2]);
}

#[test]
fn a_task_without_drafts_is_forwarded_beside_those_with_them() {
    let offer = || Some(Offer::wrong(&[1.0; 30]));
    let mut tasks: Vec<_> = (0..3).map(|_| Stream::new(&[1], 30, offer())).collect();
    tasks.push(Stream::new(&[2], 30, None));
    let model = Recorded::new(ToyModel::new(5, VOCAB));
    let forwards = Arc::clone(&model.forwards);
    let told = together(model, |_| {}, tasks);
    for told in &told {
        assert_eq!(steps(told).len(), 31);
    }
    let forwards = forwards.lock().unwrap();
    let of_last = forwards.iter().flatten().filter(|tokens| tokens[0] == 2);
    assert!(of_last.clone().all(|tokens| tokens.len() == 1));
    assert_eq!(of_last.count(), 31);
}

/// The rows of the model after each of these contexts.
fn rows(model: &ToyModel, contexts: &[Vec<TokenId>]) -> Vec<f32> {
    let mut rows = vec![0.0; contexts.len() * VOCAB];
    for (context, row) in contexts.iter().zip(rows.chunks_mut(VOCAB)) {
        model.logits(context, row);
    }
    rows
}

/// Checks every step of a task that decodes 3s after 3, 4: its rows are those of each path alone, and nothing is forwarded
/// that its sequence holds.
fn rows_are_those_of_paths(offer: &Offer) {
    let model = ToyModel::new(5, VOCAB);
    let (task, told) = Stream::new(&[3, 4], 10, Some(offer.clone()));
    let told = together(model.clone(), |_| {}, vec![(task, told)]);
    let (mut context, mut fresh, mut most) = (vec![3, 4], 2, 0);
    for (drafts, found, forwarded) in steps(&told[0]) {
        let mut paths: Vec<Vec<TokenId>> = Vec::new();
        for (node, &token) in drafts.iter().enumerate() {
            let parent = match offer.parents.get(node) {
                Some(parent) => parent.map(|parent| parent as usize),
                None => node.checked_sub(1),
            };
            let path = parent.map_or_else(|| context.clone(), |parent| paths[parent].clone());
            paths.push([&path[..], &[token]].concat());
        }
        paths.insert(0, context.clone());
        assert!(
            found == rows(&model, &paths),
            "{drafts:?} after {context:?}"
        );
        assert_eq!(forwarded, fresh + drafts.len(), "after {context:?}");
        let stands = offer.stands.iter();
        let stands = stands.take_while(|&&node| (node as usize) < drafts.len());
        context.extend(stands.map(|&node| drafts[node as usize]));
        context.push(3);
        (fresh, most) = (1, most.max(drafts.len()));
    }
    assert_eq!(most, offer.tokens.len(), "all of the drafts had rows once");
}

#[test]
fn chains_and_trees_get_the_rows_of_their_paths() {
    let chain = Offer {
        worth: vec![0.99, 0.98, 0.97, 0.96],
        tokens: vec![10, 11, 12, 13],
        parents: Vec::new(),
        stands: vec![0, 1],
    };
    // Two branches of two, and a third child of the first node, in no tidy order.
    let tree = Offer {
        worth: vec![0.99; 5],
        tokens: vec![10, 11, 12, 13, 14],
        parents: vec![None, None, Some(1), Some(0), Some(0)],
        stands: vec![1, 2],
    };
    for stands in [vec![], vec![0], vec![0, 1, 2, 3]] {
        rows_are_those_of_paths(&Offer {
            stands,
            ..chain.clone()
        });
    }
    for stands in [vec![], vec![1], vec![1, 2], vec![0, 4]] {
        rows_are_those_of_paths(&Offer {
            stands,
            ..tree.clone()
        });
    }
}

#[test]
fn a_model_without_trees_is_offered_chains() {
    let few = Caps {
        max_sequences: 8,
        ..Caps::ALL
    };
    let none = Caps {
        trees: false,
        ..Caps::ALL
    };
    for (caps, expected) in [(Caps::ALL, false), (few, true), (none, true)] {
        let model = Recorded {
            caps,
            ..Recorded::new(ToyModel::new(5, VOCAB))
        };
        let (task, told) = Stream::new(&[3, 4], 5, Some(Offer::wrong(&[1.0; 3])));
        let told = together(model, |_| {}, vec![(task, told)]);
        let asked = std::iter::from_fn(|| told[0].recv_timeout(PATIENCE).ok());
        let asked = asked.filter_map(|told| match told {
            Told::Asked(chain) => Some(chain),
            Told::Waits | Told::Step(..) => None,
        });
        // Once for each forward but those that only read.
        assert_eq!(asked.collect::<Vec<_>>(), [expected; 6]);
    }
}

#[test]
fn drafts_that_the_model_refuses_are_left_out() {
    let unknown = Offer {
        worth: vec![1.0; 2],
        tokens: vec![5, VOCAB as TokenId],
        ..Offer::default()
    };
    let no_tree = Offer {
        worth: vec![1.0; 2],
        tokens: vec![5, 6],
        parents: vec![Some(0), None],
        ..Offer::default()
    };
    for offer in [unknown, no_tree] {
        let (task, told) = Stream::new(&[3, 4], 8, Some(offer));
        let told = together(ToyModel::new(5, VOCAB), |_| {}, vec![(task, told)]);
        let given = drafts_of(&told[0]);
        assert_eq!(given.len(), 9);
        assert!(given.iter().all(|&drafts| drafts < 2), "{given:?}");
    }
}
