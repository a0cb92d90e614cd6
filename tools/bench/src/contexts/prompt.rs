//! The share of a long prompt's time that its context takes.

use std::time::Duration;

use model::{Checkpoint, CpuFormat, KvFormat};

use crate::decode::subject::DecodeSubject;
use crate::report::{Row, number, percent, text};
use crate::timing::{median, microseconds};

/// Tokens of a forward, as engines cut prompts.
const CHUNK: usize = 256;

/// Every so many forwards of the prompt one without a context is measured beside them.
const BESIDE: usize = 4;

/// Most of the time that may be attention's.
pub(super) const SHARE_GOAL: f64 = 0.4;

/// Figures of one prompt.
#[derive(Clone, Copy, Debug)]
pub(super) struct PromptRow {
    tokens: usize,
    us: f64,
    /// A forward of [`CHUNK`] tokens without a context.
    alone_us: f64,
}

/// Computes a prompt of about `tokens` tokens, in whole forwards.
///
/// # Errors
/// What the model refuses.
pub(super) fn measure(
    checkpoint: &Checkpoint,
    format: CpuFormat,
    tokens: usize,
) -> anyhow::Result<PromptRow> {
    let forwards = (tokens / CHUNK).max(1);
    let mut alone = DecodeSubject::empty(checkpoint, format)?;
    let mut subject = DecodeSubject::empty(checkpoint, format)?;
    let mut forward_alone = || -> anyhow::Result<f64> {
        let took = alone.grow(CHUNK)?;
        alone.clear();
        Ok(microseconds(took))
    };
    // Threads wake, and memory is mapped.
    for _ in 0..3 {
        forward_alone()?;
    }
    let (mut took, mut beside) = (Duration::ZERO, Vec::new());
    for forward in 0..forwards {
        if forward % BESIDE == 0 {
            beside.push(forward_alone()?);
        }
        took += subject.grow(CHUNK)?;
    }
    Ok(PromptRow {
        tokens: forwards * CHUNK,
        us: microseconds(took),
        alone_us: median(beside),
    })
}

impl PromptRow {
    /// Returns its row of the table.
    pub(super) fn fields(self, name: &str, kv: KvFormat) -> Row {
        let forwards = (self.tokens / CHUNK) as f64;
        let share = 1.0 - forwards * self.alone_us / self.us;
        vec![
            text("on", name.to_owned()),
            text("kv_dtype", kv.to_string()),
            text("tokens", self.tokens),
            number("ms", self.us / 1e3, 0),
            number("tokens_per_second", self.tokens as f64 / self.us * 1e6, 0).called("tokens/s"),
            number(
                "alone_tokens_per_second",
                CHUNK as f64 / self.alone_us * 1e6,
                0,
            )
            .called("without a context"),
            percent("attention", share, 0).missed(share > SHARE_GOAL),
        ]
    }
}
