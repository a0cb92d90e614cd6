//! Loading a folder to be served by engine candle.

use std::sync::Arc;
use std::time::Instant;

use speculation::pipeline;

use super::{CandleSourceError, OpenedFolder};
use crate::candle::{CandleModel, VERSION};
use crate::computation::{ComputeDevice, NumberFormat};
use crate::linear::WeightFormat;
use crate::progress::{LoadProgress, ProgressObserver};
use crate::runtime::Model;
use crate::source::inspected::FittingTokenizer;
use crate::source::located::Located;
use crate::source::{ModelSource, Numerics, ServedModel, SourceError};
use crate::weights::digest::WeightsDigest;

impl ModelSource {
    /// Loads the folder in `located` without acceptance heads; `observer` watches.
    ///
    /// # Errors
    /// Names the setting, the file or the key of its config that is refused.
    pub(in crate::source) fn serve_by_candle(
        &self,
        located: &Located,
        observer: &Arc<dyn ProgressObserver>,
    ) -> Result<ServedModel<Model>, SourceError> {
        let refused = |error: CandleSourceError| self.refused_by_candle(error);
        let place = self.place_for_candle().map_err(refused)?;
        let began = Instant::now();
        let mut opened = OpenedFolder::of(located).map_err(refused)?;
        let format = self.format_for_candle(&opened.config).map_err(refused)?;
        let name = self.served_name();
        opened.weights.progress = Arc::new(LoadProgress::of(&name, Arc::clone(observer)));
        let OpenedFolder {
            config,
            weights,
            text,
        } = opened;
        let tokenizer = FittingTokenizer::of(&text, config.shape().vocab_size, &self.path)?;
        let model = CandleModel::load(&config, &weights, format, place);
        let model = model.map_err(|error| refused(error.into()))?;
        let digest = WeightsDigest::of(&weights);
        let fingerprint =
            |what: &str| digest.fingerprint(&format!("{what} {}", config.fingerprinted()));
        let kernels = kernels(format, place);
        let outline = tokenizer.outline(name);
        let mut eos_token_ids = config.eos_token_ids().to_vec();
        let special =
            text.special_tokens(config.bos_token_id(), &eos_token_ids, &tokenizer.tokenizer);
        eos_token_ids.extend(text.more_ends);
        eos_token_ids.sort_unstable();
        eos_token_ids.dedup();
        let load_time = began.elapsed();
        let load_ms = load_time.as_millis() as u64;
        let (family, dtype) = (config.family(), format.name());
        tracing::info!(
            model = outline.name,
            family,
            dtype,
            kernels,
            load_ms,
            "model loaded"
        );
        Ok(ServedModel {
            model: Model::Candle(model),
            outline,
            text: tokenizer.encoding(special, text.chat_template).1,
            numerics: Numerics {
                weights: fingerprint(&format!("{kernels} {}", pipeline::FAMILY)),
                dtype: dtype.to_owned(),
                kernels,
            },
            is_on_processors: place == ComputeDevice::Cpu,
            weights_fingerprint: fingerprint("model"),
            is_converted: false,
            head_format: WeightFormat::F32,
            heads: Vec::new(),
            eos_token_ids,
            load_time,
        })
    }
}

/// Names what numbers depend on beside the weights and the machine.
fn kernels(format: NumberFormat, place: ComputeDevice) -> String {
    let backend = match place {
        ComputeDevice::Cpu => "cpu",
        ComputeDevice::Cuda(_) => "cuda",
    };
    format!("candle-transformers-{VERSION}-{backend}-{format}")
}
