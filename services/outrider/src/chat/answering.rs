//! One turn: what the user says goes to the coordinator, and the answer is printed as it comes.

use std::collections::VecDeque;

use client::{Client, CollectedAnswer, Generation};
use wire::v1;

use super::conversation::{ChatTurn, Conversation};
use super::settings::ChatSettings;
use crate::generate::terminal::Terminal;
use crate::generate::{self, TooLong, turn};

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
    /// The turn under way.
    next: ChatTurn,
    /// Calls that the user is still to answer, the first one first.
    calls: VecDeque<v1::ToolCall>,
}

impl Dialogue {
    pub(super) fn new(client: Client, url: &str, settings: ChatSettings) -> Self {
        Self {
            client,
            url: url.to_owned(),
            settings,
            conversation: Conversation::default(),
            answer: CollectedAnswer::default(),
            next: ChatTurn::new(),
            calls: VecDeque::new(),
        }
    }

    /// Returns the call whose result is the next thing to be said.
    pub(super) fn call(&self) -> Option<&v1::ToolCall> {
        self.calls.front()
    }

    /// Forgets all that was said.
    pub(super) fn clear(&mut self) {
        self.conversation = Conversation::default();
        self.drop_turn();
    }

    /// Forgets the turn under way.
    pub(super) fn drop_turn(&mut self) {
        self.next.clear();
        self.calls.clear();
    }

    /// Takes what was said: what a call came to, if one is to be answered; and prints what comes of it, once none is.
    ///
    /// # Errors
    /// As [`answer`](Self::answer).
    pub(super) async fn say(&mut self, said: &str) -> anyhow::Result<()> {
        match self.calls.pop_front() {
            None => self.next.push(turn("user", said)),
            Some(call) => self.next.push(v1::ChatMessage {
                tool_call_id: call.id,
                name: call.name,
                ..turn("tool", said)
            }),
        }
        if !self.calls.is_empty() {
            return Ok(());
        }
        let answered = self.answer().await;
        if answered.is_err() {
            self.drop_turn();
        }
        answered
    }

    /// Prints the answer to the turn under way, and keeps both. The oldest turns are forgotten where the conversation and an
    /// answer have no room in the model's context. Where this is dropped, the call is cancelled, and nothing of
    /// the turn is kept but what [`keep`](Self::keep) does.
    ///
    /// # Errors
    /// [`TooLong`] if there is no room for the turn alone; else what ended the answer.
    async fn answer(&mut self) -> anyhow::Result<()> {
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
                messages: self.conversation.messages(system, forgotten, &self.next),
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
        self.keep();
        for call in &self.calls {
            anstream::println!("{} {}", call.name, call.arguments);
        }
        Ok(())
    }

    /// Makes what came of the last answer a part of the conversation. Where it calls, the turn goes on.
    pub(super) fn keep(&mut self) {
        let answer = &self.answer;
        self.next.push(v1::ChatMessage {
            tool_calls: answer.tool_calls.clone(),
            reasoning: answer.reasoning.clone(),
            ..turn("assistant", &answer.text)
        });
        if answer.is_whole() && !answer.tool_calls.is_empty() {
            self.calls = answer.tool_calls.iter().cloned().collect();
        } else {
            self.conversation.add(std::mem::take(&mut self.next));
        }
    }
}
