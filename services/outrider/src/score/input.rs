//! What is scored, read from the flags and checked against the model.

use anyhow::{anyhow, bail, ensure};
use model::source::SourceError;
use model::{Checkpoint, ModelConfig};
use speculation::TokenId;

use super::ScoreArgs;

/// Tokens for the model.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ScoreInput {
    /// For the encoder; empty if the model has none.
    pub(super) source: Vec<TokenId>,
    /// Whose positions are scored.
    pub(super) scored: Vec<TokenId>,
}

impl ScoreInput {
    /// Reads what is asked of a model of `config`, which `checkpoint` holds; tokenises where text is given.
    ///
    /// # Errors
    /// Names the flag, and what of it the model cannot take.
    pub(super) fn read(
        args: &ScoreArgs,
        config: &ModelConfig,
        checkpoint: &Checkpoint,
    ) -> anyhow::Result<Self> {
        let (flag, tokens) = match (&args.text, &args.token_ids) {
            (Some(text), _) => ("--text", tokens(text, args, checkpoint)?),
            (None, Some(ids)) => ("--token-ids", ids.clone()),
            (None, None) => bail!("one of --text and --token-ids is needed"),
        };
        let check = |flag: &str, tokens: &[TokenId]| {
            ensure!(!tokens.is_empty(), "{flag}: there is no token in it");
            let vocab_size = config.vocab_size;
            if let Some(id) = tokens.iter().find(|&&id| id as usize >= vocab_size) {
                bail!(
                    "{flag}: token {id} is out of range, the model's vocabulary has {vocab_size} tokens"
                );
            }
            let (count, context_len) = (tokens.len(), config.context_len);
            ensure!(
                count <= context_len,
                "{flag}: {count} tokens, the model's context is {context_len}"
            );
            Ok(())
        };
        check(flag, &tokens)?;
        match (&args.decoder_ids, config.encoder) {
            (None, None) => {
                let (source, scored) = (Vec::new(), tokens);
                Ok(Self { source, scored })
            }
            (Some(_), None) => bail!("--decoder-ids: '{}' has no encoder", args.model),
            (None, Some(encoder)) => bail!(
                "--decoder-ids: '{}' has an encoder, which {flag} feeds; give the decoder's tokens here, \
                 the start token {} first",
                args.model,
                encoder.decoder_start_token_id
            ),
            (Some(scored), Some(_)) => {
                check("--decoder-ids", scored)?;
                let (source, scored) = (tokens, scored.clone());
                Ok(Self { source, scored })
            }
        }
    }
}

/// Returns the tokens of `text`, special ones included.
fn tokens(text: &str, args: &ScoreArgs, checkpoint: &Checkpoint) -> anyhow::Result<Vec<TokenId>> {
    let tokenizer = checkpoint
        .tokenizer()
        .map_err(|error| anyhow!("--text: {error}; --token-ids needs none"))?;
    // Ids may have gaps, so their number is not their bound.
    let ids = tokenizer.get_vocab(true).into_values();
    let tokens = ids.max().map_or(0, |id| id as usize + 1);
    let rows = checkpoint.config().vocab_size;
    if tokens > rows {
        let path = args.model.clone();
        return Err(SourceError::VocabularyTooLarge { path, tokens, rows }.into());
    }
    let encoding = tokenizer.encode_fast(text, true);
    let encoding = encoding.map_err(|error| anyhow!("--text: {error}"))?;
    Ok(encoding.get_ids().to_vec())
}

#[cfg(test)]
mod tests {
    use model::config::EncoderConfig;

    use super::*;

    /// Returns what a model with or without an encoder is given of the flags, all ids below 10.
    fn read(encoder: bool, decoder_ids: Option<&[TokenId]>) -> Result<ScoreInput, String> {
        let encoder = encoder.then_some(EncoderConfig {
            layers: 1,
            relative_buckets: 8,
            relative_max_distance: 16,
            decoder_start_token_id: 9,
        });
        let config = ModelConfig {
            vocab_size: 10,
            context_len: 4,
            encoder,
            ..ModelConfig::llama()
        };
        let checkpoint = Checkpoint::random(ModelConfig::llama(), 1).expect("weights");
        let args = ScoreArgs {
            model: "m".into(),
            text: None,
            token_ids: Some(vec![1, 2, 3]),
            decoder_ids: decoder_ids.map(<[_]>::to_vec),
            top: 0,
            dtype: String::new(),
            kv_dtype: String::new(),
            device: String::new(),
            json: false,
        };
        ScoreInput::read(&args, &config, &checkpoint).map_err(|error| error.to_string())
    }

    #[test]
    fn positions_are_the_decoders() {
        let input = |source: &[TokenId], scored: &[TokenId]| {
            let [source, scored] = [source, scored].map(<[_]>::to_vec);
            Ok(ScoreInput { source, scored })
        };
        assert_eq!(read(false, None), input(&[], &[1, 2, 3]));
        assert_eq!(read(true, Some(&[9, 4])), input(&[1, 2, 3], &[9, 4]));
    }

    #[test]
    fn ids_that_do_not_suit_the_model_are_refused() {
        let long = "5 tokens, the model's context is 4";
        for (encoder, ids, part) in [
            (false, Some(&[9, 4][..]), "no encoder"),
            (true, None, "start token 9 first"),
            (true, Some(&[]), "no token"),
            (true, Some(&[9, 10]), "token 10 is out of range"),
            (true, Some(&[9; 5]), long),
        ] {
            let said = read(encoder, ids).expect_err("refused");
            assert!(
                said.contains("--decoder-ids") && said.contains(part),
                "{said}"
            );
        }
    }
}
