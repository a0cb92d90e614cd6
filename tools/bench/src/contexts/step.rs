//! A step and a block after one context, against what memory allows.

use model::{CpuFormat, KvFormat, ModelConfig};

use super::BLOCK;
use crate::decode::subject::{self, DecodeSubject};
use crate::read_probe::ReadProbe;
use crate::report::{Row, number, only_json, text};
use crate::timing::{CaseTime, in_turn};

/// Most of the time of reading that a step may take.
pub(super) const LIMIT_GOAL: f64 = 1.5;

/// Most of the time of a step that a block may take.
pub(super) const BLOCK_GOAL: f64 = 1.25;

/// What is measured in a turn.
#[derive(Clone, Copy, Debug)]
enum StepCase {
    /// Forwards of so many positions.
    Forward(usize),
    /// Reading as many bytes as a step must.
    Read,
}

/// Figures after one context.
#[derive(Clone, Copy, Debug)]
pub(super) struct ContextRow {
    context: usize,
    /// Weights, keys and values: what a step reads at least.
    bytes: usize,
    step: CaseTime,
    read: CaseTime,
    block: CaseTime,
}

/// Measures `subject` where it stands.
///
/// # Errors
/// What the model refuses.
pub(super) fn measure(
    subject: &mut DecodeSubject,
    config: &ModelConfig,
    format: CpuFormat,
    repeats: usize,
) -> anyhow::Result<ContextRow> {
    let context = subject.held();
    let a_token = 2 * config.layers * config.kv_heads * format.kv.head_bytes(config.head_dim);
    let bytes = subject.weight_bytes()? + context * a_token;
    let probe = ReadProbe::new(bytes);
    let count = subject.enough()?;
    let cases = [
        StepCase::Forward(1),
        StepCase::Read,
        StepCase::Forward(BLOCK),
    ];
    let times = in_turn(repeats, &cases, |case| match case {
        StepCase::Forward(positions) => subject.forwards(*positions, count),
        StepCase::Read => Ok(subject::passes(&probe, count)),
    })?;
    Ok(ContextRow {
        context,
        bytes: probe.bytes(),
        step: times[0],
        read: times[1],
        block: times[2],
    })
}

impl ContextRow {
    /// Returns its row of the table.
    pub(super) fn fields(self, name: &str, kv: KvFormat) -> Row {
        let of_limit = 1.0 / self.read.ratio;
        vec![
            text("on", name.to_owned()),
            text("kv_dtype", kv.to_string()),
            text("context", self.context),
            number("step_ms", self.step.us / 1e3, 2).called("step, ms"),
            only_json("bytes", self.bytes),
            number(
                "bandwidth_gb_per_second",
                self.bytes as f64 / self.read.us / 1e3,
                0,
            )
            .called("GB/s"),
            number("limit_ms", self.read.us / 1e3, 2).called("limit, ms"),
            number("of_limit", of_limit, 2)
                .called("of it")
                .missed(of_limit > LIMIT_GOAL),
            number("block_ms", self.block.us / 1e3, 2).called("block, ms"),
            number("block_ratio", self.block.ratio, 2)
                .called("block")
                .missed(self.block.ratio > BLOCK_GOAL),
        ]
    }
}
