//! Settings of a model as engine candle takes them: the device, and the format that it is computed in.

use super::CandleSourceError;
use crate::candle::CandleConfig;
use crate::computation::{AUTOMATIC, ComputeDevice, NumberFormat};
use crate::source::{ModelSource, SourceError};

impl ModelSource {
    /// Checks the settings whose values this engine may refuse whatever the model is.
    ///
    /// # Errors
    /// Names the setting.
    pub(in crate::source) fn check_for_candle(&self) -> Result<(), SourceError> {
        let place = self.place_for_candle();
        let format = self.number_for_candle();
        let checked = place.and(format);
        checked
            .map(drop)
            .map_err(|error| self.refused_by_candle(error))
    }

    /// Reads the device that is set.
    ///
    /// # Errors
    /// If there is no device of that name.
    pub(super) fn place_for_candle(&self) -> Result<ComputeDevice, CandleSourceError> {
        Ok(self.device.parse::<ComputeDevice>()?)
    }

    /// Reads the format that is set; none where the family's default is to be taken.
    ///
    /// # Errors
    /// Names the setting that is refused.
    fn number_for_candle(&self) -> Result<Option<NumberFormat>, CandleSourceError> {
        let setting = |key, value: &str, expected: &str| CandleSourceError::Setting {
            key,
            value: value.to_owned(),
            expected: expected.to_owned(),
        };
        if self.kv_dtype != AUTOMATIC && self.kv_dtype != self.dtype {
            let expected = "keys and values are in the format of the weights: leave it at auto";
            return Err(setting("kv_dtype", &self.kv_dtype, expected));
        }
        if self.dtype == AUTOMATIC {
            return Ok(None);
        }
        match self.dtype.parse() {
            Ok(format @ (NumberFormat::F32 | NumberFormat::Bf16 | NumberFormat::F16)) => {
                Ok(Some(format))
            }
            _ => Err(setting(
                "dtype",
                &self.dtype,
                "expected auto, f32, bf16 or f16",
            )),
        }
    }

    /// Returns the format that a model of `config` is computed in.
    ///
    /// # Errors
    /// If its family is not computed in the one that is set.
    pub(super) fn format_for_candle(
        &self,
        config: &CandleConfig,
    ) -> Result<NumberFormat, CandleSourceError> {
        let formats = config.formats();
        let Some(format) = self.number_for_candle()? else {
            return Ok(formats[0]);
        };
        if formats.contains(&format) {
            return Ok(format);
        }
        let known: Vec<_> = formats.iter().map(|format| format.name()).collect();
        Err(CandleSourceError::Setting {
            key: "dtype",
            value: self.dtype.clone(),
            expected: format!(
                "expected auto or {} of a {}",
                known.join(" or "),
                config.family()
            ),
        })
    }
}
