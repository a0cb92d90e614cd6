//! What finished sequences began with, kept for later ones of the same tenant.

use std::sync::Arc;

use speculation::{TokenId, ports::KvCache};

use crate::sequence::{CachedSequence, in_common};

/// Prefixes in whole pages, the longest unused of which go first. Sequences that begin alike share the
/// pages of their beginning.
pub(super) struct Prefixes<C> {
    entries: Vec<KeptPrefix<C>>,
    /// Counts uses, so that their order is known without a clock.
    uses: u64,
}

struct KeptPrefix<C> {
    tenant: Arc<str>,
    tokens: Vec<TokenId>,
    cache: C,
    used: u64,
}

impl<C: KvCache> Prefixes<C> {
    pub(super) fn new() -> Self {
        Self {
            entries: Vec::new(),
            uses: 0,
        }
    }

    /// Keeps the whole pages of a finished sequence; the longest unused prefixes go where there would be
    /// more than `bound`.
    pub(super) fn keep(&mut self, tenant: Arc<str>, sequence: &CachedSequence<C>, bound: usize) {
        let Some(cache) = sequence.cache().share(sequence.tokens().len()) else {
            return;
        };
        let tokens = &sequence.tokens()[..cache.len()];
        self.uses += 1;
        let used = self.uses;
        let of_tenant = self.entries.iter_mut().filter(|own| own.tenant == tenant);
        if let Some(longer) = of_tenant
            .into_iter()
            .find(|own| own.tokens.starts_with(tokens))
        {
            longer.used = used;
            return;
        }
        // What is part of it serves nothing any more.
        self.entries
            .retain(|own| own.tenant != tenant || !tokens.starts_with(&own.tokens));
        self.entries.push(KeptPrefix {
            tokens: tokens.to_vec(),
            tenant,
            cache,
            used,
        });
        self.evict_beyond(bound);
    }

    /// Drops prefixes, the longest unused first, until no more than `bound` are left.
    pub(super) fn evict_beyond(&mut self, bound: usize) {
        while self.entries.len() > bound && self.evict_oldest() {}
    }

    /// Returns the most of `tokens` that one of `tenant` begins with.
    pub(super) fn longest(&self, tenant: &str, tokens: &[TokenId]) -> usize {
        let of_tenant = self.entries.iter().filter(|own| *own.tenant == *tenant);
        let alike = of_tenant.map(|own| in_common(&own.tokens, tokens));
        alike.max().unwrap_or(0)
    }

    /// A cache that holds as many of `tokens` as one of `tenant` shares.
    pub(super) fn begin(&mut self, tenant: &str, tokens: &[TokenId]) -> Option<C> {
        let of_tenant = self.entries.iter_mut().filter(|own| *own.tenant == *tenant);
        let (len, longest) = of_tenant
            .map(|own| (in_common(&own.tokens, tokens), own))
            .max_by_key(|(len, _)| *len)?;
        let cache = longest.cache.share(len)?;
        self.uses += 1;
        longest.used = self.uses;
        Some(cache)
    }

    /// Drops the prefix that was unused the longest, if there is one. Returns whether.
    pub(super) fn evict_oldest(&mut self) -> bool {
        let used = |(_, own): &(usize, &KeptPrefix<C>)| own.used;
        let Some((oldest, _)) = self.entries.iter().enumerate().min_by_key(used) else {
            return false;
        };
        self.entries.swap_remove(oldest);
        true
    }
}
