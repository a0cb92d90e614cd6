//! Sampling parameters on the wire.

use speculation::sampling::SamplingParams;

use crate::status::BadField;
use crate::v1;

/// Most entries of `logit_bias`.
pub const MAX_LOGIT_BIAS: usize = 1_024;
/// Most entries of `banned_token_ids`.
pub const MAX_BANNED: usize = 4_096;
/// Most entries of `allowed_token_ids`.
pub const MAX_ALLOWED: usize = 65_536;
/// Most entries of `end_token_ids`.
pub const MAX_END_TOKENS: usize = 64;

/// Reads sampling parameters; what is absent takes its default.
///
/// # Errors
/// Names the first field out of range.
pub fn from_wire(
    wire: Option<v1::SamplingParams>,
    end_tokens: Vec<u32>,
    vocab_size: u32,
) -> Result<SamplingParams, BadField> {
    let wire = wire.unwrap_or_default();
    for (field, found, limit) in [
        ("logit_bias", wire.logit_bias.len(), MAX_LOGIT_BIAS),
        ("banned_token_ids", wire.banned_token_ids.len(), MAX_BANNED),
        (
            "allowed_token_ids",
            wire.allowed_token_ids.len(),
            MAX_ALLOWED,
        ),
        ("end_token_ids", end_tokens.len(), MAX_END_TOKENS),
    ] {
        BadField::at_most(field, found, limit, "entries")?;
    }
    let defaults = SamplingParams::default();
    let params = SamplingParams {
        temperature: wire.temperature.unwrap_or(defaults.temperature),
        top_k: wire.top_k,
        top_p: wire.top_p.unwrap_or(defaults.top_p),
        min_p: wire.min_p,
        repetition_penalty: wire
            .repetition_penalty
            .unwrap_or(defaults.repetition_penalty),
        presence_penalty: wire.presence_penalty,
        frequency_penalty: wire.frequency_penalty,
        logit_bias: wire
            .logit_bias
            .iter()
            .map(|bias| (bias.token_id, bias.bias))
            .collect(),
        banned_tokens: wire.banned_token_ids,
        allowed_tokens: wire.allowed_token_ids,
        end_tokens,
        min_tokens: wire.min_tokens,
    };
    params.validate(vocab_size)?;
    Ok(params)
}

/// Writes sampling parameters; the end tokens travel beside them.
pub fn to_wire(params: &SamplingParams) -> v1::SamplingParams {
    let bias = |&(token_id, bias): &(u32, f32)| v1::LogitBias { token_id, bias };
    v1::SamplingParams {
        temperature: Some(params.temperature),
        top_k: params.top_k,
        top_p: Some(params.top_p),
        min_p: params.min_p,
        repetition_penalty: Some(params.repetition_penalty),
        presence_penalty: params.presence_penalty,
        frequency_penalty: params.frequency_penalty,
        logit_bias: params.logit_bias.iter().map(bias).collect(),
        banned_token_ids: params.banned_tokens.clone(),
        allowed_token_ids: params.allowed_tokens.clone(),
        min_tokens: params.min_tokens,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_survive_the_wire() {
        let params = SamplingParams {
            temperature: 0.7,
            top_k: 5,
            top_p: 0.9,
            min_p: 0.05,
            repetition_penalty: 1.1,
            presence_penalty: 0.2,
            frequency_penalty: 0.3,
            logit_bias: vec![(3, -1.5)],
            banned_tokens: vec![4],
            allowed_tokens: vec![1, 2, 3],
            end_tokens: vec![2],
            min_tokens: 6,
        };
        assert_eq!(from_wire(Some(to_wire(&params)), vec![2], 10), Ok(params));
        assert_eq!(from_wire(None, vec![], 10), Ok(SamplingParams::default()));
    }

    #[test]
    fn long_lists_are_refused_by_name() {
        for (field, most) in [
            ("logit_bias", 1_024),
            ("banned_token_ids", 4_096),
            ("allowed_token_ids", 65_536),
            ("end_token_ids", 64),
        ] {
            let read = |entries| {
                let of = |name| vec![0; if name == field { entries } else { 0 }];
                let bias = v1::LogitBias::default();
                let wire = v1::SamplingParams {
                    logit_bias: vec![bias; of("logit_bias").len()],
                    banned_token_ids: of("banned_token_ids"),
                    allowed_token_ids: of("allowed_token_ids"),
                    ..Default::default()
                };
                from_wire(Some(wire), of("end_token_ids"), 10)
            };
            let error = read(most + 1).expect_err("too long");
            let found = most + 1;
            assert_eq!(
                error.to_string(),
                format!("{field}: {found} entries, expected at most {most}")
            );
            let taken = read(most).err();
            assert!(taken.is_none_or(|error| !error.problem.contains("entries")));
        }
    }
}
