//! What was said so far.

use wire::v1::ChatMessage;

use crate::generate::turn;

/// A conversation: what the model was told before, and turns of user and model.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    system: Option<String>,
    turns: Vec<(String, String)>,
}

impl Conversation {
    pub(super) fn new(system: Option<String>) -> Self {
        let turns = Vec::new();
        Self { system, turns }
    }

    /// Number of turns.
    pub(super) fn len(&self) -> usize {
        self.turns.len()
    }

    /// The conversation without its `forgotten` oldest turns, and what the user says next.
    pub(super) fn messages(&self, forgotten: usize, next: &str) -> Vec<ChatMessage> {
        let system = self.system.iter().map(|text| turn("system", text));
        let turns = self.turns[forgotten..].iter();
        let turns = turns.flat_map(|(user, model)| [turn("user", user), turn("assistant", model)]);
        system.chain(turns).chain([turn("user", next)]).collect()
    }

    /// Forgets the oldest turns.
    pub(super) fn forget(&mut self, turns: usize) {
        self.turns.drain(..turns);
    }

    /// Adds a turn.
    pub(super) fn add(&mut self, user: String, model: String) {
        self.turns.push((user, model));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_turns_go_and_what_came_before_them_stays() {
        let mut conversation = Conversation::new(Some("Be brief.".to_owned()));
        for turn in ["1", "2", "3"] {
            conversation.add(format!("user {turn}"), format!("model {turn}"));
        }
        let said = |conversation: &Conversation, forgotten| -> Vec<String> {
            let messages = conversation.messages(forgotten, "next").into_iter();
            messages.map(|message| message.content).collect()
        };
        let expected = ["Be brief.", "user 3", "model 3", "next"];
        assert_eq!(said(&conversation, 2), expected);
        conversation.forget(2);
        assert_eq!(said(&conversation, 0), expected);
        assert_eq!(conversation.len(), 1);
    }
}
