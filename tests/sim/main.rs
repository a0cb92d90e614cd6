//! One request on a simulated network, in virtual time.
//!
//! A real [`speculation::session::Session`] talks to a simulated drafter and verifier, which run
//! the real mathematics on toy models. Between them stands a network that loses, repeats, delays
//! and corrupts messages, cuts peers off and crashes them. Nothing sleeps and nothing runs beside
//! it: time is the time of the next event, chance is a counter-based generator, and so a failing
//! case, which prints its seed and its faults, fails again.
//!
//! ```text
//!  Session ─ Client ─ Ask ──▶ Network ──▶ SimPeer ─ Sequence ─ ToyModel
//!            Sources ─ Append ──┤             └ Decodes
//!            AheadLink ─ Commit ┴─▶ AheadDrafter ─ Said ─▶ Sources
//!      ▲        ▲                ▲ Faults     │
//!      └ Input ─┴──── Reply ◀────┴────────────┘      Record: what happened, and what must hold
//! ```

mod ahead;
mod case;
mod client;
mod decodes;
mod decoding;
mod dice;
mod faults;
mod garbage;
mod message;
mod network;
mod peer;
mod prices;
mod record;
mod sequence;
mod simulation;
mod source;

mod cascades;
mod changes;
mod corruption;
mod determinism;
mod drafted_ahead;
mod liveness;
mod lossless;
mod outages;
mod rejection;
mod stream_outages;
mod streams;
mod sweep;
mod trees;
