//! Flags that say how tokens are drawn, and when the output ends.

use anyhow::{Result, anyhow};
use clap::builder::NonEmptyStringValueParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use wire::sampling::{FIELDS, SamplingField, SamplingKind};
use wire::v1;

use super::method::as_sentence;

/// How tokens are drawn, and when the output ends; what is not given is left to the coordinator.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Sampling")]
pub(crate) struct SamplingArgs {
    /// Most output tokens; what the model's context leaves if not given.
    #[arg(long, value_name = "N")]
    max_tokens: Option<u32>,
    #[command(flatten)]
    params: SamplingFlags,
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
    /// Holds the output to the JSON Schema in this file, whatever drafts it.
    #[arg(long, value_name = "FILE", value_parser = schema, group = "grammar", hide_short_help = true)]
    json_schema: Option<String>,
    /// Holds the output to a regular expression.
    #[arg(long, value_name = "REGEX", value_parser = NonEmptyStringValueParser::new(), group = "grammar", hide_short_help = true)]
    regex: Option<String>,
    /// Holds the output to this text, or one of several if it is given several times.
    #[arg(long, value_name = "TEXT", group = "grammar", hide_short_help = true)]
    choice: Vec<String>,
}

impl SamplingArgs {
    /// Writes what is given to `request`.
    pub(crate) fn apply(&self, request: &mut v1::GenerateRequest) {
        request.max_tokens = self.max_tokens;
        let grammar = v1::Grammar {
            json_schema: self.json_schema.clone().unwrap_or_default(),
            regex: self.regex.clone().unwrap_or_default(),
            choice: self.choice.clone(),
            lark: String::new(),
        };
        request.sampling = Some(v1::SamplingParams {
            grammar: Some(grammar).filter(|grammar| *grammar != v1::Grammar::default()),
            ..self.params.0.clone()
        });
        request.seed = self.seed;
        request.stop.clone_from(&self.stop);
        request.stop_token_ids.clone_from(&self.stop_token_ids);
        request.ignore_eos = self.ignore_eos;
    }
}

/// The parameters in the table of sampling parameters.
#[derive(Clone, Debug, Default)]
struct SamplingFlags(v1::SamplingParams);

/// Returns the flag of `field`.
fn flag(field: &'static SamplingField) -> Arg {
    let arg = Arg::new(field.name)
        .long(field.name.replace('_', "-"))
        .value_name(field.placeholder)
        .hide_short_help(field.name != "temperature");
    let help = as_sentence(field.help);
    let list = |arg: Arg| arg.action(ArgAction::Append).value_delimiter(',');
    match field.kind {
        SamplingKind::Number((least, most), _) => arg
            .help(format!("{help}. {least} to {most}"))
            .value_parser(value_parser!(f32)),
        SamplingKind::Count(..) => arg.help(help).value_parser(value_parser!(u32)),
        SamplingKind::TokenIds(..) => list(arg).help(help).value_parser(value_parser!(u32)),
        SamplingKind::Biases(..) => list(arg)
            .help(format!("{help}: `317:2.5,42:-1`"))
            .value_parser(logit_bias),
    }
}

impl Args for SamplingFlags {
    fn augment_args(command: Command) -> Command {
        command.args(FIELDS.iter().map(flag))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SamplingFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut args = Self::default();
        args.update_from_arg_matches(matches)?;
        Ok(args)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        let Self(params) = self;
        for &SamplingField { name, kind, .. } in &FIELDS {
            match kind {
                SamplingKind::Number(_, set) => set(params, matches.get_one(name).copied()),
                SamplingKind::Count(_, set) => {
                    set(params, matches.get_one(name).copied().unwrap_or_default());
                }
                SamplingKind::TokenIds(_, set) => set(params, all(matches, name)),
                SamplingKind::Biases(_, set) => set(params, all(matches, name)),
            }
        }
        Ok(())
    }
}

/// Returns all values that were given of the flag `name`.
fn all<T: Copy + Send + Sync + 'static>(matches: &ArgMatches, name: &str) -> Vec<T> {
    let given = matches.get_many(name).into_iter().flatten();
    given.copied().collect()
}

/// Reads the text of a file.
fn file(path: &str) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| error.to_string())
}

/// Reads a file that holds a JSON Schema. An empty one would hold the output to nothing.
fn schema(path: &str) -> Result<String, String> {
    let text = file(path)?;
    if text.trim().is_empty() {
        return Err("the file is empty, expected a JSON Schema".to_owned());
    }
    Ok(text)
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
