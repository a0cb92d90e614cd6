//! Max-Gram by trying every suffix at every place.

use speculation::TokenId;
use speculation::noise::{InnerCall, Noise, Purpose};

pub(crate) struct Reference<'a> {
    pub(crate) corpus: &'a [TokenId],
    pub(crate) bigram: &'a [TokenId],
}

impl Reference<'_> {
    pub(crate) fn propose(&self, context: &[TokenId], count: usize) -> Vec<TokenId> {
        let mut text = context.to_vec();
        let wanted = context.len() + count;
        for _ in 0..2 {
            let Some(chunk) = self.continuation(&text) else {
                break;
            };
            text.extend(chunk);
            text.truncate(wanted);
        }
        while text.len() < wanted {
            let last = text.last().map_or(0, |&last| last as usize);
            text.push(self.bigram[last]);
        }
        text.split_off(context.len())
    }

    /// Length of the longest match, and how often it came; (0, 0) without a match.
    pub(crate) fn evidence(&self, context: &[TokenId]) -> (u32, u32) {
        let times = |text: &[TokenId], len: usize| {
            let suffix = &context[context.len() - len..];
            text.windows(len).filter(|window| *window == suffix).count() as u32
        };
        if let Some((len, end)) = longest_suffix(context, self.corpus)
            && end + 1 < self.corpus.len()
        {
            return (len as u32, times(self.corpus, len));
        }
        let before = &context[..context.len().saturating_sub(1)];
        let found = longest_suffix(context, before);
        found.map_or((0, 0), |(len, _)| (len as u32, times(before, len)))
    }

    /// Beside each of `proposal` what else followed its longest match, by how often, then by how lately first.
    pub(crate) fn alternatives(
        &self,
        context: &[TokenId],
        proposal: &[TokenId],
        most: usize,
    ) -> Vec<Vec<TokenId>> {
        let beside = |at: usize| {
            let context = [context, &proposal[..at]].concat();
            let mut counted: Vec<(usize, usize, TokenId)> = Vec::new();
            for (place, token) in self.followers(&context) {
                match counted.iter_mut().find(|entry| entry.2 == token) {
                    Some(entry) => entry.0 += 1,
                    None => counted.push((1, place, token)),
                }
            }
            counted.sort_unstable_by(|one, other| other.cmp(one));
            let tokens = counted.into_iter().map(|(_, _, token)| token);
            tokens
                .filter(|&token| token != proposal[at])
                .take(most)
                .collect()
        };
        (0..proposal.len()).map(beside).collect()
    }

    /// Every token behind the longest match, with its place.
    fn followers(&self, context: &[TokenId]) -> Vec<(usize, TokenId)> {
        let behind = |text: &[TokenId], len: usize| {
            let suffix = &context[context.len() - len..];
            let windows = text.windows(len + 1).enumerate();
            windows
                .filter(|(_, window)| window[..len] == *suffix)
                .map(|(at, window)| (at + len, window[len]))
                .collect()
        };
        if let Some((len, end)) = longest_suffix(context, self.corpus)
            && end + 1 < self.corpus.len()
        {
            return behind(self.corpus, len);
        }
        let before = &context[..context.len().saturating_sub(1)];
        longest_suffix(context, before).map_or_else(Vec::new, |(len, _)| behind(context, len))
    }

    /// Returns what follows the longest match, up to the end of the text it is in.
    fn continuation(&self, context: &[TokenId]) -> Option<Vec<TokenId>> {
        if let Some((_, end)) = longest_suffix(context, self.corpus)
            && end + 1 < self.corpus.len()
        {
            return Some(self.corpus[end + 1..].to_vec());
        }
        let before = &context[..context.len().checked_sub(1)?];
        let (_, end) = longest_suffix(context, before)?;
        Some(context[end + 1..].to_vec())
    }
}

/// Length of the longest suffix of `context` that `text` holds, and where it ends first.
pub(crate) fn longest_suffix(context: &[TokenId], text: &[TokenId]) -> Option<(usize, usize)> {
    (1..=context.len().min(text.len())).rev().find_map(|len| {
        let suffix = &context[context.len() - len..];
        let start = text.windows(len).position(|window| window == suffix)?;
        Some((len, start + len - 1))
    })
}

/// Seeded random texts.
pub(crate) struct Words {
    noise: Noise,
    drawn: u32,
}

impl Words {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            noise: Noise::new(seed, 0),
            drawn: 0,
        }
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        self.drawn += 1;
        let call = InnerCall::default();
        let u = self.noise.draw(Purpose::Draft, self.drawn, 0, call);
        (u * f64::from(bound)) as u32
    }

    /// A text shorter than `most` over `vocab` tokens.
    pub(crate) fn text(&mut self, most: u32, vocab: u32) -> Vec<TokenId> {
        (0..self.below(most)).map(|_| self.below(vocab)).collect()
    }
}
