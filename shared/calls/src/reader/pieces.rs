//! What an output consists of.

/// A piece of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputPiece {
    /// Text for the user.
    Content(String),
    /// What the model thinks before it answers.
    Reasoning(String),
    /// A call begins, of the tool with this name.
    Call(String),
    /// More of the arguments of the last call, as JSON.
    Arguments(String),
}

/// What was read, in order. Adjacent pieces of one kind are one.
#[derive(Debug, Default)]
pub(super) struct Pieces(pub(super) Vec<OutputPiece>);

impl Pieces {
    pub(super) fn content(&mut self, text: &str) {
        match self.0.last_mut() {
            _ if text.is_empty() => {}
            Some(OutputPiece::Content(last)) => last.push_str(text),
            _ => self.0.push(OutputPiece::Content(text.to_owned())),
        }
    }

    pub(super) fn reasoning(&mut self, text: &str) {
        match self.0.last_mut() {
            _ if text.is_empty() => {}
            Some(OutputPiece::Reasoning(last)) => last.push_str(text),
            _ => self.0.push(OutputPiece::Reasoning(text.to_owned())),
        }
    }

    pub(super) fn call(&mut self, name: &str) {
        self.0.push(OutputPiece::Call(name.to_owned()));
    }

    pub(super) fn arguments(&mut self, json: &str) {
        match self.0.last_mut() {
            _ if json.is_empty() => {}
            Some(OutputPiece::Arguments(last)) => last.push_str(json),
            _ => self.0.push(OutputPiece::Arguments(json.to_owned())),
        }
    }
}
