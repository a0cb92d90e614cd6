//! The recorded vectors of Max-Gram.

use super::reference::longest_suffix;
use crate::read::{cases_of, ids};
use speculation::max_gram::{Bigram, MaxGram};

/// What a search finds, without the second search and the bigrams: asked for no more than that.
#[test]
fn searches_find_what_was_recorded() {
    let mut found = 0;
    for case in cases_of("csdraft", "max_gram") {
        let (context, chunk) = (ids(&case["context"]), ids(&case["chunk"]));
        let corpus = &case["corpus"];
        let corpus = if corpus.is_null() {
            Vec::new()
        } else {
            ids(corpus)
        };
        let mut index = MaxGram::new(&corpus);
        index.reconcile(&context);
        let bigram = Bigram::new(vec![0; 4]).expect("a table");
        assert_eq!(index.propose(chunk.len(), &bigram), chunk, "{}", case["id"]);
        // And the reference of the other tests agrees on the match itself.
        let text = if corpus.is_empty() {
            &context[..context.len() - 1]
        } else {
            &corpus
        };
        let (len, end) = longest_suffix(&context, text).expect("a match");
        assert_eq!(case["match_len"], len);
        assert_eq!(case["match_end"], end);
        found += 1;
    }
    assert_eq!(found, 3);
}

#[test]
fn proposals_are_those_recorded() {
    let mut found = 0;
    for case in cases_of("csdraft", "mag_propose") {
        let mut index = MaxGram::new(&[]);
        index.reconcile(&[ids(&case["prompt"]), ids(&case["generated"])].concat());
        let bigram = Bigram::new(ids(&case["bigram"])).expect("a table");
        let proposal = ids(&case["proposal"]);
        let proposed = index.propose(proposal.len(), &bigram);
        assert_eq!(proposed, proposal, "{}", case["id"]);
        assert_eq!(case["k"], proposal.len());
        found += 1;
    }
    assert_eq!(found, 1);
}
