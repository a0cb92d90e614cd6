//! `outrider-bench bigram`: the table that Max-Gram goes on with where it has nothing to copy.

mod count;
mod text;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::{Args, Subcommand};
use model::bigram::BigramFile;
use model::source::ModelSource;
use model::tokenizer::{Tokenizer, vocabulary_fingerprint};
use model::{Checkpoint, embedded};

use outrider::progress;
use text::Documents;

/// Documents tokenised at once.
const BATCH: usize = 512;

/// Arguments of `outrider-bench bigram`.
#[derive(Debug, Args)]
pub(crate) struct BigramArgs {
    #[command(subcommand)]
    command: BigramCommand,
}

#[derive(Debug, Subcommand)]
enum BigramCommand {
    /// Counts, in text, which token follows each token most often, and writes the table that a drafter
    /// takes as `drafter.bigram`.
    ///
    /// Use text of the kind that will be generated, some megabytes of it. The same text and tokenizer
    /// give the same file.
    #[command(
        after_help = "Example:\n  outrider-bench bigram build --text corpus.jsonl --tokenizer ./my-model --out bigram.safetensors"
    )]
    Build(BuildArgs),
}

#[derive(Debug, Args)]
struct BuildArgs {
    /// Text: files that end in `.jsonl`, one JSON object with a `text` a line; or plain text, one document
    /// a file.
    #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
    text: Vec<PathBuf>,
    /// Whose vocabulary: a model as `--model` takes it, or the folder of a `tokenizer.json`; or `embedded`,
    /// that of the built-in pair.
    #[arg(long, value_name = "SOURCE", default_value = "embedded")]
    tokenizer: String,
    /// End tokens: the first of them is counted after each document. Those of the model by default.
    #[arg(long, value_name = "ID")]
    end_token: Vec<u32>,
    /// Where the table goes.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

/// Runs a command to its end.
///
/// # Errors
/// Names the flag or the file that is wrong.
pub(crate) fn run(args: &BigramArgs) -> anyhow::Result<()> {
    match &args.command {
        BigramCommand::Build(args) => build(args),
    }
}

fn build(args: &BuildArgs) -> anyhow::Result<()> {
    let (tokenizer, of_model) = vocabulary(&args.tokenizer)?;
    // Ids may have gaps, so their number is not their bound.
    let ids = tokenizer.get_vocab(true).into_values();
    let vocab_size = ids.max().map_or(0, |id| id as usize + 1);
    let eos_token_ids = if args.end_token.is_empty() {
        of_model
    } else {
        args.end_token.clone()
    };
    let Some(&end) = eos_token_ids.first() else {
        bail!(
            "--end-token: '{}' holds no config.json that tells the model's end tokens, name them",
            args.tokenizer
        );
    };
    if let Some(id) = eos_token_ids.iter().find(|&&id| id as usize >= vocab_size) {
        bail!("--end-token: {id} is out of range, the vocabulary has {vocab_size} tokens");
    }
    let (mut tokens, mut documents) = (0_u64, 0_u64);
    let mut failure = None;
    let mut texts = Documents::open(&args.text)?;
    let streams = std::iter::from_fn(|| {
        let encoded = batch(&tokenizer, &mut texts, end);
        let shown = progress::show(&format!("{documents} documents, {tokens} tokens"));
        match encoded.and_then(|batch| shown.map(|()| batch).map_err(Into::into)) {
            Ok(batch) if batch.is_empty() => None,
            Ok(batch) => {
                documents += batch.len() as u64;
                tokens += batch.iter().map(|stream| stream.len() as u64).sum::<u64>();
                Some(batch)
            }
            Err(error) => {
                failure = Some(error);
                None
            }
        }
    });
    let table = count::count(streams.flatten(), vocab_size);
    progress::clear()?;
    if let Some(error) = failure {
        return Err(error);
    }
    ensure!(tokens > documents, "--text: there is no text in it");
    let file = BigramFile {
        table: table?,
        vocab_fingerprint: vocabulary_fingerprint(&tokenizer),
        eos_token_ids,
    };
    file.save(&args.out).context("--out")?;
    anstream::println!(
        "{}: {vocab_size} entries from {tokens} tokens in {documents} documents",
        args.out.display()
    );
    Ok(())
}

/// The token streams of the next documents, each with the end token; none at the end.
fn batch(tokenizer: &Tokenizer, texts: &mut Documents, end: u32) -> anyhow::Result<Vec<Vec<u32>>> {
    let texts: Vec<String> = texts.take(BATCH).collect::<Result<_, _>>()?;
    let encoded = tokenizer.encode_batch_fast(texts, true);
    let encoded = encoded.map_err(|error| anyhow::anyhow!("--text: {error}"))?;
    let ended = |encoding: tokenizers::Encoding| [encoding.get_ids(), &[end]].concat();
    Ok(encoded.into_iter().map(ended).collect())
}

/// The tokenizer of `source`, and the end tokens of the model beside it.
fn vocabulary(source: &str) -> anyhow::Result<(Tokenizer, Vec<u32>)> {
    if source == "embedded" {
        let target = embedded::target().context("--tokenizer")?;
        return Ok((target.tokenizer()?, target.eos_token_ids()));
    }
    let folder = Path::new(source);
    let file = folder.join("tokenizer.json");
    if file.is_file() {
        let tokenizer = Tokenizer::from_file(&file)
            .map_err(|error| anyhow::anyhow!("--tokenizer: {}: {error}", file.display()))?;
        // A folder with nothing but a tokenizer will do.
        let ends = Checkpoint::open(folder).map(|checkpoint| checkpoint.eos_token_ids());
        return Ok((tokenizer, ends.unwrap_or_default()));
    }
    let model = ModelSource::new(source).open();
    let model = model.context("--tokenizer: neither a folder with a tokenizer.json nor a model")?;
    let tokenizer = model.tokenizer().context("--tokenizer")?;
    Ok((tokenizer, model.eos_token_ids()))
}
