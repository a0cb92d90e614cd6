//! Max-Gram against its definition, searched by brute force, and against recorded vectors.

mod golden;
mod reference;

use reference::{Reference, Words};
use speculation::TokenId;
use speculation::max_gram::{Bigram, MaxGram};

/// A table of `vocab` tokens.
fn table(words: &mut Words, vocab: u32) -> Bigram {
    Bigram::new((0..vocab).map(|_| words.below(vocab)).collect()).expect("a table")
}

/// 20,000 contexts that grow, shrink, and change under the index, each with proposals on the way; a
/// third of them beside a corpus.
#[test]
fn equals_the_definition_searched_by_brute_force() {
    let mut words = Words::new(17);
    for case in 0..20_000 {
        let vocab = 1 + words.below(5);
        let corpus = match case % 3 {
            0 => words.text(24, vocab),
            _ => Vec::new(),
        };
        let bigram = table(&mut words, vocab);
        let mut index = MaxGram::new(&corpus);
        let mut context: Vec<TokenId> = Vec::new();
        for _ in 0..4 {
            match words.below(4) {
                0 => {
                    context.truncate(words.below(context.len() as u32 + 2) as usize);
                    index.truncate(context.len());
                }
                1 => {
                    let keep = words.below(context.len() as u32 + 1) as usize;
                    let added = words.text(12, vocab);
                    context = [&context[..keep], &added].concat();
                    index.reconcile(&context);
                }
                _ => {
                    for token in words.text(16, vocab) {
                        context.push(token);
                        index.push(token);
                    }
                }
            }
            let count = words.below(14) as usize;
            let reference = Reference {
                corpus: &corpus,
                bigram: bigram.table(),
            };
            let expected = reference.propose(&context, count);
            let what = format!("{count} after {context:?} beside {corpus:?}");
            assert_eq!(index.propose(count, &bigram), expected, "{what}");
            assert_eq!(index.tokens(), context, "{what}");
            assert_eq!(index.propose(count, &bigram), expected, "again {what}");
            let beside = index.alternatives(&expected, 3);
            let ranked = reference.alternatives(&context, &expected, 3);
            assert_eq!(beside, ranked, "{what}");
            let sure = index.propose_sure(count, &bigram);
            let found = sure.first().map(|sure| (sure.match_len, sure.match_count));
            let expected = (count > 0).then(|| reference.evidence(&context));
            assert_eq!(found, expected, "{what}");
        }
    }
}

/// The repetitions that automata find hardest, long enough that a slip in taking back would show.
#[test]
fn long_repetitions_survive_being_taken_back() {
    let mut words = Words::new(3);
    let bigram = table(&mut words, 3);
    let fibonacci = |len: usize| -> Vec<TokenId> {
        let (mut one, mut two) = (vec![0], vec![0, 1]);
        while two.len() < len {
            let next = [two.as_slice(), &one].concat();
            one = std::mem::replace(&mut two, next);
        }
        two
    };
    for text in [vec![0; 300], fibonacci(300), [0, 1, 2].repeat(100)] {
        let mut index = MaxGram::new(&[]);
        index.reconcile(&text);
        for len in (0..text.len()).rev().step_by(7) {
            index.truncate(len);
            for token in [2, 1, 0, 2] {
                index.push(token);
            }
            index.truncate(len);
            let reference = Reference {
                corpus: &[],
                bigram: bigram.table(),
            };
            let expected = reference.propose(&text[..len], 9);
            assert_eq!(index.propose(9, &bigram), expected, "after {len} tokens");
        }
    }
}

/// The estimate is counted on the text itself: where what follows a match is certain it is near 1, where it is chance
/// it is what chance gives.
#[test]
fn how_sure_a_proposal_is_was_counted_on_the_text() {
    let mut words = Words::new(5);
    let bigram = table(&mut words, 8);
    let passage: Vec<TokenId> = (0..40).map(|_| words.below(8)).collect();
    let mut repeated = MaxGram::new(&[]);
    repeated.reconcile(&passage.repeat(4));
    let sure = repeated.propose_sure(8, &bigram);
    assert!(sure.iter().all(|sure| sure.chance > 0.9), "{sure:?}");
    assert!(
        sure.windows(2)
            .all(|pair| pair[0].match_len + 1 == pair[1].match_len)
    );
    let mut random = MaxGram::new(&[]);
    let text: Vec<TokenId> = (0..3_000).map(|_| words.below(8)).collect();
    random.reconcile(&text);
    let first = random.propose_sure(1, &bigram)[0];
    assert!((0.03..0.3).contains(&first.chance), "{first:?}");
    // What was only tried is not counted.
    let before = random.propose_sure(1, &bigram);
    random.propose_sure(64, &bigram);
    assert_eq!(random.propose_sure(1, &bigram), before);
}

#[test]
fn without_a_table_only_what_can_be_copied_is_proposed() {
    let bigram = Bigram::default();
    let mut index = MaxGram::new(&[]);
    assert_eq!(index.propose(4, &bigram), [0; 0]);
    index.reconcile(&[5, 6, 7]);
    assert_eq!(index.propose(4, &bigram), [0; 0]);
    // The match is followed by two tokens, and what is then the end by the same two once more.
    index.push(6);
    assert_eq!(index.propose(9, &bigram), [7, 6, 7, 6]);
    assert_eq!(index.propose(1, &bigram), [7]);
}

#[test]
fn with_a_table_always_as_many_tokens_as_asked_for() {
    let bigram = Bigram::new(vec![1, 2, 0]).expect("a table");
    let mut index = MaxGram::new(&[]);
    assert_eq!(index.propose(4, &bigram), [1, 2, 0, 1]);
    assert_eq!(index.propose(0, &bigram), [0; 0]);
    index.push(2);
    assert_eq!(index.propose(3, &bigram), [0, 1, 2]);
    // A corpus that ends in the match has nothing to say; the context has.
    let mut index = MaxGram::new(&[0, 2]);
    index.reconcile(&[2, 1, 1, 2]);
    assert_eq!(index.propose(3, &bigram), [1, 1, 2]);
    // A shorter match of the corpus comes before a longer one of the context.
    let mut index = MaxGram::new(&[2, 0, 0, 0]);
    index.reconcile(&[1, 2, 1, 1, 2]);
    assert_eq!(index.propose(3, &bigram), [0, 0, 0]);
}
