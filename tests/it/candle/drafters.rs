//! Models that candle computes as drafters only.

use std::fs;
use std::sync::Arc;

use model::Model;
use model::progress::ProgressLines;
use model::source::ServedModel;
use net::fault::in_one_line;
use outrider_tests::candle::DRAFTERS;
use outrider_tests::contract::forward;
use speculation::ports::LanguageModel;
use speculation::real::argmax;
use speculation::verification::AcceptanceLabel;
use tempfile::TempDir;
use verifier::VerifierConfig;
use wire::v1::TokenIds;
use wire::v1::generate_request::Prompt;

use super::{load, served, source, write};
use crate::client::{With, generate, request};
use crate::cluster::Cluster;
use crate::drafter::learned::head_of;

/// What a model that gives the last row only drafts after some of its drafts were rejected is what it computes from the
/// beginning of the text. The target has nearly its weights, so that it chooses the same token at most positions.
#[tokio::test]
async fn greedy_drafts_are_what_the_draft_model_chooses_after_the_whole_text() {
    for family in DRAFTERS {
        let mut model = served(family, 7).model;
        let cluster = Cluster::of(served(family, 7), nearly(family, 7)).await;
        let prompt: Vec<u32> = (0..40).map(|at| 300 + at * at % 700).collect();
        let mut requested = request("", 60).temperature(0.0).draft_len(5);
        let ids = prompt.clone();
        requested.prompt = Some(Prompt::TokenIds(TokenIds { ids }));
        requested.set("accept_at", "coordinator");
        requested.report_rounds = true;
        requested.report_distributions = true;
        let answer = generate(&cluster.coordinator, requested.ignoring_eos()).await;
        let (mut accepted, mut rejected) = (0, 0);
        for round in &answer.rounds {
            let mut text = prompt.clone();
            text.extend(&answer.tokens[..round.base_len as usize]);
            let distributions = round.distributions.as_ref().expect("distributions");
            for &drafted in &distributions.draft_token_ids {
                let mut cache = model.new_cache();
                let last = text.len() - 1;
                let (row, _) = forward(&mut model, &mut cache, &text, &[], last).expect("a row");
                assert_eq!(argmax(&row), drafted as usize, "{family}, {}", text.len());
                text.push(drafted);
            }
            accepted += round.accepted;
            rejected += round.drafted - round.accepted;
        }
        assert!(
            accepted > 5 && rejected > 5,
            "{family}: {accepted}, {rejected}"
        );
    }
}

/// The model of `family` and `seed`, of which every number is a little larger or smaller.
fn nearly(family: &str, seed: u64) -> ServedModel<Model> {
    let folder = TempDir::new().expect("a folder");
    write(folder.path(), family, seed);
    let path = folder.path().join("model.safetensors");
    let mut file = fs::read(&path).expect("read");
    // Its header tells its own length in front of itself.
    let header = u64::from_le_bytes(*file.first_chunk().expect("a length")) as usize;
    let (numbers, _) = file[8 + header..].as_chunks_mut::<4>();
    for (at, number) in numbers.iter_mut().enumerate() {
        let change = [0.75, 1.0, 1.25][at % 3];
        *number = (f32::from_le_bytes(*number) * change).to_le_bytes();
    }
    fs::write(path, file).expect("written");
    load(&folder)
}

#[test]
fn models_that_draft_only_are_refused_as_targets_by_name() {
    for family in DRAFTERS {
        let folder = TempDir::new().expect("a folder");
        write(folder.path(), family, 7);
        let config = VerifierConfig {
            model: source(&folder),
            ..VerifierConfig::default()
        };
        let observer = Arc::new(ProgressLines::default());
        let loaded = verifier::load(&config, &(observer as _)).map(drop);
        let inspected = verifier::inspect(&config).map(drop);
        for refused in [loaded, inspected] {
            let words = in_one_line(&refused.expect_err("refused"));
            let expected = format!("engine candle computes {family} only as a drafter");
            assert!(words.contains(&expected), "{words}");
        }
    }
}

/// Heads read hidden states, which candle's models of these families do not give. One that is named for such a model is
/// refused, one that lies beside its weights is left alone.
#[test]
fn heads_of_models_without_hidden_states_are_refused_by_name() {
    let folder = TempDir::new().expect("a folder");
    write(folder.path(), "qwen3_moe", 7);
    let head = head_of(&load(&folder), AcceptanceLabel::Coupled);
    let file = folder.path().join("head-coupled.safetensors");
    head.save(&file).expect("written");
    write(folder.path(), "phi", 7);
    let served = load(&folder);
    assert!(served.heads.is_empty());
    let inspected = source(&folder).inspect().expect("in order").expect("here");
    for refused in [served.fit(head.clone()), inspected.fit(head)] {
        let words = refused.expect_err("refused").to_string();
        assert!(
            words.contains("the draft model gives no hidden states"),
            "{words}"
        );
    }
}
