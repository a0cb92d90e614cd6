//! What is lost where nobody chose the format that weights are computed in.

use candle_core::quantized::GgmlDType;

use super::ModelSource;
use crate::checkpoint::Checkpoint;
use crate::computation::{AUTOMATIC, Computation};
use crate::linear::WeightFormat;

/// The warning that a model needs whose weights are stored as floating-point numbers and computed in 8 bits, if
/// `source` leaves the format open.
pub(super) fn warning(
    source: &ModelSource,
    checkpoint: &Checkpoint,
    computation: Computation,
) -> Option<String> {
    let Computation::Cpu(format) = computation else {
        return None;
    };
    if source.dtype != AUTOMATIC || format.weights != WeightFormat::Q8_0 {
        return None;
    }
    let stored = stored(checkpoint)?;
    Some(format!(
        "weights are stored in {stored} and rounded to q8_0, 8 bits, which changes a model's answers a little: dtype = \
         \"f32\" computes with them as they are and takes four times the memory, dtype = \"q8_0\" says that this is meant"
    ))
}

/// The floating-point format of most matrices, if they have one.
fn stored(checkpoint: &Checkpoint) -> Option<&'static str> {
    let formats = checkpoint.weights().matrix_formats();
    let floats = [
        (GgmlDType::BF16, "bf16"),
        (GgmlDType::F16, "f16"),
        (GgmlDType::F32, "f32"),
    ];
    let is_most =
        |wanted| 2 * formats.iter().filter(|&&format| format == wanted).count() > formats.len();
    let most = floats.into_iter().find(|&(wanted, _)| is_most(wanted));
    most.map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warned(path: &str, dtype: &str) -> Option<String> {
        let source = ModelSource {
            dtype: dtype.to_owned(),
            ..ModelSource::new(path)
        };
        let checkpoint = source.open().expect("a checkpoint");
        let computation = source.computation_of(&checkpoint).expect("a computation");
        warning(&source, &checkpoint, computation)
    }

    #[test]
    fn only_weights_that_are_rounded_unasked_are_warned_of() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/default/draft");
        let warning = warned(folder, "auto").expect("a warning");
        assert!(
            warning.contains("bf16") && warning.contains("q8_0"),
            "{warning}"
        );
        assert_eq!(warned(folder, "q8_0"), None);
        assert_eq!(warned(folder, "f32"), None);
    }
}
