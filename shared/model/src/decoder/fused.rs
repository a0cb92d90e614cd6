//! Checkpoints with one matrix where the decoder has several: which rows of it are whose.

use std::collections::BTreeMap;

use super::tensors::{Part, TensorNames};
use crate::{config::ModelConfig, weights::RowRange};

/// The matrices that a checkpoint of `config` holds as rows of others, by the names they have in checkpoints that
/// keep them apart.
pub(crate) fn row_ranges(config: &ModelConfig, names: TensorNames) -> BTreeMap<String, RowRange> {
    let layers =
        (0..config.layers).flat_map(|layer| Part::of(config).map(move |part| (layer, part)));
    let mut ranges = BTreeMap::new();
    for (layer, fused) in layers {
        let mut first = 0;
        for &part in fused.fused() {
            let rows = part.shape(config)[0];
            let range = |of| RowRange {
                of,
                rows: first..first + rows,
                total: fused.shape(config)[0],
            };
            let weight = names.weight(config, layer, part);
            ranges.insert(weight, range(names.weight(config, layer, fused)));
            if fused.has_bias(config) {
                let bias = names.bias(config, layer, part);
                ranges.insert(bias, range(names.bias(config, layer, fused)));
            }
            first += rows;
        }
    }
    ranges
}
