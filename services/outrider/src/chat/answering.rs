//! One turn: what the user says goes to the coordinator, and the answer is printed as it comes.

use client::{Client, CollectedAnswer, Generation};
use wire::v1;

use super::conversation::Conversation;
use super::settings::ChatSettings;
use crate::generate::terminal::Terminal;
use crate::generate::{self, TooLong};

/// Tokens of an answer that a conversation leaves room for, where --max-tokens does not say.
const ANSWER_TOKENS: u32 = 256;

/// Returns how many tokens the answer of `generation` may have, and adds what came until then to `answer`.
async fn room(
    generation: &mut Generation,
    answer: &mut CollectedAnswer,
) -> Result<u32, client::Error> {
    while !generate::is_begun(answer) {
        match generation.event().await? {
            Some(event) => answer.add(event),
            None => break,
        }
    }
    Ok(answer.started.max_tokens)
}

/// A conversation with the model of a coordinator.
pub(super) struct Dialogue {
    client: Client,
    url: String,
    pub(super) settings: ChatSettings,
    pub(super) conversation: Conversation,
    /// The last answer, as far as it came.
    pub(super) answer: CollectedAnswer,
}

impl Dialogue {
    pub(super) fn new(client: Client, url: &str, settings: ChatSettings) -> Self {
        Self {
            client,
            url: url.to_owned(),
            settings,
            conversation: Conversation::default(),
            answer: CollectedAnswer::default(),
        }
    }

    /// Prints the answer to `said`, and keeps both. The oldest turns are forgotten where the conversation and an
    /// answer have no room in the model's context. Where this is dropped, the call is cancelled, and nothing of
    /// the turn is kept but what [`keep`](Self::keep) does.
    ///
    /// # Errors
    /// [`TooLong`] if there is no room for `said` alone; else what ended the answer.
    pub(super) async fn say(&mut self, said: &str) -> anyhow::Result<()> {
        let request = &self.settings.request;
        let mut forgotten = 0;
        // The room of the attempt before, where that was too little.
        let mut little = None;
        let mut is_bounded = self.settings.request.max_tokens.is_some();
        let generation = loop {
            self.answer = CollectedAnswer::default();
            let is_last = forgotten == self.conversation.len();
            let system = self.settings.system.as_deref();
            let request = v1::GenerateRequest {
                messages: self.conversation.messages(system, forgotten, said),
                ..request.clone()
            };
            let mut generation = match generate::begin(&self.client, &self.url, request).await {
                Err(error) if error.is::<TooLong>() && !is_last => {
                    forgotten += 1;
                    continue;
                }
                begun => begun?,
            };
            if is_bounded || is_last {
                break generation;
            }
            let room = room(&mut generation, &mut self.answer).await;
            let room = room.map_err(|error| generate::explain(&self.url, error))?;
            if room >= ANSWER_TOKENS {
                break generation;
            }
            if little == Some(room) {
                // A turn less makes no more room: the coordinator bounds answers, not the context.
                is_bounded = true;
                forgotten -= 1;
                continue;
            }
            little = Some(room);
            forgotten += 1;
        };
        if forgotten > 0 {
            self.conversation.forget(forgotten);
            let gone = if forgotten == 1 {
                "turn is"
            } else {
                "turns are"
            };
            anstream::eprintln!(
                "the conversation is longer than the model's context: its {forgotten} oldest {gone} forgotten"
            );
        }
        let mut printer = Terminal::new(None, self.settings.stats);
        generate::read(generation, &self.url, &mut self.answer, &mut printer).await?;
        self.keep(said);
        Ok(())
    }

    /// Makes what came of the last answer a turn of the conversation.
    pub(super) fn keep(&mut self, said: &str) {
        let answer = self.answer.text.clone();
        self.conversation.add(said.to_owned(), answer);
    }
}
