//! A piece of a streamed answer. It is serialised as it stands, not by way of a JSON value: there is one for nearly every
//! token.

use serde::Serialize;
use serde_json::Value;
use wire::v1;

use crate::front::http::output::OutputToken;

/// A piece, which tells of one output.
#[derive(Serialize)]
pub(super) struct AnswerPiece<'a> {
    pub(super) id: String,
    pub(super) object: &'static str,
    pub(super) created: u64,
    pub(super) model: &'a str,
    pub(super) choices: [PieceChoice; 1],
    /// Null where it comes at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) usage: Option<Value>,
}

/// What a piece tells of its output.
#[derive(Serialize)]
pub(super) struct PieceChoice {
    /// An object: what is said, in the answer's layout.
    #[serde(flatten)]
    said: Value,
    pub(super) index: usize,
    pub(super) finish_reason: Option<&'static str>,
    pub(super) logprobs: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) token_ids: Option<Vec<u32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tokens: Option<Vec<ToldToken>>,
    /// What the round of these tokens, or of those before, came to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) round: Option<v1::RoundReport>,
}

/// A token, and where it is from.
#[derive(Serialize)]
pub(super) struct ToldToken {
    id: u32,
    text: String,
    origin: &'static str,
}

impl PieceChoice {
    pub(super) fn new(index: usize, said: Value) -> Self {
        Self {
            said,
            index,
            finish_reason: None,
            logprobs: Value::Null,
            token_ids: None,
            tokens: None,
            round: None,
        }
    }
}

impl ToldToken {
    pub(super) fn new(token: &OutputToken) -> Self {
        let origin = match token.origin {
            v1::Origin::Accepted => "accepted",
            v1::Origin::Recovered => "recovered",
            v1::Origin::Bonus => "bonus",
            v1::Origin::Deferred => "deferred",
            v1::Origin::Target | v1::Origin::Unspecified => "target",
        };
        Self {
            id: token.id,
            text: token.piece.clone(),
            origin,
        }
    }
}
