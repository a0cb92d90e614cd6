//! `outrider score`: how likely a model finds a text, position by position.

mod input;
mod scoring;

use std::io::{BufWriter, Write, stdout};

use anyhow::bail;
use clap::{ArgGroup, Args};
use model::source::{ModelSource, SourceError};
use model::tokenizer::Tokenizer;
use model::{Checkpoint, computation};
use serde_json::json;
use speculation::TokenId;
use speculation::logprobs::Likely;
use speculation::ports::LanguageModel;

use crate::failure::{self, AlreadyReported, one_line};
use crate::progress::Bars;
use input::ScoreInput;
use scoring::{ScoreSummary, ScoredPosition};

/// Arguments of `outrider score`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("input").required(true).args(["text", "token_ids"])))]
pub(crate) struct ScoreArgs {
    /// A checkpoint's folder, a GGUF file, a name of the hub (`org/name[@revision][:file]`), or embedded:target,
    /// embedded:draft or embedded:small.
    #[arg(long, value_name = "MODEL", default_value = "embedded:target")]
    model: String,
    /// Text to be scored, tokenised as a prompt is.
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
    /// Token ids to be scored, taken as they are; the model needs no tokenizer then.
    #[arg(long, value_name = "ID,...", value_delimiter = ',')]
    token_ids: Option<Vec<TokenId>>,
    /// What an encoder-decoder model's decoder says, start token included: this is scored, and --text or
    /// --token-ids goes to the encoder.
    #[arg(long, value_name = "ID,...", value_delimiter = ',')]
    decoder_ids: Option<Vec<TokenId>>,
    /// How many of the most likely next tokens are told at each position.
    #[arg(long, value_name = "N", default_value_t = 5)]
    top: usize,
    /// Format the weights are computed in: q8_0, q4_k or f32 on a CPU; bf16, f16, f32, q8_0 or q4_k on a GPU; auto is
    /// the first of these, but q4_k for a file that is mostly in it.
    #[arg(long, value_name = "FORMAT", default_value = computation::AUTOMATIC)]
    dtype: String,
    /// Format that keys and values are held in: q8_0, f16 or f32 on a CPU, on a GPU that of the weights; auto is f32
    /// beside weights in f32, and f16 beside others.
    #[arg(long, value_name = "FORMAT", default_value = computation::AUTOMATIC)]
    kv_dtype: String,
    /// Where the model is computed: cpu, or cuda or cuda:N for a GPU.
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: String,
    /// Prints one JSON object: `{positions: [{token_id, logprob, top: [{token_id, logprob}]}], perplexity}`.
    /// A failure is {"error": {"message": ...}}.
    #[arg(long)]
    json: bool,
}

/// What positions are told to, in order.
trait ScoreReport {
    fn position(&mut self, at: usize, position: &ScoredPosition) -> anyhow::Result<()>;
    fn end(&mut self, summary: ScoreSummary) -> anyhow::Result<()>;
    /// Ends it early; gives the error back, as told if it is.
    fn fail(&mut self, error: anyhow::Error) -> anyhow::Error {
        error
    }
}

/// Runs the command to its end.
///
/// # Errors
/// Names the flag or the file that is wrong.
pub(crate) fn run(args: &ScoreArgs) -> anyhow::Result<()> {
    let source = ModelSource {
        dtype: args.dtype.clone(),
        kv_dtype: args.kv_dtype.clone(),
        device: args.device.clone(),
        ..ModelSource::new(&args.model)
    };
    // Refused before anything is read.
    source.computation()?;
    let checkpoint = source.open_observed(&Bars::on_stderr().observer())?;
    let input = ScoreInput::read(args, checkpoint.config(), &checkpoint)?;
    let vocab_size = checkpoint.config().vocab_size;
    if args.top > vocab_size {
        bail!(
            "--top: {} is out of range, the model's vocabulary has {vocab_size} tokens",
            args.top
        );
    }
    let loaded = checkpoint.load(source.computation_of(&checkpoint)?);
    let mut model = loaded.map_err(|source| SourceError::Checkpoint {
        path: args.model.clone(),
        source,
    })?;
    let mut out = BufWriter::new(stdout().lock());
    let mut report = report(args, &checkpoint, &mut out)?;
    let mut cache = model.new_cache();
    if !input.source.is_empty() {
        model.encode(&mut cache, &input.source)?;
    }
    let requested = (&input.scored[..], scoring::step(vocab_size), args.top);
    let scored = scoring::score(&mut model, cache, requested, |at, position| {
        report.position(at, position)
    });
    let ended = match scored {
        Ok(summary) => report.end(summary),
        Err(error) => Err(report.fail(error)),
    };
    drop(report);
    out.flush()?;
    ended
}

fn report<'a>(
    args: &ScoreArgs,
    checkpoint: &Checkpoint,
    out: &'a mut impl Write,
) -> anyhow::Result<Box<dyn ScoreReport + 'a>> {
    if args.json {
        let is_begun = false;
        return Ok(Box::new(ScoreJson { out, is_begun }));
    }
    let has_tokenizer = checkpoint.tokenizer_json().is_some();
    let tokenizer = has_tokenizer.then(|| checkpoint.tokenizer()).transpose()?;
    Ok(Box::new(ScoreTable { out, tokenizer }))
}

/// Writes `{positions: [...], perplexity}`.
struct ScoreJson<'a, W> {
    out: &'a mut W,
    /// Whether the object was begun.
    is_begun: bool,
}

impl<W: Write> ScoreReport for ScoreJson<'_, W> {
    fn position(&mut self, _: usize, position: &ScoredPosition) -> anyhow::Result<()> {
        let is_begun = std::mem::replace(&mut self.is_begun, true);
        let before = if is_begun { "," } else { "{\"positions\":[" };
        self.out.write_all(before.as_bytes())?;
        let top = position.top.iter();
        let top = top.map(|it| json!({ "token_id": it.token, "logprob": it.logprob }));
        let (token_id, logprob) = (position.token_id, position.logprob);
        let top: Vec<_> = top.collect();
        let told = json!({ "token_id": token_id, "logprob": logprob, "top": top });
        Ok(write!(self.out, "{told}")?)
    }

    fn end(&mut self, summary: ScoreSummary) -> anyhow::Result<()> {
        let perplexity = serde_json::to_string(&summary.perplexity())?;
        Ok(writeln!(self.out, "],\"perplexity\":{perplexity}}}")?)
    }

    fn fail(&mut self, error: anyhow::Error) -> anyhow::Error {
        if !self.is_begun {
            return error;
        }
        // The object that was begun tells it, without its opening brace.
        let rest = &failure::object(&one_line(&error))[1..];
        match writeln!(self.out, "],{rest}") {
            Ok(()) => AlreadyReported(error).into(),
            Err(_) => error,
        }
    }
}

/// Writes lines, with the tokens' text where there is a tokenizer.
struct ScoreTable<'a, W> {
    out: &'a mut W,
    tokenizer: Option<Tokenizer>,
}

impl<W: Write> ScoreTable<'_, W> {
    /// Returns a token as it is written, in quotes; its id where that is all there is.
    fn text(&self, id: TokenId) -> String {
        let Some(tokenizer) = &self.tokenizer else {
            return id.to_string();
        };
        // Special tokens, and ids beyond the tokenizer's, have no text.
        match tokenizer.decode(&[id], false) {
            Ok(text) if !text.is_empty() => format!("{text:?}"),
            _ => format!("<{id}>"),
        }
    }

    fn likely(&self, likely: &Likely) -> String {
        format!("{} {:.2}", self.text(likely.token), likely.logprob)
    }
}

impl<W: Write> ScoreReport for ScoreTable<'_, W> {
    fn position(&mut self, at: usize, position: &ScoredPosition) -> anyhow::Result<()> {
        if at == 0 {
            writeln!(
                self.out,
                "position      id  {:<16}  logprob  most likely next, ln of the probability",
                "token"
            )?;
        }
        let logprob = match position.logprob {
            Some(logprob) => format!("{logprob:.3}"),
            None => "-".to_owned(),
        };
        let next: Vec<_> = position.top.iter().map(|top| self.likely(top)).collect();
        let line = format!(
            "{:>8} {:>7}  {:<16} {logprob:>8}  {}",
            at,
            position.token_id,
            self.text(position.token_id),
            next.join("  ")
        );
        Ok(writeln!(self.out, "{}", line.trim_end())?)
    }

    fn end(&mut self, summary: ScoreSummary) -> anyhow::Result<()> {
        let Some(perplexity) = summary.perplexity() else {
            return Ok(writeln!(
                self.out,
                "no perplexity: one token has none before it"
            )?);
        };
        Ok(writeln!(
            self.out,
            "perplexity {perplexity:.4} over {} tokens, {:.4} nats a token",
            summary.tokens,
            -summary.logprob / summary.tokens as f64
        )?)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn an_object_that_was_begun_ends_with_the_error() {
        let mut out = Vec::new();
        let mut json = ScoreJson {
            out: &mut out,
            is_begun: false,
        };
        let untouched = json.fail(anyhow::anyhow!("at once"));
        assert!(!untouched.is::<AlreadyReported>());
        let position = ScoredPosition {
            token_id: 7,
            logprob: None,
            top: Vec::new(),
        };
        json.position(0, &position).expect("written");
        assert!(
            json.fail(anyhow::anyhow!("too late"))
                .is::<AlreadyReported>()
        );
        let reported: Value = serde_json::from_slice(&out).expect("one object");
        assert_eq!(reported["positions"][0]["token_id"], 7);
        assert_eq!(reported["error"]["message"], "too late");
    }
}
