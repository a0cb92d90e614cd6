//! What is drafted past an output, as text: kept for as long as the output is that text, however it is cut into tokens.

use std::sync::Arc;

use speculation::TokenId;
use speculation::pending::{Claim, ProposedTree};
use text::{TranslatedText, Translator};

/// Share of drafts that is assumed to be right before any were, and the weight of the latest.
const ASSUMED: f32 = 0.7;
const LATEST: f32 = 0.05;

/// Most bytes drafted that are not yet tokens of the target.
const UNWRITTEN: usize = 32;

/// What is drafted past an output.
pub(crate) struct TranslatedDrafts {
    pub(crate) translator: Arc<Translator>,
    text: TranslatedText,
    output: usize,
    /// The draft model's tokens: of the text, then those drafted.
    sequence: Vec<TokenId>,
    /// The first so many of them are left out: the draft model's context is shorter.
    left_out: usize,
    /// What was drafted past the output, and that in the target's tokens.
    ahead: Vec<u8>,
    in_target: Vec<TokenId>,
    /// The token that ends the output there, if the draft model ended its text.
    end: Option<TokenId>,
    /// What was proposed to follow the output.
    told: Vec<TokenId>,
    /// Share of the target's tokens that were as proposed.
    right: f32,
}

impl TranslatedDrafts {
    /// Nothing past `lead`, the target's tokens before the output.
    pub(crate) fn after(translator: Arc<Translator>, lead: &[TokenId]) -> Self {
        let mut text = TranslatedText::new(Arc::clone(&translator));
        text.follow(lead);
        Self {
            translator,
            sequence: text.tokens().to_vec(),
            text,
            output: 0,
            left_out: 0,
            ahead: Vec::new(),
            in_target: Vec::new(),
            end: None,
            told: Vec::new(),
            right: ASSUMED,
        }
    }

    /// Length of the output that it follows.
    pub(crate) fn output_len(&self) -> usize {
        self.output
    }

    /// Follows the output by `tokens`.
    pub(crate) fn follow(&mut self, tokens: &[TokenId]) {
        let mut is_other = false;
        for &token in tokens {
            if !self.told.is_empty() {
                let is_right = self.told.remove(0) == token;
                self.right += LATEST * (f32::from(u8::from(is_right)) - self.right);
                if !is_right {
                    self.told.clear();
                }
            }
            let written = self.translator.written(token);
            if !is_other && !written.is_empty() && self.ahead.starts_with(&written) {
                self.ahead.drain(..written.len());
            } else {
                is_other = true;
            }
        }
        self.text.follow(tokens);
        self.output += tokens.len();
        if is_other {
            self.ahead.clear();
            self.end = None;
            self.told.clear();
            self.sequence.clear();
            self.sequence.extend_from_slice(self.text.tokens());
        }
        self.write();
    }

    /// Tokenises what was drafted for the target.
    fn write(&mut self) {
        self.in_target = self.translator.in_target(&self.ahead);
        self.in_target.extend(self.end);
    }

    /// Appends what the draft model chose.
    pub(crate) fn push(&mut self, token: TokenId) {
        self.sequence.push(token);
        self.ahead.extend(self.translator.drafted(token));
        self.write();
    }

    /// The draft model ended its text, and the output ends with `end`.
    pub(crate) fn ends_with(&mut self, end: TokenId) {
        self.end = Some(end);
        self.write();
    }

    /// Whether nothing follows what was drafted.
    pub(crate) fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Whether what was drafted has no tokens of the target: it is no text, or the target writes it otherwise.
    pub(crate) fn is_lost(&self) -> bool {
        let tokens = self.translator.in_target(&self.ahead).into_iter();
        let written: usize = tokens
            .map(|token| self.translator.written(token).len())
            .sum();
        self.ahead.len() > written + UNWRITTEN
    }

    /// Returns the draft model's tokens, as many of the last as leave room for one more in a context of `longest`.
    pub(crate) fn sequence(&mut self, longest: usize) -> &[TokenId] {
        self.left_out = self.left_out.min(self.sequence.len());
        if self.sequence.len() - self.left_out >= longest {
            // Half of them, so that what the cache holds is right for a while.
            self.left_out = self.sequence.len() - longest / 2;
        }
        &self.sequence[self.left_out..]
    }

    /// Returns the target's tokens of what was drafted.
    pub(crate) fn in_target(&self) -> &[TokenId] {
        &self.in_target
    }

    /// Returns how likely it is that as many drafts are right, one after the other.
    pub(crate) fn survival(&self, tokens: usize) -> f32 {
        self.right.powi(tokens as i32)
    }

    /// Returns a proposal of the target's tokens of what was drafted, at most `most`, as far as they were not proposed.
    pub(crate) fn propose(&mut self, most: usize) -> Option<ProposedTree> {
        let tokens = &self.in_target[..most.min(self.in_target.len())];
        let shared = tokens.iter().zip(&self.told);
        let shared = shared.take_while(|(one, other)| one == other).count();
        let (path, new) = tokens.split_at(shared);
        if new.is_empty() {
            return None;
        }
        let claimed = new.iter().enumerate().map(|(at, &token)| {
            let survival = self.survival(at + 1);
            (
                token,
                Claim {
                    source: 0,
                    survival,
                },
            )
        });
        let proposed = ProposedTree::chain(self.output as u32, path, claimed);
        self.told = tokens.to_vec();
        Some(proposed)
    }
}

#[cfg(test)]
mod tests {
    use model::embedded;
    use text::ServedText;
    use wire::v1::TokenizerPart;

    use super::*;

    /// Drafts past `lead`, by a draft model with the target's tokens.
    fn after(lead: &str) -> (Arc<ServedText>, TranslatedDrafts) {
        let draft = embedded::draft().expect("the built-in model");
        let json = draft.tokenizer_json().expect("a tokenizer");
        let text = ServedText::new(json, TokenizerPart::default()).expect("a tokenizer");
        let (text, size) = (Arc::new(text), 4_096);
        let pair = Translator::new((Arc::clone(&text), size), (Arc::clone(&text), size));
        let drafts = TranslatedDrafts::after(Arc::new(pair), &tokens(&text, lead));
        (text, drafts)
    }

    fn tokens(text: &ServedText, of: &str) -> Vec<TokenId> {
        text.tokens(of, false, usize::MAX).expect("tokens")
    }

    fn drafted(text: &ServedText, drafts: &mut TranslatedDrafts, more: &str) {
        for token in tokens(text, more) {
            drafts.push(token);
        }
    }

    #[test]
    fn what_is_drafted_stands_while_the_output_is_its_text() {
        let (text, mut drafts) = after("Once upon a time");
        drafted(&text, &mut drafts, " there was a little girl");
        let whole = drafts.sequence.clone();
        // The same text in other tokens: byte by byte where the target has such.
        let letters: Vec<_> = [" ", "t", "h"]
            .iter()
            .flat_map(|it| tokens(&text, it))
            .collect();
        drafts.follow(&letters);
        assert_eq!(drafts.sequence, whole);
        assert_eq!(drafts.ahead, b"ere was a little girl");
        let rest = tokens(&text, "Once there was")[1..].to_vec();
        drafts.follow(&tokens(&text, "ere"));
        assert_eq!(drafts.ahead, b" was a little girl");
        assert_eq!(
            drafts.output_len(),
            letters.len() + tokens(&text, "ere").len()
        );
        // Something else: all falls off, and the text is what the target wrote.
        drafts.follow(&rest);
        assert!(drafts.ahead.is_empty() && drafts.in_target().is_empty());
        let read = text.text_of(&drafts.sequence);
        assert_eq!(
            read,
            format!("Once upon a time there{}", text.text_of(&rest))
        );
    }

    #[test]
    fn each_draft_is_told_once_and_again_where_it_changed() {
        let (text, mut drafts) = after("Once upon a time");
        let told = |drafts: &mut TranslatedDrafts| {
            let proposed = drafts.propose(8).map(|it| it.nodes);
            proposed.map(|nodes| nodes.iter().map(|node| node.token).collect::<Vec<_>>())
        };
        assert_eq!(told(&mut drafts), None);
        drafted(&text, &mut drafts, " there was");
        assert_eq!(told(&mut drafts), Some(tokens(&text, " there was")));
        assert_eq!(told(&mut drafts), None);
        drafted(&text, &mut drafts, " a");
        assert_eq!(told(&mut drafts), Some(tokens(&text, " a")));
        let right = drafts.right;
        drafts.follow(&tokens(&text, " there"));
        assert!(drafts.right > right);
        assert_eq!(told(&mut drafts), None);
        drafts.ends_with(2);
        assert_eq!(told(&mut drafts), Some(vec![2]));
        assert!(drafts.has_ended());
        drafts.follow(&tokens(&text, " is"));
        assert!(drafts.right < right && !drafts.has_ended());
    }

    #[test]
    fn a_text_slides_through_a_short_context() {
        let (text, mut drafts) = after(&"one two three ".repeat(20));
        let whole = drafts.sequence.clone();
        let half = drafts.sequence(16).to_vec();
        assert_eq!(half, whole[whole.len() - 8..]);
        drafted(&text, &mut drafts, " four");
        assert_eq!(drafts.sequence(16)[..8], half);
        assert_eq!(
            drafts.sequence(whole.len() + 9).len(),
            8 + tokens(&text, " four").len()
        );
    }

    #[test]
    fn what_is_no_text_is_given_up() {
        let (text, mut drafts) = after("Once");
        let cut = tokens(&text, "🟟").first().copied().expect("a byte");
        for _ in 0..=UNWRITTEN {
            assert!(!drafts.is_lost());
            drafts.push(cut);
        }
        drafts.push(cut);
        assert!(drafts.is_lost() && drafts.in_target().is_empty());
    }
}
