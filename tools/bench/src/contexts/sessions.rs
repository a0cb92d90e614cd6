//! Sessions that decode together after a context each.

use std::num::NonZeroUsize;

use anyhow::Context;
use model::{Checkpoint, CpuFormat, KvFormat};
use speculation::sampling::SamplingParams;

use crate::batch::session::Sessions;
use crate::report::{Row, number, text};
use crate::timing::in_turn;

/// Tokens that each session decodes in a measurement.
const TOKENS: usize = 16;

/// Figures of one number of sessions.
#[derive(Clone, Copy, Debug)]
pub(super) struct SessionsRow {
    sessions: usize,
    context: usize,
    us: f64,
}

/// Measures `count` sessions together, each after `context` tokens.
///
/// # Errors
/// If the engine does not start, or fails.
pub(super) fn measure(
    checkpoint: &Checkpoint,
    format: CpuFormat,
    count: usize,
    context: usize,
    repeats: usize,
) -> anyhow::Result<SessionsRow> {
    let most = NonZeroUsize::new(count).context("--sessions: none")?;
    let greedy = SamplingParams {
        temperature: 0.0,
        ..SamplingParams::default()
    };
    let sessions = Sessions::start(checkpoint.load(format)?, most, context, greedy)?;
    let times = in_turn(repeats, &[count], |&count| sessions.decode(count, TOKENS))?;
    Ok(SessionsRow {
        sessions: count,
        context,
        us: times[0].us,
    })
}

impl SessionsRow {
    /// Returns its row of the table.
    pub(super) fn fields(self, name: &str, kv: KvFormat) -> Row {
        let token_us = self.us / TOKENS as f64;
        vec![
            text("on", name.to_owned()),
            text("kv_dtype", kv.to_string()),
            text("sessions", self.sessions),
            text("context", self.context),
            number("token_ms", token_us / 1e3, 2).called("ms a token"),
            number(
                "tokens_per_second",
                self.sessions as f64 / token_us * 1e6,
                0,
            )
            .called("tokens/s"),
        ]
    }
}
