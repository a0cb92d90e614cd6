//! A drafter that drafts ahead beside a target that decodes: it saves forwards, and nothing hangs on it.

use drafter::{Drafter, DrafterConfig, Loaded};
use speculation::ports::Caps;
use wire::v1::GenerateRequest;

use super::{
    assert_accepted, assert_equal, equals_target_only, patient, repeating, sampled, streamed,
};
use crate::client::{With, begin, generate, request, with_fault};
use crate::cluster::{
    Service, config, coordinator, draft, drafter, drafter_of, drafter_with, eventually,
    random_draft,
};
use crate::drain::{draining, ends_soon};
use crate::engines::Lesser;
use crate::errors::each_refused;
use crate::paced::{Pace, paced, with_model};
use crate::relay::Relay;

/// A text that the draft model goes on with as the target does, now and then.
fn story(max_tokens: u32) -> GenerateRequest {
    let requested = request("Once upon a time", max_tokens).with("drafting", "model");
    requested.ignoring_eos()
}

/// A coordinator with a verifier and drafters at these addresses.
async fn beside(drafters: &[String]) -> (Service, Service) {
    let (verifier, _) = patient(|_| {}).await;
    let mut config = config(drafters, &[verifier.url()]);
    // Whoever waited for a drafter would wait for an hour.
    config.draft_timeout_ms = 3_600_000.try_into().expect("not zero");
    (coordinator(config).await, verifier)
}

/// Waits until the drafter holds nothing of any request.
async fn is_free(monitor: &Drafter, what: &str) {
    eventually(what, || {
        let (sessions, engine) = (monitor.sessions(), monitor.engine());
        sessions.attached + sessions.detached == 0 && engine.sequences == 0
    })
    .await;
}

#[tokio::test]
async fn its_drafts_save_forwards_and_the_answer_is_the_targets() {
    let (drafter, monitor) = drafter(draft()).await;
    let (coordinator, _verifier) = beside(&[drafter.url()]).await;
    for temperature in [0.0, 1.0] {
        let requested = story(120).temperature(temperature).seed(5);
        let answer = equals_target_only(&coordinator, &requested, "a story").await;
        assert_accepted(&answer, "a story");
        assert_eq!(answer.setting("drafting"), Some("model"));
        is_free(&monitor, "after the answer").await;
    }
}

#[tokio::test]
async fn whatever_is_asked_for_the_answer_is_the_targets() {
    let (drafter, monitor) = drafter(draft()).await;
    let (coordinator, _verifier) = beside(&[drafter.url()]).await;
    let grammar = wire::v1::Grammar {
        regex: "( (the|a|one|happy|little)){40}".to_owned(),
        ..Default::default()
    };
    // A grammar says where the output ends.
    let ended = GenerateRequest {
        ignore_eos: false,
        ..story(60)
    };
    let cases: [(&str, GenerateRequest); 5] = [
        ("one token", story(1)),
        ("two tokens", story(2)),
        ("an end", story(200).temperature(1.0)),
        (
            "penalties",
            sampled(story(60), |it| {
                (it.temperature, it.repetition_penalty) = (Some(0.9), Some(1.2));
                it.presence_penalty = 0.4;
            }),
        ),
        (
            "a grammar",
            sampled(ended, |it| {
                (it.temperature, it.grammar) = (Some(1.0), Some(grammar));
            }),
        ),
    ];
    for (what, requested) in cases {
        equals_target_only(&coordinator, &requested, what).await;
    }
    let expected = generate(&coordinator, story(60).method("target-only")).await;
    let capped = streamed(story(60)).with("draft_cap", 1);
    let answer = generate(&coordinator, capped).await;
    assert_equal(&answer, &expected, "a level at most");
    is_free(&monitor, "after all").await;
}

/// Neither one that knows nothing nor one that never answers changes a token, or holds one up.
#[tokio::test]
async fn a_drafter_that_is_wrong_or_silent_is_nothing_to_the_answer() {
    let (wrong, _) = drafter(random_draft(|_| {})).await;
    let (coordinator, _verifier) = beside(&[wrong.url()]).await;
    for temperature in [0.0, 1.0] {
        let requested = story(60).temperature(temperature);
        equals_target_only(&coordinator, &requested, "a drafter that knows nothing").await;
    }
    // Not even the opening of its stream is answered.
    let (held, monitor) = drafter(draft()).await;
    let relay = Relay::start(held.address).await;
    let (coordinator, _verifier) = beside(&[relay.url()]).await;
    equals_target_only(&coordinator, &story(4), "a drafter that is described").await;
    relay.hold_after(0);
    let answer = generate(&coordinator, streamed(story(30).temperature(0.0))).await;
    assert_eq!(answer.statistics().num_accepted_draft_tokens, 0);
    relay.release();
    is_free(&monitor, "after it was let go").await;
}

/// The target does not wait until the drafter has read the prompt.
#[tokio::test]
async fn a_drafter_that_reads_the_prompt_forever_holds_nothing_up() {
    let pace = Pace::default();
    let (slow, monitor) = drafter_of(
        Loaded::alone(paced(draft(), &pace)),
        DrafterConfig::default(),
    )
    .await;
    let (coordinator, _verifier) = beside(&[slow.url()]).await;
    pace.hold();
    let answer = equals_target_only(&coordinator, &story(40), "a slow drafter").await;
    assert_eq!(answer.statistics().num_accepted_draft_tokens, 0);
    pace.release();
    is_free(&monitor, "after its forward").await;
}

/// As with llama.cpp.
#[tokio::test]
async fn where_trees_do_not_grow_chains_are_drafted() {
    let caps = Caps {
        trees: false,
        growing_trees: false,
        ..Caps::ALL
    };
    let lesser = with_model(draft(), |model| Lesser { model, caps });
    let (drafter, monitor) = drafter_of(Loaded::alone(lesser), DrafterConfig::default()).await;
    let (coordinator, _verifier) = beside(&[drafter.url()]).await;
    for temperature in [0.0, 1.0] {
        let requested = story(120).temperature(temperature).seed(5);
        let answer = equals_target_only(&coordinator, &requested, "chains").await;
        assert_accepted(&answer, "chains");
    }
    is_free(&monitor, "after all").await;
}

#[tokio::test]
async fn a_drafter_that_is_lost_is_found_again_and_another_takes_over() {
    let (old, _) = drafter(draft()).await;
    let (fresh, monitor) = drafter(draft()).await;
    for turn in 0..4_u64 {
        let relay = Relay::start(old.address).await;
        let (coordinator, _verifier) = beside(&[relay.url()]).await;
        let requested = story(200).temperature(0.5).seed(turn);
        let alone = requested.clone().method("target-only");
        let expected = generate(&coordinator, alone).await;
        let fault = || match turn {
            0 => relay.cut(),
            1 => relay.lead_to(Some(fresh.address)),
            2 => relay.lead_to(None),
            _ => {}
        };
        let answer = with_fault(&coordinator, streamed(requested), 20, fault).await;
        assert_equal(&answer, &expected, &format!("turn {turn}"));
        assert_eq!((answer.fallbacks(), answer.statistics().retries), (0, 0));
    }
    is_free(&monitor, "after all").await;
}

#[tokio::test]
async fn a_drafter_that_stops_hands_over_within_the_answer() {
    let patient = |config: &mut DrafterConfig| draining(&mut config.server, 60_000);
    let (old, old_monitor) = drafter_with(draft(), patient).await;
    let (fresh, monitor) = drafter_with(draft(), patient).await;
    let (coordinator, _verifier) = beside(&[old.url(), fresh.url()]).await;
    let requested = story(300).temperature(0.5);
    let expected = generate(&coordinator, requested.clone().method("target-only")).await;
    let stop = || old.stop.cancel();
    let answer = with_fault(&coordinator, streamed(requested), 30, stop).await;
    assert_equal(&answer, &expected, "a drafter that stops");
    is_free(&old_monitor, "the one that stopped").await;
    is_free(&monitor, "the other").await;
    // It did not wait until its grace was over.
    ends_soon(old).await;
}

#[tokio::test]
async fn a_client_that_goes_away_frees_the_drafter() {
    let (drafter, monitor) = drafter(draft()).await;
    let (coordinator, _verifier) = beside(&[drafter.url()]).await;
    let mut parts = begin(&coordinator, streamed(story(400))).await;
    for _ in 0..5 {
        parts.message().await.expect("a part");
    }
    drop(parts);
    is_free(&monitor, "a client that went away").await;
}

/// It takes no time from the verifier, and need not be waited for.
#[tokio::test]
async fn a_drafter_on_other_processors_drafts_ahead_by_default() {
    let mut apart = draft();
    apart.is_on_processors = false;
    let (apart, _) = drafter(apart).await;
    let (beside_it, _) = drafter(draft()).await;
    for (drafter, is_apart) in [(&apart, true), (&beside_it, false)] {
        let (coordinator, _verifier) = beside(&[drafter.url()]).await;
        let requested = request("Once upon a time", 40).ignoring_eos();
        let expected = generate(&coordinator, requested.clone().method("target-only")).await;
        for (what, asked, drafting, is_streamed) in [
            ("nothing", requested.clone(), "model", is_apart),
            (
                "auto",
                requested.clone().with("schedule", "auto"),
                "model",
                is_apart,
            ),
            (
                "a cap",
                requested.clone().with("draft_cap", 8),
                "model",
                is_apart,
            ),
            (
                "who",
                requested.clone().with("drafting", "max-gram"),
                "max-gram",
                false,
            ),
            (
                "rounds",
                requested.clone().with("schedule", "rounds"),
                "model",
                false,
            ),
            ("a length", requested.clone().draft_len(4), "model", false),
        ] {
            let answer = generate(&coordinator, asked).await;
            assert_eq!(answer.tokens, expected.tokens, "{what}");
            let schedule = if is_streamed { "stream" } else { "rounds" };
            assert_eq!(answer.setting("schedule"), Some(schedule), "{what}");
            assert_eq!(answer.setting("drafting"), Some(drafting), "{what}");
        }
    }
}

/// Where it is left open who drafts, what the text repeats is proposed beside what a drafter drafts.
#[tokio::test]
async fn by_default_drafts_are_copied_beside_a_drafters() {
    let mut apart = random_draft(|_| {});
    apart.is_on_processors = false;
    let (drafter, _) = drafter(apart).await;
    let (coordinator, _verifier) = beside(&[drafter.url()]).await;
    let alone = repeating(80).method("target-only");
    let expected = generate(&coordinator, alone).await;
    let accepted = |source| {
        let labels = [("source", source), ("outcome", "accepted")];
        coordinator
            .scrape()
            .sum("outrider_streamed_drafts_total", &labels)
    };
    let named = generate(
        &coordinator,
        repeating(80)
            .with("drafting", "model")
            .with("schedule", "stream"),
    )
    .await;
    assert_eq!(named.tokens, expected.tokens);
    assert_eq!(
        accepted("max-gram"),
        0.0,
        "the draft model alone was asked for"
    );
    let open = generate(&coordinator, repeating(80)).await;
    assert_eq!(open.tokens, expected.tokens);
    assert_eq!(open.setting("drafting"), Some("model"));
    assert!(accepted("max-gram") > 0.0);
    // How many the draft model guesses right is chance.
    assert!(open.statistics().target_forwards < 80);
}

#[tokio::test]
async fn what_no_drafter_can_do_is_refused_by_name() {
    let (coordinator, _verifier) = beside(&[]).await;
    let refused = vec![
        ("settings.schedule | needs a drafter", streamed(story(8))),
        (
            "settings.schedule | choose drafting model or max-gram",
            streamed(story(8)).with("drafting", "cascade"),
        ),
    ];
    each_refused(&coordinator, refused).await;
}
