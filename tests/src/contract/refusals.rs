//! What is refused, and what is left of it: nothing.

use speculation::TokenId;
use speculation::ports::{KvCache, LanguageModel, Rows, Segment};

use super::{Agree, agrees_from, extend, holding, is_refused, text};

/// A batch with one segment in order and one that is not: neither cache changes.
pub fn refused_forwards_leave_every_cache_alone<M: LanguageModel>(model: &mut M, agree: Agree) {
    let shape = model.shape();
    let mut good = model.new_cache();
    let expected = extend(model, &mut good, &text(8, 1));
    let mut held = holding(model, &text(3, 2));
    let (vocab_size, context_len) = (shape.vocab_size, shape.context_len);
    let (unknown, long) = ([3, vocab_size as TokenId], text(context_len - 2, 1));
    let (tokens, figures) = ([&unknown[..], &long], [vocab_size, context_len]);
    for (tokens, figure) in tokens.into_iter().zip(figures) {
        let parts = [(&mut good, &[1, 2][..]), (&mut held, tokens)];
        let mut batch = parts.map(|(cache, tokens)| Segment {
            cache,
            tokens,
            parents: &[],
            scored_from: 0,
        });
        is_refused(model.forward(&mut batch, &mut Rows::default()), &[figure]);
        assert_eq!((good.len(), held.len()), (8, 3));
    }
    good.truncate(7);
    let last = extend(model, &mut good, &text(8, 1)[7..]);
    agrees_from(model, (&last, &expected), 7, agree, "the last row");
    extend(model, &mut held, &text(context_len - 3, 1));
    assert_eq!(held.len(), context_len);
}
