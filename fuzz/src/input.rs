//! Decodes inputs. An input of a gRPC target is one protobuf message, most of which remains valid after a mutation.

use prost::Message;
use speculation::constraint::GrammarSpec;
use speculation::pending::PathDigest;
use wire::round::digest;
use wire::v1::session_request::Request;
use wire::v1::{Append, GenerateRequest, PeerDescription, SessionReply, SessionRequest};

/// What a coordinator, or whoever pretends to be one, sends to a drafter or a verifier in one stream.
#[derive(Clone, PartialEq, Message)]
pub struct SessionStream {
    #[prost(message, repeated, tag = "1")]
    pub requests: Vec<SessionRequest>,
}

/// What is proposed to a decode, one after the other.
#[derive(Clone, PartialEq, Message)]
pub struct Appends {
    #[prost(message, repeated, tag = "1")]
    pub appends: Vec<Append>,
}

/// The number from which on a proposed token stands for one that the target decodes itself: no change of a byte would find
/// it.
pub const OWN: u32 = 1_000;

/// A client's request, and what the coordinator's peers answer: the next reply to each of its messages. Without a
/// description they can do everything.
#[derive(Clone, PartialEq, Message)]
pub struct Exchange {
    #[prost(message, optional, tag = "1")]
    pub request: Option<GenerateRequest>,
    #[prost(message, repeated, tag = "2")]
    pub verifier: Vec<SessionReply>,
    #[prost(message, repeated, tag = "3")]
    pub drafter: Vec<SessionReply>,
    #[prost(message, optional, tag = "4")]
    pub description: Option<PeerDescription>,
}

impl SessionStream {
    /// The requests, each round with the digest that belongs to it: no change of a byte would find it.
    pub fn with_digests(mut self) -> Vec<SessionRequest> {
        for request in &mut self.requests {
            if let Some(Request::Round(round)) = &mut request.request
                && let (Some(header), Some(asked)) = (&mut round.header, &round.round)
            {
                header.digest = digest(asked);
            }
        }
        self.requests
    }
}

impl Appends {
    /// The proposals, with the tokens that stand for those of `own` replaced by them, and the roots that stand for so many of
    /// them by their digests.
    pub fn with_own(mut self, own: &[u32]) -> Vec<Append> {
        for append in &mut self.appends {
            let after = own.get(append.after as usize..).unwrap_or_default();
            for root in &mut append.roots {
                let path = root.checked_sub(OWN).and_then(|len| after.get(..len as usize));
                if let Some(path) = path {
                    *root = PathDigest::of(path).0;
                }
            }
            for token in &mut append.token_ids {
                let at = token.checked_sub(OWN);
                if let Some(&own) = at.and_then(|at| own.get(at as usize)) {
                    *token = own;
                }
            }
        }
        self.appends
    }
}

/// A body of a request over HTTP: a byte that names the route, then the body.
pub struct HttpBody<'a> {
    /// The path.
    pub route: &'static str,
    /// The body as it is sent.
    pub body: &'a [u8],
}

impl<'a> HttpBody<'a> {
    /// The routes that take a body, each with the printable byte that selects it.
    pub const ROUTES: [(u8, &'static str); 5] = [
        (b'c', "/v1/completions"),
        (b'm', "/v1/chat/completions"),
        (b'r', "/v1/responses"),
        (b't', "/tokenize"),
        (b'd', "/detokenize"),
    ];

    /// The body that `bytes` are; none if they name no route.
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let (first, body) = bytes.split_first()?;
        let (_, route) = Self::ROUTES.iter().find(|(name, _)| name == first)?;
        Some(Self { route, body })
    }
}

/// A grammar: a letter that names its kind, its text, and behind a byte 0xFF, which is in no text, what of the tokens that
/// may come is chosen.
pub struct GrammarText<'a> {
    /// The grammar.
    pub spec: GrammarSpec,
    /// A number for each choice.
    pub choices: &'a [u8],
}

impl<'a> GrammarText<'a> {
    /// The grammar that `bytes` are; none if they name no kind, or have no text. The texts of a choice are lines.
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let end = rest.iter().position(|byte| *byte == 0xFF);
        let (text, choices) = rest.split_at(end.unwrap_or(rest.len()));
        let text = std::str::from_utf8(text).ok()?.to_owned();
        let spec = match kind {
            b's' => GrammarSpec::JsonSchema(text),
            b'r' => GrammarSpec::Regex(text),
            b'c' => GrammarSpec::Choice(text.lines().map(str::to_owned).collect()),
            b'l' => GrammarSpec::Lark(text),
            _ => return None,
        };
        Some(Self { spec, choices })
    }
}

/// Answers of an engine: a digit that names what is asked of it, then the answers, each ended by the byte 0xFF, which is
/// in no text. One that begins with `!` is a refusal.
pub struct EngineAnswers {
    /// What is asked.
    pub route: u8,
    /// A status and a body for each answer.
    pub script: Vec<(u16, Vec<u8>)>,
}

impl EngineAnswers {
    /// The answers that `bytes` are; none if they name no route.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (first, rest) = bytes.split_first()?;
        let route = first
            .checked_sub(b'0')
            .filter(|route| *route < Self::ROUTES)?;
        let answers = rest.split(|byte| *byte == 0xFF);
        let script = answers.map(|answer| match answer.strip_prefix(b"!") {
            Some(words) => (400, words.to_vec()),
            None => (200, answer.to_vec()),
        });
        Some(Self {
            route,
            script: script.collect(),
        })
    }

    /// How many routes there are.
    pub const ROUTES: u8 = 9;

    /// The bytes that are read as this route and these answers.
    pub fn write(route: u8, answers: &[Vec<u8>]) -> Vec<u8> {
        [&[b'0' + route], &answers.join(&0xFF)[..]].concat()
    }
}
