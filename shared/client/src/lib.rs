//! A client of Outrider's coordinator, over gRPC.
//!
//! [`Client::generate`] gives a [`Generation`]: a stream of typed [`GenerationEvent`]s, or, by [`Generation::collect`], a whole
//! [`CollectedAnswer`]. Around the call the client does what every user of a service needs:
//!
//! - **Waits.** Services that were just started are waited for, and a coordinator that is overloaded is asked again
//!   when it says so. What is wrong with a request is told at once. [`Policy`] bounds the waits, or forbids them.
//! - **Goes on.** Where the connection or the coordinator is lost in the middle of an answer whose method is
//!   reproducible, the client asks again with the seed of the answer, compares the tokens that it has given out
//!   already with those that come again, and goes on behind them.
//! - **Cancels.** A [`Generation`] that is dropped cancels its call: the coordinator stops, and its peers free what
//!   they hold.
//!
//! ```no_run
//! use client::{Client, GenerationEvent, v1};
//! use net::{Credentials, channel::ChannelConfig};
//!
//! # async fn ask() -> Result<(), client::Error> {
//! // They hold certificates and tokens; these have none.
//! let client = Client::connect("http://127.0.0.1:7001", &ChannelConfig::default(), &Credentials::default())?;
//! let request = v1::GenerateRequest {
//!     prompt: Some(v1::generate_request::Prompt::Text("Once upon a time".to_owned())),
//!     max_tokens: Some(32),
//!     ..Default::default()
//! };
//! let mut generation = client.generate(request.clone()).await?;
//! while let Some(event) = generation.event().await? {
//!     if let GenerationEvent::Chunk(chunk) = event {
//!         print!("{}", chunk.text);
//!     }
//! }
//!
//! let answer = client.generate(request).await?.collect().await?;
//! println!("{} tokens, seed {}", answer.token_ids.len(), answer.started.seed);
//! # Ok(())
//! # }
//! ```

mod answer;
mod calls;
mod client;
mod error;
mod given;
mod policy;
mod reading;

pub use answer::{CollectedAnswer, GenerationEvent};
pub use calls::{Client, RetryWait};
pub use client::Generation;
pub use error::Error;
pub use given::OtherTokens;
pub use policy::Policy;
/// The messages of the protocol.
pub use wire::v1;
