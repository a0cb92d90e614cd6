//! The client's prediction of the output, as drafts: what comes next where the output follows it.

use std::sync::Arc;

use speculation::TokenId;

use super::Proposer;

/// Tokens followed before other work on this thread has its turn.
const PIECE: usize = 4_096;

/// How far around the last token that was right the output's last two tokens are searched for, in how many places that they are
/// found in what stands before is compared, and how much of it.
const AROUND: usize = 8_192;
const PLACES: usize = 64;
const COMPARED: usize = 16;

/// How often the next token is assumed to be right before any was observed, by the tokens in a row that were: none, one, two
/// or three, four to seven, and so on. Where it was wrong, it may have stood for another one.
const ASSUMED: [f32; 6] = [0.4, 0.6, 0.75, 0.85, 0.92, 0.96];

/// Observations that the assumption is worth.
const PRIOR: f32 = 4.0;

/// Proposes what follows in a text that the client expects the output to be like. After a difference it goes on where the output's
/// last tokens stand in the text: where most of them do, and of several such places at the nearest one ahead.
pub(super) struct PredictedDrafts {
    tokens: Arc<[TokenId]>,
    /// The place of the token that is expected next; past the end if none is.
    next: usize,
    /// The place after the last token that was right.
    anchor: usize,
    /// Tokens in a row that were right.
    run: u32,
    /// For each length of a row, how often the next was expected, and how often it was right.
    observed: [(f32, f32); ASSUMED.len()],
    /// Output tokens that were followed, the last of them.
    len: usize,
    recent: Vec<TokenId>,
}

impl PredictedDrafts {
    pub(super) fn new(tokens: Arc<[TokenId]>) -> Self {
        Self {
            tokens,
            next: 0,
            anchor: 0,
            run: 0,
            observed: ASSUMED.map(|chance| (PRIOR, PRIOR * chance)),
            len: 0,
            recent: Vec::new(),
        }
    }

    fn push(&mut self, token: TokenId) {
        self.len += 1;
        if self.recent.len() == 2 * COMPARED {
            self.recent.drain(..COMPARED);
        }
        self.recent.push(token);
        let expected = self.tokens.get(self.next).copied();
        if let Some(expected) = expected {
            let (rows, right) = &mut self.observed[class(self.run)];
            *rows += 1.0;
            *right += f32::from(u8::from(expected == token));
        }
        if expected == Some(token) {
            self.next += 1;
            self.run += 1;
            self.anchor = self.next;
        } else {
            self.run = 0;
            // Else it is another one in its place.
            self.next = self.place().unwrap_or(self.next + 1);
        }
    }

    /// Returns the place that follows the output's last tokens: that before which most of them stand, and of several such the
    /// nearest after the last that was right. None if the last two stand nowhere.
    fn place(&self) -> Option<usize> {
        let last = self.recent.last_chunk::<2>()?;
        let from = self.anchor.saturating_sub(AROUND);
        let to = self.tokens.len().min(self.anchor + AROUND);
        let ahead = self.anchor + 1..to + 1;
        let behind = from + 2..self.anchor.min(to) + 1;
        let near = ahead.chain(behind);
        let near = near.filter(|&end| end >= 2 && self.tokens[end - 2..end] == *last);
        let recent = || self.recent.iter().rev().take(COMPARED);
        let alike = |end: usize| {
            let before = self.tokens[..end].iter().rev().zip(recent());
            before.take_while(|(one, other)| one == other).count()
        };
        let places = near.take(PLACES).map(|end| (alike(end), end));
        let best = places.reduce(|best, it| if it.0 > best.0 { it } else { best });
        best.map(|(_, end)| end)
    }
}

fn class(run: u32) -> usize {
    (run.checked_ilog2().map_or(0, |log| log as usize + 1)).min(ASSUMED.len() - 1)
}

impl Proposer for PredictedDrafts {
    fn name(&self) -> &'static str {
        super::PREDICTION
    }

    fn follow(&mut self, _lead: &[TokenId], output: &[TokenId]) -> bool {
        let new = output.get(self.len..).unwrap_or_default();
        new.iter().take(PIECE).for_each(|&token| self.push(token));
        self.len < output.len()
    }

    fn propose(&mut self, most: usize) -> Vec<(TokenId, f32)> {
        let mut survival = 1.0;
        let expected = self.tokens.get(self.next..).unwrap_or_default();
        let proposed = expected.iter().take(most).zip(self.run..);
        let proposed = proposed.map(|(&token, run)| {
            let (rows, right) = self.observed[class(run)];
            survival *= right / rows;
            (token, survival)
        });
        proposed.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is expected after `output` of what was predicted.
    fn expected(predicted: &[TokenId], output: &[TokenId]) -> Vec<TokenId> {
        let mut drafts = PredictedDrafts::new(predicted.into());
        while drafts.follow(&[], output) {}
        let proposed = drafts.propose(4);
        assert!(proposed.is_sorted_by(|one, next| one.1 >= next.1));
        assert!(proposed.iter().all(|(_, it)| *it > 0.0 && *it <= 1.0));
        proposed.into_iter().map(|(token, _)| token).collect()
    }

    #[test]
    fn what_follows_is_found_again_after_a_difference() {
        let text: Vec<TokenId> = (10..40).collect();
        for (what, output, next) in [
            ("nothing came", vec![], 10),
            ("it came as predicted", vec![10, 11, 12], 13),
            ("another token in the place of one", vec![10, 99], 12),
            ("two were put in", vec![10, 11, 98, 99, 12, 13], 14),
            ("five are left out", vec![10, 11, 17, 18], 19),
            ("it went back", vec![20, 21, 22, 12, 13], 14),
            ("something came before", vec![90, 91, 92, 10, 11], 12),
        ] {
            assert_eq!(expected(&text, &output)[0], next, "{what}");
        }
        assert!(expected(&text, &text).is_empty(), "it is over");
        assert!(expected(&[], &[1, 2]).is_empty());
    }

    /// The same line stands there twice: which one it is, what came before says, or where it was.
    #[test]
    fn of_places_alike_the_nearest_ahead_is_taken() {
        let text = [1, 2, 50, 3, 1, 2, 60, 4, 1, 2, 70];
        assert_eq!(expected(&text, &[1, 2, 50, 3, 9, 1, 2])[0], 60);
        assert_eq!(expected(&text, &[1, 2, 50, 3, 1, 2, 60, 9, 1, 2])[0], 70);
        assert_eq!(expected(&text, &[9, 9, 4, 1, 2])[0], 70);
    }

    #[test]
    fn a_long_text_is_searched_around_the_place_alone() {
        let text: Vec<TokenId> = (0..50_000).collect();
        let far = AROUND as u32;
        assert_eq!(expected(&text, &[0, 1, far, far + 1])[0], far + 2);
        let lost = expected(&text, &[0, 1, far + 10, far + 11]);
        assert_ne!(lost[0], far + 12);
    }

    #[test]
    fn how_sure_it_is_is_learnt() {
        let text: Vec<TokenId> = (0..2_000).collect();
        let mut drafts = PredictedDrafts::new(text[..].into());
        let sure = |drafts: &mut PredictedDrafts| drafts.propose(40).last().map(|last| last.1);
        let before = sure(&mut drafts).expect("drafts");
        while drafts.follow(&[], &text[..1_000]) {}
        assert!(sure(&mut drafts).expect("drafts") > before * 2.0);
        // None of it comes.
        let mut drafts = PredictedDrafts::new(text.into());
        while drafts.follow(&[], &[5_000; 1_000]) {}
        let first = drafts.propose(1)[0].1;
        assert!(first < 0.01, "{first}");
    }
}
