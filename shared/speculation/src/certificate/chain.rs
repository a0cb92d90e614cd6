//! A chain of draft tokens, decided position by position from parts of rows.

use std::sync::Arc;

use super::distribution::PartialDistribution;
use super::noise_ranking::{KeyedUniforms, NoiseRanking};
use super::partial_row::PartialRow;
use super::refusal::{RowRefusal, must_ask};
use super::row_query::RowQuery;
use crate::TokenId;
use crate::history::History;
use crate::logprobs::TokenLogprobs;
use crate::noise::{InnerCall, Noise, Purpose};
use crate::sampling::SamplingParams;
use crate::verification::{LastToken, Verdict};

/// More allowed tokens are not asked for one by one.
const MOST_ALLOWED: usize = 1024;

/// A chain of draft tokens of which the first are decided.
///
/// Rows are asked for from [`Self::decided`] on, [`Self::asked`] says of which tokens; [`Self::decide`] goes as far as
/// they prove. While it is open, more of the rows that are left is asked for.
#[derive(Clone, Debug)]
pub struct OpenChain {
    rules: Rules,
    drafts: Vec<TokenId>,
    base_len: u32,
    /// Whether the last draft token ends the output, so that nothing comes after it.
    ends: bool,
    /// Draft tokens that stand for sure.
    decided: usize,
    logprobs: Vec<TokenLogprobs>,
    /// The noise of each position that was asked for, first the one after the output.
    rankings: Vec<NoiseRanking<KeyedUniforms>>,
}

/// A chain that is decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Decided {
    /// What of it stands, and what comes after it.
    pub verdict: Verdict,
    /// Log probabilities of the emitted tokens, if they are wanted.
    pub logprobs: Vec<TokenLogprobs>,
}

impl OpenChain {
    /// The chain `drafts` after `base_len` output tokens. Draft tokens behind the first that ends the output are left
    /// out.
    pub fn new(rules: Rules, drafts: &[TokenId], base_len: u32) -> Self {
        let ends = |draft: &TokenId| rules.params.end_tokens.contains(draft);
        let end = drafts.iter().position(ends);
        let drafts = end.map_or(drafts, |end| &drafts[..=end]);
        Self {
            drafts: drafts.to_vec(),
            base_len,
            ends: end.is_some(),
            decided: 0,
            logprobs: Vec::new(),
            rankings: Vec::new(),
            rules,
        }
    }

    /// How many draft tokens stand for sure: rows are wanted after these and more.
    pub fn decided(&self) -> usize {
        self.decided
    }

    /// The draft tokens after which a row is wanted or which stand before such: behind the last that ends the output
    /// nothing is.
    pub fn scored(&self) -> &[TokenId] {
        let last = self.drafts.len() - usize::from(self.ends);
        &self.drafts[..last]
    }

    /// Returns what to ask for first. `draft_probs` are a draft model's sampling distributions at the chain's
    /// positions, the largest probabilities first, as far as they are known.
    pub fn start(&self, draft_probs: &[Vec<f64>], lists_are_shared: bool) -> RowQuery {
        let params = &self.rules.params;
        let allowed = params.allowed_tokens.len();
        let query = if params.temperature == 0.0 || (1..=MOST_ALLOWED).contains(&allowed) {
            RowQuery::GREEDY
        } else {
            let rows = if lists_are_shared {
                self.scored().len() + 1
            } else {
                1
            };
            let starts = draft_probs.iter();
            let starts =
                starts.map(|probs| RowQuery::for_draft(probs, self.rules.vocab_size, rows));
            let larger = |a: RowQuery, b: RowQuery| RowQuery {
                top: a.top.max(b.top),
                noise: a.noise.max(b.noise),
            };
            starts.reduce(larger).unwrap_or(RowQuery::START)
        };
        let told = self.rules.logprobs.unwrap_or(0);
        RowQuery {
            top: query.top.max(told),
            ..query
        }
    }

    /// The tokens whose log probabilities are wanted of each row from [`Self::decided`] on, ascending. `history` is
    /// that after the draft tokens that stand.
    pub fn asked(&mut self, query: RowQuery, history: &History) -> Vec<Vec<TokenId>> {
        let rows = self.scored().len() + 1;
        if query.is_whole(self.rules.vocab_size) {
            return vec![Vec::new(); rows - self.decided];
        }
        self.rank(query.noise, rows);
        let params = &self.rules.params;
        let mut must = must_ask(params, history, MOST_ALLOWED);
        if params.presence_penalty < 0.0 || params.frequency_penalty < 0.0 {
            must.extend(&self.drafts[self.decided..]);
        }
        let of_row = |offset: usize| {
            let mut tokens = must.clone();
            if query.noise > 0 {
                tokens.extend(self.rankings[offset].tokens().take(query.noise));
            }
            if let Test::Token(drafted) = &self.rules.test
                && let Some(drafted) = drafted.get(offset)
            {
                tokens.extend(drafted.iter().map(|&(token, _)| token));
            }
            tokens.sort_unstable();
            tokens.dedup();
            tokens
        };
        (self.decided..rows).map(of_row).collect()
    }

    /// Decides as far as `rows` prove, the first of which is that after the draft tokens that stand already; none if
    /// more must be known of what is left. Draft tokens that stand are added to `history`.
    ///
    /// # Errors
    /// If parts of rows can never tell, or what must be known was not asked for.
    pub fn decide(
        &mut self,
        rows: &[PartialRow],
        history: &mut History,
    ) -> Result<Option<Decided>, RowRefusal> {
        self.rank(0, self.scored().len() + 1);
        for row in rows {
            let offset = self.decided;
            let position = self.base_len + offset as u32;
            let law = PartialDistribution::of(row, &self.rules.params, history, position)?;
            let Some(&draft) = self.drafts.get(offset) else {
                let bonus = law.choice(&self.rankings[offset]);
                return Ok(bonus.map(|token| self.end(row, Some((token, LastToken::Bonus)))));
            };
            let replaced = match &self.rules.test {
                Test::Coupled => {
                    let Some(choice) = law.choice(&self.rankings[offset]) else {
                        return Ok(None);
                    };
                    (choice != draft).then_some(choice)
                }
                Test::Token(drafted) => {
                    let drafted = drafted.get(offset).map_or(&[][..], Vec::as_slice);
                    let found = drafted.binary_search_by_key(&draft, |&(token, _)| token);
                    let draft_prob = found.map_or(0.0, |found| drafted[found].1);
                    let eta = self.rules.noise.draw(
                        Purpose::Accept,
                        offset as u32,
                        self.base_len,
                        InnerCall::default(),
                    );
                    match law.accepts(draft, draft_prob, eta)? {
                        None => return Ok(None),
                        Some(true) => None,
                        Some(false) => {
                            let residual = law.residual(drafted, &self.rankings[offset])?;
                            let Some(recovered) = residual else {
                                return Ok(None);
                            };
                            Some(recovered)
                        }
                    }
                }
            };
            if let Some(token) = replaced {
                return Ok(Some(self.end(row, Some((token, LastToken::Recovered)))));
            }
            if self.ends && offset + 1 == self.drafts.len() {
                return Ok(Some(self.end(row, None)));
            }
            self.tell(row, draft);
            history.push(draft);
            self.decided += 1;
        }
        Ok(None)
    }

    /// The verdict where `row`, the one after the draft tokens that stand, decides the end: by a token of the target's,
    /// or by the last draft token, which ends the output.
    fn end(&mut self, row: &PartialRow, last: Option<(TokenId, LastToken)>) -> Decided {
        let standing = self.decided + usize::from(last.is_none());
        let mut emitted = self.drafts[..standing].to_vec();
        emitted.extend(last.map(|(token, _)| token));
        if let Some(&token) = emitted.last() {
            self.tell(row, token);
        }
        let last = last.map_or(LastToken::AcceptedEnd, |(_, last)| last);
        Decided {
            verdict: Verdict::new(emitted, (0..standing as u32).collect(), last),
            logprobs: std::mem::take(&mut self.logprobs),
        }
    }

    /// Notes the log probabilities of `token`, which `row` knows, if they are wanted.
    fn tell(&mut self, row: &PartialRow, token: TokenId) {
        if let Some(top) = self.rules.logprobs {
            self.logprobs.push(row.logprobs(token, top));
        }
    }

    /// Ranks the noise of the first `rows` positions, with at least `count` tokens known to have the most of it.
    fn rank(&mut self, count: usize, rows: usize) {
        let noise = match self.rules.test {
            Test::Coupled => self.rules.noise,
            Test::Token(_) => self.rules.noise.unshared(),
        };
        // Without a temperature no noise decides.
        let is_greedy = self.rules.params.temperature == 0.0;
        let vocab_size = if is_greedy { 0 } else { self.rules.vocab_size };
        let ranking = |offset: usize| {
            let position = self.base_len + offset as u32;
            let uniforms = KeyedUniforms { noise, position };
            // One more tells the most noise of those that are not asked for.
            NoiseRanking::new(uniforms, vocab_size, count + 1)
        };
        for offset in self.decided..rows {
            if offset >= self.rankings.len() {
                self.rankings.push(ranking(offset));
            } else if self.rankings[offset].tokens().len() <= count {
                self.rankings[offset] = ranking(offset);
            }
        }
    }
}

/// How a draft token is tested.
#[derive(Clone, Debug)]
pub enum Test {
    /// Coupled verification: it stands if the target chooses it under the noise that both share.
    Coupled,
    /// Token verification: it stands with probability min(1, π/q). For each draft token, the support of the draft
    /// distribution q and its probabilities, ascending by token.
    Token(Vec<Vec<(TokenId, f64)>>),
}

/// What a chain is decided by.
#[derive(Clone, Debug)]
pub struct Rules {
    /// How tokens are drawn.
    pub params: Arc<SamplingParams>,
    /// The noise of the request.
    pub noise: Noise,
    /// Length of the whole rows.
    pub vocab_size: usize,
    /// How draft tokens are tested.
    pub test: Test,
    /// How many alternatives are told with the log probability of each emitted token; none if none are wanted.
    pub logprobs: Option<usize>,
}
