//! Sampling parameters on the wire, and the one table of them.
//!
//! Flags of the command line, JSON fields, the description of the HTTP API and the reference page are made of the table.
//! A parameter is added by its field in `proto/outrider/v1/common.proto` and in [`SamplingParams`], which holds its
//! default and its check, by an entry of [`FIELDS`] here, and by the code where it acts.

use SamplingKind::{Biases, Count, Number, TokenIds};
use speculation::sampling::SamplingParams;

use crate::status::BadField;
use crate::{grammar, v1};

/// Most entries of `logit_bias`.
pub const MAX_LOGIT_BIAS: usize = 1_024;
/// Most entries of `banned_token_ids`.
pub const MAX_BANNED: usize = 4_096;
/// Most entries of `allowed_token_ids`.
pub const MAX_ALLOWED: usize = 65_536;
/// Most entries of `end_token_ids`.
pub const MAX_END_TOKENS: usize = 64;

/// A sampling parameter, by the name that every front has for it.
#[derive(Debug)]
pub struct SamplingField {
    /// Name of the field in [`v1::SamplingParams`], and in JSON.
    pub name: &'static str,
    /// What stands for its value in help.
    pub placeholder: &'static str,
    /// One line.
    pub help: &'static str,
    /// What it may be, and how it is written to a request.
    pub kind: SamplingKind,
}

/// What a sampling parameter may be, and how it is written to a request.
#[derive(Clone, Copy, Debug)]
pub enum SamplingKind {
    /// A number between two others, these included unless the help says otherwise; it may be left out.
    Number((f64, f64), fn(&mut v1::SamplingParams, Option<f32>)),
    /// A whole number, at most this.
    Count(u32, fn(&mut v1::SamplingParams, u32)),
    /// Token ids, at most so many.
    TokenIds(usize, fn(&mut v1::SamplingParams, Vec<u32>)),
    /// Changes to the logits of single tokens, at most so many.
    Biases(usize, fn(&mut v1::SamplingParams, Vec<v1::LogitBias>)),
}

/// Every sampling parameter.
pub static FIELDS: [SamplingField; 11] = [
    SamplingField {
        name: "temperature",
        placeholder: "T",
        help: "divides the logits: 0 is greedy; 1 by default, 0.7 in `chat`",
        kind: Number((0.0, 100.0), |to, it| to.temperature = it),
    },
    SamplingField {
        name: "top_p",
        placeholder: "P",
        help: "keeps the most likely tokens that together reach this probability, above 0",
        kind: Number((0.0, 1.0), |to, it| to.top_p = it),
    },
    SamplingField {
        name: "top_k",
        placeholder: "K",
        help: "keeps the K most likely tokens; 0 keeps all",
        kind: Count(i32::MAX as u32, |to, it| to.top_k = it),
    },
    SamplingField {
        name: "min_p",
        placeholder: "P",
        help: "keeps tokens at least this fraction as likely as the most likely one",
        kind: Number((0.0, 1.0), |to, it| to.min_p = it.unwrap_or_default()),
    },
    SamplingField {
        name: "repetition_penalty",
        placeholder: "R",
        help: "divides the positive and multiplies the negative logits of tokens that stand in prompt or output: \
               above 1 repeats less; 1, no change, if not given",
        kind: Number((0.01, 100.0), |to, it| to.repetition_penalty = it),
    },
    SamplingField {
        name: "presence_penalty",
        placeholder: "P",
        help: "subtracted from the logits of tokens that stand in the output",
        kind: Number((-10_000.0, 10_000.0), |to, it| {
            to.presence_penalty = it.unwrap_or_default();
        }),
    },
    SamplingField {
        name: "frequency_penalty",
        placeholder: "P",
        help: "subtracted from a token's logit once for each time it stands in the output",
        kind: Number((-10_000.0, 10_000.0), |to, it| {
            to.frequency_penalty = it.unwrap_or_default();
        }),
    },
    SamplingField {
        name: "logit_bias",
        placeholder: "ID:BIAS,...",
        help: "added to the logits of single tokens, by token id, -10000 to 10000 each",
        kind: Biases(MAX_LOGIT_BIAS, |to, it| to.logit_bias = it),
    },
    SamplingField {
        name: "banned_token_ids",
        placeholder: "ID,...",
        help: "tokens that are never drawn",
        kind: TokenIds(MAX_BANNED, |to, it| to.banned_token_ids = it),
    },
    SamplingField {
        name: "allowed_token_ids",
        placeholder: "ID,...",
        help: "the only tokens that may be drawn",
        kind: TokenIds(MAX_ALLOWED, |to, it| to.allowed_token_ids = it),
    },
    SamplingField {
        name: "min_tokens",
        placeholder: "N",
        help: "fewest output tokens before an end token may be drawn",
        kind: Count(u32::MAX, |to, it| to.min_tokens = it),
    },
];

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
        grammar: wire.grammar.map(grammar::from_wire).transpose()?,
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
        grammar: params.grammar.clone().map(grammar::to_wire),
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use speculation::constraint::GrammarSpec;

    use super::*;
    use crate::DESCRIPTORS;

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
            min_tokens: 0,
            grammar: Some(GrammarSpec::Regex("a+".to_owned())),
        };
        assert_eq!(from_wire(Some(to_wire(&params)), vec![2], 10), Ok(params));
        assert_eq!(from_wire(None, vec![], 10), Ok(SamplingParams::default()));
    }

    /// A parameter of the protocol that the table lacks is missed here.
    #[test]
    fn the_table_holds_every_field_of_the_message_with_its_bounds() {
        let descriptors = prost_types::FileDescriptorSet::decode(DESCRIPTORS.0);
        let descriptors = descriptors.expect("descriptors").file;
        let mut messages = descriptors.iter().flat_map(|file| &file.message_type);
        let message = messages.find(|message| message.name() == "SamplingParams");
        let fields = &message.expect("the message").field;
        // Fronts have other names for a grammar.
        let declared = fields.iter().map(prost_types::FieldDescriptorProto::name);
        let mut declared: Vec<_> = declared.filter(|&name| name != "grammar").collect();
        let mut listed: Vec<_> = FIELDS.iter().map(|field| field.name).collect();
        declared.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, declared);
        for field in &FIELDS {
            let read = |change: &dyn Fn(&mut v1::SamplingParams)| {
                let mut params = v1::SamplingParams::default();
                change(&mut params);
                assert_ne!(params, v1::SamplingParams::default(), "{}", field.name);
                from_wire(Some(params), vec![], 10)
            };
            let refused = match field.kind {
                Number((least, most), set) => {
                    let inside = f64::midpoint(least, most) + 0.125;
                    for value in [inside, most] {
                        let taken = read(&|to| set(to, Some(value as f32)));
                        assert_eq!(taken.err(), None, "{}", field.name);
                    }
                    for value in [least - 0.001, most * 1.001] {
                        let refused = read(&|to| set(to, Some(value as f32)));
                        assert_eq!(refused.expect_err("out of range").field, field.name);
                    }
                    continue;
                }
                Count(most, set) => {
                    assert_eq!(read(&|to| set(to, most)).err(), None, "{}", field.name);
                    continue;
                }
                TokenIds(most, set) => read(&|to| set(to, vec![1; most + 1])),
                Biases(most, set) => read(&|to| set(to, vec![v1::LogitBias::default(); most + 1])),
            };
            let refused = refused.expect_err("too long");
            assert_eq!(refused.field, field.name);
            assert!(refused.problem.contains("entries"), "{}", refused.problem);
        }
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
