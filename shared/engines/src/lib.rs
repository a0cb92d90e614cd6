//! Engines that serve a model to others over HTTP, as what scores draft tokens.
//!
//! A round asks an engine for the rows after the last committed token and after each draft token. It returns of each
//! the K most likely tokens and those that were asked for, as log probabilities; what follows from that for a
//! decision is [`speculation::certificate`]'s.
//!
//! | module | what it holds |
//! |---|---|
//! | [`request`] | what is asked of an engine |
//! | [`engine`] | what an engine can do, and the port |
//! | [`probe`] | what an engine is and can do, asked before it is used |
//! | [`sglang`], [`vllm`] | an engine's request bodies and answers |
//! | `checks` | that an answer is one to what was asked |
//! | [`http`], [`settings`] | the connection: bounds, deadlines, waits; where it goes |
//! | [`error`] | why there is no answer |
//!
//! Calls block, and are made on an engine's own thread. Nothing that an engine says is trusted: an answer that has
//! entries too many or too few, out of order or out of range, is an error and never a row. Neither tokens nor bodies
//! are in errors, so that no prompt gets into a log.

mod checks;
pub mod engine;
pub mod error;
pub mod http;
pub mod probe;
pub mod request;
pub mod settings;
pub mod sglang;
pub mod vllm;

pub use engine::{Engine, EngineCaps, EngineIdentity, Ids, ScoredRows, ScoringEngine};
pub use error::ScoringError;
pub use http::EngineConnection;
pub use probe::RemoteEngine;
pub use request::{ScoreRequest, ScoredSequence};
pub use settings::ConnectionSettings;
pub use sglang::Sglang;
pub use vllm::{Vllm, VllmRoute};
