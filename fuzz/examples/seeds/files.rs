//! Files.

use std::ops::ControlFlow;

use model::gguf_writer::{self, FileFormat};
use outrider_fuzz::models::{VOCAB_SIZE, checkpoint};
use wire::v1::*;

use crate::{write, write_bytes};

/// Weights and recordings.
pub fn write_all() {
    let checkpoint = checkpoint(1);
    for format in [FileFormat::F32, FileFormat::Q8_0] {
        let mut bytes = Vec::new();
        let unstopped = &mut |_: model::progress::WorkProgress<'_>| ControlFlow::Continue(());
        gguf_writer::write(&checkpoint, "tiny", format, &mut bytes, unstopped).expect("a file");
        write_bytes("gguf", &format.to_string(), &bytes);
    }
    let header = RecordingHeader {
        format: "outrider.recording".to_owned(),
        version: 1,
        vocab_size: VOCAB_SIZE,
        ..Default::default()
    };
    let probs = RecordedDistribution {
        probabilities: vec![0.5, 0.25],
        max_probability: 0.5,
        entropy: 1.0,
        ..Default::default()
    };
    let rest = RecordedRest {
        draft: 0.25,
        target: 0.25,
        draft_unscaled: 0.25,
        target_unscaled: 0.25,
        cross_entropy: 1.0,
    };
    let position = RecordedPosition {
        token_ids: vec![65, 66],
        draft: Some(probs.clone()),
        target: Some(probs),
        rest: vec![rest],
    };
    let block = RecordedBlock {
        draft_token_ids: vec![65],
        positions: vec![position],
        accepted: 1,
        ..Default::default()
    };
    write(
        "recording",
        "one-block",
        &Recording {
            header: Some(header),
            blocks: vec![block],
        },
    );
}
