//! One sequence, and the way back to what it was.
//!
//! candle's models keep keys and values to themselves and cannot forget the last of them. So a copy of the sequence is
//! kept from before each forward; to forget is to go back to a copy, and the next forward reads the tokens again that
//! stood between it and what was to stay.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use candle_core::{Device, Result, Tensor};
use speculation::{TokenId, ports::KvCache};

use super::body::Body;

/// Tokens that the copies of a sequence cover at least, so that a draft block can be forgotten which was drafted token by
/// token.
const REACH: usize = 16;

/// How the sequences of a family hold their memory, and how many copies of one are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keeping {
    /// Most copies.
    copies: usize,
    /// Tokens that memory is taken for at once.
    pub(crate) page_tokens: usize,
    /// Most pages that a page of tokens takes, those of the copies included.
    pub(crate) pages_a_run: usize,
}

impl Keeping {
    /// A forward writes keys and values anew, so every copy has memory of its own.
    pub(crate) const ANEW: Self = Self {
        copies: 3,
        page_tokens: 1,
        pages_a_run: 4,
    };

    /// A forward writes behind those that are there: copies share their memory with the sequence, until that has grown by
    /// a page, and what one wrote another must never read. To go back to one is to drop all that are longer.
    pub(crate) const IN_PLACE: Self = Self {
        copies: 24,
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
    keeping: Keeping,
    /// All tokens held.
    tokens: Vec<TokenId>,
    /// The model with the first `computed` of them. The others are computed with the next forward.
    body: Box<dyn Body>,
    computed: usize,
    /// What the sequence was before the last forwards, with how many tokens, the shortest first.
    copies: Vec<(usize, Box<dyn Body>)>,
    /// Pages taken, and those of all sequences of the model.
    pages: usize,
    all_pages: Arc<AtomicUsize>,
}

impl CandleCache {
    pub(super) fn new(empty: Arc<dyn Body>, keeping: Keeping, all_pages: Arc<AtomicUsize>) -> Self {
        Self {
            body: empty.copy(),
            empty,
            keeping,
            tokens: Vec::new(),
            computed: 0,
            copies: Vec::new(),
            pages: 0,
            all_pages,
        }
    }

    /// Appends `tokens`. Returns what the final norm makes of each, `(tokens, hidden_size)`.
    ///
    /// # Errors
    /// What candle refuses; the sequence is then what it was before.
    pub(super) fn append(&mut self, tokens: &[TokenId], device: &Device) -> Result<Tensor> {
        let (held, at) = (self.tokens.len(), self.computed);
        self.keep_copy();
        self.tokens.extend_from_slice(tokens);
        let appended = self.compute(held - at, device);
        if appended.is_err() {
            // Not even a part of them stays.
            self.computed = self.tokens.len();
            self.truncate(held);
        }
        self.count();
        appended
    }

    /// Computes what is not computed yet. Returns the rows but for the first `again`.
    fn compute(&mut self, again: usize, device: &Device) -> Result<Tensor> {
        let new = &self.tokens[self.computed..];
        let input = Tensor::new(new, device)?.unsqueeze(0)?;
        let rows = self.body.append(&input, self.computed)?.squeeze(0)?;
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
        rows.narrow(0, again, rows.dim(0)? - again)
    }

    /// Keeps a copy of what the sequence is, and not more than there may be: of those that stand close to each other some
    /// go first, then the shortest.
    fn keep_copy(&mut self) {
        self.copies.push((self.computed, self.body.copy()));
        if self.copies.len() <= self.keeping.copies {
            return;
        }
        let is_close = |three: &[(usize, Box<dyn Body>)]| three[2].0 - three[0].0 < REACH;
        let close = self.copies.windows(3).position(is_close);
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
