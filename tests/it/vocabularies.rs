//! Drafters of another vocabulary than the target's: they change nothing but how many forwards an output takes.

use model::source::ServedModel;
use model::{Checkpoint, Model, embedded};
use serde_json::{Map, Value, json};
use tonic::Code;
use wire::v1::drafter_client::DrafterClient;
use wire::v1::{GenerateRequest, LearnRequest, PeerDescription, SamplingParams};

use crate::client::{With, generate, request};
use crate::cluster::{Service, config, coordinator, draft, drafter, load, target, verifier};
use crate::errors::{case, each_refused};
use crate::relay::Relay;

const MAX_TOKENS: u32 = 48;

fn asked(temperature: f32) -> GenerateRequest {
    let mut requested = request("Once upon a time", MAX_TOKENS).ignoring_eos();
    let sampling = requested.sampling.get_or_insert_default();
    *sampling = SamplingParams {
        temperature: Some(temperature),
        ..SamplingParams::default()
    };
    requested
}

/// The built-in draft model, of a vocabulary that happens to have the same tokens.
fn renamed() -> ServedModel<Model> {
    let mut renamed = draft();
    renamed.outline.vocab_fingerprint = [9; 32];
    renamed
}

/// A draft model that knows nothing, and whose tokens are bytes.
pub(crate) fn of_bytes() -> ServedModel<Model> {
    let mut unprintable = '\u{100}'..;
    let name = |byte: u8| match byte {
        b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF => char::from(byte),
        _ => unprintable.next().expect("a character"),
    };
    let ids = (0..=255).map(Value::from);
    let names = (0..=255).map(name).map(String::from);
    let mut vocab: Map<String, Value> = names.zip(ids).collect();
    vocab.insert("<|end|>".to_owned(), 256.into());
    let bytes = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false});
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "normalizer": null, "post_processor": null,
        "pre_tokenizer": bytes, "decoder": bytes,
        "model": {"type": "BPE", "byte_fallback": false, "vocab": vocab, "merges": []},
        "added_tokens": [{"id": 256, "content": "<|end|>", "single_word": false, "lstrip": false,
            "rstrip": false, "normalized": false, "special": true}],
    });
    let mut config = embedded::draft().expect("embedded").config().clone();
    config.vocab_size = 257;
    let random = Checkpoint::random(config, 7).expect("random weights");
    load(
        &random.with_tokenizer(tokenizer.to_string().into_bytes()),
        "bytes",
    )
}

async fn pair(draft: ServedModel<Model>) -> (Service, [Service; 2]) {
    let (drafter, _) = drafter(draft).await;
    let (verifier, _) = verifier(target()).await;
    let coordinator = coordinator(config(&[drafter.url()], &[verifier.url()])).await;
    (coordinator, [drafter, verifier])
}

#[tokio::test]
async fn whatever_the_vocabulary_the_tokens_are_the_targets() {
    for (draft, least_accepted) in [(renamed(), MAX_TOKENS / 4), (of_bytes(), 0)] {
        let name = draft.outline.name.clone();
        let (coordinator, _peers) = pair(draft).await;
        for temperature in [0.0, 1.0] {
            let alone = generate(&coordinator, asked(temperature).method("target-only")).await;
            for schedule in ["rounds", "stream"] {
                let requested = asked(temperature).with("schedule", schedule);
                let requested = match schedule {
                    "rounds" => requested.draft_len(4),
                    _ => requested.with("drafting", "model"),
                };
                let found = generate(&coordinator, requested).await;
                let what = format!("{name}, {schedule}, {temperature}");
                assert_eq!(found.tokens, alone.tokens, "{what}");
                assert_eq!(found.text, alone.text, "{what}");
                assert_eq!(found.finished.effective_method, "coupled", "{what}");
                assert_eq!(found.fallbacks(), 0, "{what}: {:?}", found.statistics());
                let accepted = found.statistics().num_accepted_draft_tokens;
                // A drafter that drafts ahead may come too late on a busy machine.
                if schedule == "rounds" {
                    assert!(accepted >= least_accepted, "{what}: {accepted}");
                }
            }
        }
    }
}

/// With the same tokens under another name it drafts what it drafts with its own: the noise of the target's tokens is shared.
#[tokio::test]
async fn what_is_shared_is_drawn_with_the_targets_noise() {
    let (own, _peers) = pair(draft()).await;
    let (other, _others) = pair(renamed()).await;
    let (mut of_own, mut of_other) = (0, 0);
    for seed in 0..8 {
        let requested = || {
            asked(1.0)
                .seed(seed)
                .with("schedule", "rounds")
                .draft_len(3)
        };
        of_own += generate(&own, requested())
            .await
            .statistics()
            .num_accepted_draft_tokens;
        of_other += generate(&other, requested())
            .await
            .statistics()
            .num_accepted_draft_tokens;
    }
    assert!(of_own > 100, "{of_own}");
    assert!(10 * of_other > 8 * of_own, "{of_other} of {of_own}");
}

#[tokio::test]
async fn what_needs_its_distributions_is_refused_by_name() {
    let (coordinator, _peers) = pair(renamed()).await;
    // Until it is heard it might do anything.
    generate(&coordinator, asked(0.0)).await;
    let with = |name: &'static str, value: &'static str| {
        move |requested: &mut GenerateRequest| requested.set(name, value)
    };
    let method = |method: &'static str| {
        move |requested: &mut GenerateRequest| {
            *requested = asked(1.0).method(method);
        }
    };
    let refused = "method | another vocabulary | ask for method coupled";
    each_refused(
        &coordinator,
        vec![
            case(refused, method("rejection")),
            case(refused, method("block")),
            case(refused, method("draft-only")),
            case(refused, method("spec-cascade")),
            case("settings.tree | chains only", with("tree", "alternates:1")),
        ],
    )
    .await;
    // At temperature 0 a draft token is its whole distribution.
    let found = generate(&coordinator, asked(0.0).method("rejection").draft_len(3)).await;
    assert!(found.statistics().num_accepted_draft_tokens > 0);
}

/// One that was started anew has forgotten the target's vocabulary, and is told again.
#[tokio::test]
async fn one_that_forgot_is_told_again() {
    let (first, _) = drafter(renamed()).await;
    let (second, _) = drafter(renamed()).await;
    let (verifier, _) = verifier(target()).await;
    let relay = Relay::start(first.address).await;
    let coordinator = coordinator(config(&[relay.url()], &[verifier.url()])).await;
    let requested = || asked(1.0).with("schedule", "rounds").draft_len(3);
    let before = generate(&coordinator, requested()).await;
    assert!(before.statistics().num_accepted_draft_tokens > 0);
    relay.restarts_as(second.address);
    let accepts = async || {
        let answer = generate(&coordinator, requested()).await;
        assert_eq!(answer.tokens, before.tokens);
        answer.statistics().num_accepted_draft_tokens > 0
    };
    while !accepts().await {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn what_is_no_vocabulary_is_refused_by_its_field() {
    let (drafter, description) = drafter(renamed()).await;
    let learn = async |target: Option<PeerDescription>, json: Vec<u8>| {
        let request = LearnRequest {
            target,
            tokenizer_json: Vec::new(),
        };
        let part = LearnRequest {
            target: None,
            tokenizer_json: json,
        };
        let parts = futures_util::stream::iter([request, part]);
        let mut client = DrafterClient::new(drafter.channel());
        client.learn(parts).await.map(tonic::Response::into_inner)
    };
    let target = |fingerprint| PeerDescription {
        vocab_fingerprint: vec![fingerprint; 32],
        ..description.description.clone()
    };
    let asked = learn(Some(target(1)), Vec::new()).await;
    assert_eq!(asked.expect("an answer").description, None);
    for (target, json, field) in [
        (None, vec![], "target"),
        (Some(target(9)), vec![], "target"),
        (Some(target(1)), b"{}".to_vec(), "tokenizer_json"),
        (Some(target(1)), vec![b'{'; 1 << 20], "tokenizer_json"),
    ] {
        let refused = learn(target, json).await.expect_err(field);
        assert_eq!(refused.code(), Code::InvalidArgument, "{field}");
        assert!(refused.message().starts_with(field), "{refused:?}");
    }
}
