//! Flags of a request, whatever its prompt is: who answers, how tokens are drawn, and when the output ends.

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use clap::Args;
use wire::v1;

use super::{MethodArgs, ServicesArgs};

/// Who answers, and how.
#[derive(Debug, Args)]
pub(crate) struct RequestArgs {
    #[command(flatten)]
    sampling: SamplingArgs,
    #[command(flatten)]
    method: MethodArgs,
    #[command(flatten)]
    pub(crate) services: ServicesArgs,
    /// Which of the coordinator's models answers, by the name it is served under; the first one if not given.
    #[arg(
        long,
        alias = "model",
        value_name = "NAME",
        help_heading = "Services",
        hide_short_help = true
    )]
    served_model: Option<String>,
}

impl RequestArgs {
    /// Returns the request without its prompt; what was not given is left to the coordinator.
    ///
    /// # Errors
    /// Names the flag whose value will not do.
    pub(crate) fn request(&self) -> anyhow::Result<v1::GenerateRequest> {
        // A served name may well be that of a file or folder here; a path to one is none.
        if let Some(name) = &self.served_model
            && self.services.coordinator.is_none()
            && self.services.models.is_empty()
            && name.contains('/')
            && Path::new(name).exists()
        {
            bail!(
                "--served-model: '{name}' is a file or folder, and the name of a served model is expected; \
                 --target-model loads a model from one"
            );
        }
        let mut request = v1::GenerateRequest {
            model: self.served_model.clone().unwrap_or_default(),
            ..Default::default()
        };
        self.sampling.apply(&mut request);
        self.method.apply(&mut request)?;
        Ok(request)
    }
}

/// How tokens are drawn, and when the output ends; what is not given is left to the coordinator.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Sampling")]
struct SamplingArgs {
    /// Most output tokens; what the model's context leaves if not given.
    #[arg(long, value_name = "N")]
    max_tokens: Option<u32>,
    /// Divides the logits: 0 is greedy; if not given 1, and 0.7 in `outrider chat`.
    #[arg(long, value_name = "T")]
    temperature: Option<f32>,
    /// Makes the output repeatable; drawn if not given.
    ///
    /// The summary of an answer reports it.
    #[arg(long, value_name = "S", value_parser = seed, allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Ends the output before this text.
    ///
    /// It may be given several times.
    #[arg(long, value_name = "TEXT")]
    stop: Vec<String>,
    /// Keeps the most likely tokens that together reach this probability.
    #[arg(long, value_name = "P", hide_short_help = true)]
    top_p: Option<f32>,
    /// Keeps the K most likely tokens; 0 keeps all.
    #[arg(long, value_name = "K", default_value_t = 0, hide_short_help = true)]
    top_k: u32,
    /// Keeps tokens at least this fraction as likely as the most likely one.
    #[arg(long, value_name = "P", default_value_t = 0.0, hide_short_help = true)]
    min_p: f32,
    /// Divides the positive and multiplies the negative logits of tokens that stand in prompt or output: above 1
    /// repeats less. 0.01 to 100; 1, no change, if not given.
    #[arg(long, value_name = "R", hide_short_help = true)]
    repetition_penalty: Option<f32>,
    /// Subtracted from the logits of tokens that stand in the output. -10000 to 10000.
    #[arg(long, value_name = "P", default_value_t = 0.0, hide_short_help = true)]
    presence_penalty: f32,
    /// Subtracted from a token's logit once for each time it stands in the output. -10000 to 10000.
    #[arg(long, value_name = "P", default_value_t = 0.0, hide_short_help = true)]
    frequency_penalty: f32,
    /// Added to the logits of single tokens, -10000 to 10000 each: `--logit-bias 317:2.5,42:-1`.
    #[arg(long, value_name = "ID:BIAS,...", value_delimiter = ',', value_parser = logit_bias, hide_short_help = true)]
    logit_bias: Vec<v1::LogitBias>,
    /// Tokens that are never drawn.
    #[arg(
        long,
        value_name = "ID,...",
        value_delimiter = ',',
        hide_short_help = true
    )]
    banned_token_ids: Vec<u32>,
    /// The only tokens that may be drawn.
    #[arg(
        long,
        value_name = "ID,...",
        value_delimiter = ',',
        hide_short_help = true
    )]
    allowed_token_ids: Vec<u32>,
    /// Fewest output tokens before an end token may be drawn.
    #[arg(long, value_name = "N", default_value_t = 0, hide_short_help = true)]
    min_tokens: u32,
    /// Further tokens that end the output.
    #[arg(
        long,
        value_name = "ID,...",
        value_delimiter = ',',
        hide_short_help = true
    )]
    stop_token_ids: Vec<u32>,
    /// Goes on after the model's end token.
    #[arg(long, hide_short_help = true)]
    ignore_eos: bool,
}

impl SamplingArgs {
    /// Writes what is given to `request`.
    fn apply(&self, request: &mut v1::GenerateRequest) {
        request.max_tokens = self.max_tokens;
        request.sampling = Some(v1::SamplingParams {
            temperature: self.temperature,
            top_p: self.top_p,
            top_k: self.top_k,
            min_p: self.min_p,
            repetition_penalty: self.repetition_penalty,
            presence_penalty: self.presence_penalty,
            frequency_penalty: self.frequency_penalty,
            logit_bias: self.logit_bias.clone(),
            banned_token_ids: self.banned_token_ids.clone(),
            allowed_token_ids: self.allowed_token_ids.clone(),
            min_tokens: self.min_tokens,
        });
        request.seed = self.seed;
        request.stop.clone_from(&self.stop);
        request.stop_token_ids.clone_from(&self.stop_token_ids);
        request.ignore_eos = self.ignore_eos;
    }
}

/// Reads a number of 64 bits, signed or not, as clients of every front send it.
fn seed(text: &str) -> Result<u64, String> {
    let signed = text.parse().map(i64::cast_unsigned);
    signed
        .or_else(|_| text.parse())
        .map_err(|_| format!("expected a whole number from {} to {}", i64::MIN, u64::MAX))
}

fn logit_bias(text: &str) -> Result<v1::LogitBias> {
    let wrong = || anyhow!("expected ID:BIAS, a token id and a number, as in 317:2.5");
    let (id, bias) = text.split_once(':').ok_or_else(wrong)?;
    Ok(v1::LogitBias {
        token_id: id.trim().parse().map_err(|_| wrong())?,
        bias: bias.trim().parse().map_err(|_| wrong())?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_has_64_bits_with_a_sign_or_without() {
        assert_eq!(seed("7"), Ok(7));
        assert_eq!(seed("-5"), Ok(u64::MAX - 4));
        assert_eq!(seed(&(u64::MAX - 4).to_string()), Ok(u64::MAX - 4));
        for wrong in ["18446744073709551616", "-9223372036854775809", "1.5", ""] {
            let error = seed(wrong).expect_err(wrong);
            assert!(error.ends_with("to 18446744073709551615"), "{error}");
        }
    }

    #[test]
    fn a_bias_is_an_id_and_a_number() {
        let bias = |token_id, bias| v1::LogitBias { token_id, bias };
        assert_eq!(logit_bias("317:2.5").expect("a bias"), bias(317, 2.5));
        assert_eq!(logit_bias("4: -1").expect("a bias"), bias(4, -1.0));
        for wrong in ["", "317", "317:", ":2", "-1:2", "a:2", "1:b"] {
            let error = logit_bias(wrong).expect_err(wrong).to_string();
            assert!(error.contains("317:2.5"), "{wrong}: {error}");
        }
    }
}
