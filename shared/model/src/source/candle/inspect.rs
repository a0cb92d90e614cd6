//! Looking at a folder for engine candle before its weights are read.

use std::collections::BTreeMap;

use super::{CandleSourceError, OpenedFolder};
use crate::candle::CandleModel;
use crate::computation::{ComputeDevice, NumberFormat};
use crate::source::inspected::{FittingTokenizer, NeedsOfCandle};
use crate::source::located::Located;
use crate::source::{EngineKind, Inspected, ModelSource, SourceError};

impl ModelSource {
    /// Checks the folder in `located` as loading it does, but does not read the numbers of its weights.
    ///
    /// # Errors
    /// As [`ModelSource::serve_by_candle`], but for tensors that are damaged.
    pub(in crate::source) fn inspect_for_candle(
        &self,
        located: &Located,
    ) -> Result<Inspected, SourceError> {
        let refused = |error: CandleSourceError| self.refused_by_candle(error);
        self.check_for_candle()?;
        let OpenedFolder {
            config,
            weights,
            text,
        } = OpenedFolder::of(located).map_err(refused)?;
        let format = self.format_for_candle(&config).map_err(refused)?;
        let tokenizer = FittingTokenizer::of(&text, config.shape().vocab_size, &self.path)?;
        let numbers = CandleModel::check(&config, &weights);
        let numbers = numbers.map_err(|error| refused(error.into()))?;
        let special = text.special_tokens(
            config.bos_token_id(),
            config.eos_token_ids(),
            &tokenizer.tokenizer,
        );
        let bytes = match format {
            NumberFormat::F32 => 4,
            _ => 2,
        };
        let mut stored = BTreeMap::new();
        for (format, size) in weights.sizes() {
            *stored.entry(format.to_owned()).or_default() += size as u64;
        }
        Ok(Inspected {
            own: None,
            engine: EngineKind::Candle,
            hidden_size: config.shape().hidden_size,
            by_candle: Some(NeedsOfCandle {
                format,
                context_len: config.shape().context_len,
                weight_bytes: numbers * bytes,
                token_bytes: (config.token_numbers() * config.token_copies()) as u64 * bytes,
                drafts_only: config.check_target().err(),
                is_on_cpu: self
                    .place_for_candle()
                    .is_ok_and(|place| place == ComputeDevice::Cpu),
            }),
            stored,
            outline: tokenizer.outline(self.served_name()),
            text: tokenizer.encoding(special, text.chat_template).1,
        })
    }
}
