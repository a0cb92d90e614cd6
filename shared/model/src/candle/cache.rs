//! One sequence, and the way back to what it was.
//!
//! candle's models keep keys and values to themselves and cannot forget the last of them. So a copy of the sequence is
//! kept from before each forward; to forget is to go back to a copy, and the next forward reads the tokens again that
//! stood between it and what was to stay.
//!
//! Where a model computes several tokens at once only at the beginning of a sequence, a prompt that comes in parts is read
//! in one go when the first row is wanted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use candle_core::{Device, Result, Tensor};
use speculation::{TokenId, ports::KvCache};

use super::body::{Body, Returns};

/// Tokens that the copies of a sequence cover at least, so that a draft block can be forgotten which was drafted token by
/// token.
const REACH: usize = 16;

/// How the sequences of a family hold their memory, and how many copies of one are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keeping {
    /// Most copies that are kept of a sequence.
    copies: usize,
    /// How many of them, the newest, are kept however close to each other they stand.
    newest: usize,
    /// Tokens that memory is taken for at once.
    pub(crate) page_tokens: usize,
    /// Most pages that a page of tokens takes, those of the copies included.
    pub(crate) pages_a_run: usize,
}

impl Keeping {
    /// A forward writes the keys and values of all tokens anew, so every copy has memory of its own.
    pub(crate) const ANEW: Self = Self {
        copies: 3,
        newest: 1,
        page_tokens: 1,
        pages_a_run: 4,
    };

    /// As [`Keeping::ANEW`], for models that compute tokens one by one: every token that is read again costs a forward, so a
    /// draft block of up to 5 tokens has a copy to go back to wherever it ends.
    pub(crate) const ANEW_ONE_BY_ONE: Self = Self {
        copies: 7,
        newest: 5,
        page_tokens: 1,
        pages_a_run: 8,
    };

    /// A forward writes behind those that are there: copies share their memory with the sequence, until that has grown by
    /// a page, and what one wrote another must never read. To go back to one is to drop all that are longer.
    pub(crate) const IN_PLACE: Self = Self {
        copies: 24,
        newest: 1,
        page_tokens: 512,
        pages_a_run: 3,
    };

    /// Pages that a sequence of `len` tokens may take.
    fn pages(self, len: usize) -> usize {
        len.div_ceil(self.page_tokens) * self.pages_a_run
    }
}

/// State of one sequence of a [`CandleModel`](super::CandleModel).
#[derive(Debug)]
pub struct CandleCache {
    /// The model with a sequence of no token.
    empty: Arc<dyn Body>,
    returns: Returns,
    keeping: Keeping,
    /// All tokens held.
    tokens: Vec<TokenId>,
    /// The model with keys and values of the first `computed` tokens. The next forward computes the others.
    body: Box<dyn Body>,
    computed: usize,
    /// Copies from before the last forwards, each with the number of tokens that it holds, the shortest first.
    copies: Vec<(usize, Box<dyn Body>)>,
    /// Pages that this sequence takes, and that all sequences of the model take together.
    pages: usize,
    all_pages: Arc<AtomicUsize>,
}

impl CandleCache {
    pub(super) fn new(
        empty: Arc<dyn Body>,
        (returns, keeping): (Returns, Keeping),
        all_pages: Arc<AtomicUsize>,
    ) -> Self {
        Self {
            body: empty.copy(),
            empty,
            returns,
            keeping,
            tokens: Vec::new(),
            computed: 0,
            copies: Vec::new(),
            pages: 0,
            all_pages,
        }
    }

    /// Appends `tokens`. Returns what the body returns of the last `scored` of them, `(scored, width)`; none if that is 0.
    ///
    /// # Errors
    /// What candle refuses; the sequence is then what it was before.
    pub(super) fn append(
        &mut self,
        tokens: &[TokenId],
        scored: usize,
        device: &Device,
    ) -> Result<Option<Tensor>> {
        let held = self.tokens.len();
        let is_prompt = self.computed == 0 && scored == 0;
        if is_prompt && self.returns == Returns::LastRow {
            self.tokens.extend_from_slice(tokens);
            self.count();
            return Ok(None);
        }
        self.keep_copy();
        self.tokens.extend_from_slice(tokens);
        let appended = self.compute(scored, device);
        if appended.is_err() {
            // Some layers may hold a part of the tokens: all of them are forgotten.
            self.computed = self.tokens.len();
            self.truncate(held);
        }
        self.count();
        appended
    }

    /// Computes the tokens that are not computed yet. Returns the last `scored` rows, `(scored, width)`.
    fn compute(&mut self, scored: usize, device: &Device) -> Result<Option<Tensor>> {
        let new = &self.tokens[self.computed..];
        let rows = self.body.append(new, self.computed, scored, device)?;
        let page = |tokens: usize| tokens.div_ceil(self.keeping.page_tokens);
        self.computed = self.tokens.len();
        if self.keeping.page_tokens > 1 {
            // Copies from before the memory grew hold memory of their own.
            let pages = page(self.computed);
            let last = self.copies.len().saturating_sub(1);
            let mut index = 0..;
            self.copies
                .retain(|(len, _)| index.next() == Some(last) || page(*len) + 1 >= pages);
        }
        if scored == 0 {
            return Ok(None);
        }
        rows.narrow(0, rows.dim(0)? - scored, scored).map(Some)
    }

    /// Keeps a copy of what the sequence is, and not more than there may be: of the older ones that stand close to each other
    /// some go first, then the shortest.
    fn keep_copy(&mut self) {
        self.copies.push((self.computed, self.body.copy()));
        if self.copies.len() <= self.keeping.copies {
            return;
        }
        let is_close = |three: &[(usize, Box<dyn Body>)]| three[2].0 - three[0].0 < REACH;
        let older = &self.copies[..=self.copies.len() - self.keeping.newest];
        let close = older.windows(3).position(is_close);
        self.copies.remove(close.map_or(0, |at| at + 1));
    }

    /// Goes back to the longest copy of no more than `len` tokens. Returns whether there is one.
    fn go_back(&mut self, len: usize) -> bool {
        while let Some((computed, body)) = self.copies.pop() {
            if computed <= len {
                (self.body, self.computed) = (body, computed);
                return true;
            }
        }
        (self.body, self.computed) = (self.empty.copy(), 0);
        false
    }

    /// Counts the pages taken.
    fn count(&mut self) {
        let pages = self.keeping.pages(self.tokens.len());
        self.all_pages.fetch_add(pages, Ordering::Relaxed);
        self.all_pages.fetch_sub(self.pages, Ordering::Relaxed);
        self.pages = pages;
    }
}

impl KvCache for CandleCache {
    fn len(&self) -> usize {
        self.tokens.len()
    }

    fn truncate(&mut self, len: usize) {
        if len >= self.tokens.len() {
            return;
        }
        self.tokens.truncate(len);
        if len < self.computed && !self.go_back(len) {
            self.tokens.clear();
        }
        if self.tokens.is_empty() {
            self.copies.clear();
            self.go_back(0);
        }
        self.count();
    }

    /// A chain is the only tree there is: what is kept of it is its beginning.
    fn keep(&mut self, from: usize, path: &[u32], _rest: &[u32]) {
        let straight = (0..).zip(path).take_while(|(index, node)| index == *node);
        self.truncate(from + straight.count());
    }

    fn pages(&self) -> usize {
        self.pages
    }

    fn pages_for(&self, more: usize, _at_once: usize) -> usize {
        self.keeping.pages(self.tokens.len() + more) - self.pages
    }
}

impl Drop for CandleCache {
    fn drop(&mut self) {
        self.all_pages.fetch_sub(self.pages, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
