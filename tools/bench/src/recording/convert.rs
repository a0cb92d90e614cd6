//! Blocks between the file format and the domain.

use speculation::confidence::Confidence;
use wire::v1;

use super::{BadRecord, RecordedBlock, RecordedDistribution, RecordedPosition, Rest};

/// Writes a block.
pub(super) fn block_to_wire(block: RecordedBlock) -> v1::RecordedBlock {
    let probs = |probs: RecordedDistribution| v1::RecordedDistribution {
        probabilities: probs.probabilities,
        unscaled: probs.unscaled.unwrap_or_default(),
        max_probability: probs.confidence.max,
        entropy: probs.confidence.entropy,
    };
    let rest = |rest: Rest| v1::RecordedRest {
        draft: rest.draft,
        target: rest.target,
        draft_unscaled: rest.draft_unscaled,
        target_unscaled: rest.target_unscaled,
        cross_entropy: rest.cross_entropy,
    };
    let position = |position: RecordedPosition| v1::RecordedPosition {
        token_ids: position.ids,
        draft: Some(probs(position.draft)),
        target: Some(probs(position.target)),
        rest: position.rest.into_iter().map(rest).collect(),
    };
    v1::RecordedBlock {
        prompt: block.prompt,
        kind: block.kind,
        base_len: block.base_len,
        draft_token_ids: block.drafts,
        positions: block.positions.into_iter().map(position).collect(),
        accepted: block.accepted,
    }
}

/// Reads a block. [`RecordedBlock::check`] checks that it holds distributions.
///
/// # Errors
/// If a position lacks a distribution.
pub(super) fn block_from_wire(wire: v1::RecordedBlock) -> Result<RecordedBlock, BadRecord> {
    let probs = |probs: v1::RecordedDistribution| RecordedDistribution {
        probabilities: probs.probabilities,
        unscaled: (!probs.unscaled.is_empty()).then_some(probs.unscaled),
        confidence: Confidence {
            max: probs.max_probability,
            entropy: probs.entropy,
        },
    };
    let rest = |rest: v1::RecordedRest| Rest {
        draft: rest.draft,
        target: rest.target,
        draft_unscaled: rest.draft_unscaled,
        target_unscaled: rest.target_unscaled,
        cross_entropy: rest.cross_entropy,
    };
    let position = |wire: v1::RecordedPosition| match (wire.draft, wire.target) {
        (Some(draft), Some(target)) => Ok(RecordedPosition {
            ids: wire.token_ids,
            draft: probs(draft),
            target: probs(target),
            rest: wire.rest.into_iter().map(rest).collect(),
        }),
        _ => Err(BadRecord {
            field: "positions".to_owned(),
            problem: "the distribution of one of the models is missing".to_owned(),
        }),
    };
    let positions: Result<Vec<_>, _> = wire.positions.into_iter().map(position).collect();
    Ok(RecordedBlock {
        prompt: wire.prompt,
        kind: wire.kind,
        base_len: wire.base_len,
        drafts: wire.draft_token_ids,
        positions: positions?,
        accepted: wire.accepted,
    })
}
