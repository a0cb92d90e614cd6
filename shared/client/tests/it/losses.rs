//! Answers that are lost on their way, and go on where they were or say why they cannot.

use std::time::Duration;

use client::v1::generate_response::Part;
use client::v1::{FinishReason, Finished, GenerateRequest};
use client::{Client, CollectedAnswer, Error, GenerationEvent, OtherTokens, Policy};
use tonic::{Code, Status};
use wire::status::{BadField, overloaded};

use super::fake::{Fake, client};
use super::relay::Relay;
use super::replies::{End, Reply, SEED, TEXT, TOKENS, chunk, cut_after, finished, started, whole};

fn request() -> GenerateRequest {
    GenerateRequest {
        timeout_ms: 60_000,
        ..Default::default()
    }
}

/// Returns what came of an answer, and how it ended.
async fn generate(client: Client) -> (CollectedAnswer, Result<(), Error>) {
    let mut generation = client.generate(request()).await.expect("taken");
    let mut answer = CollectedAnswer::default();
    loop {
        match generation.event().await {
            Ok(Some(event)) => answer.add(event),
            Ok(None) => return (answer, Ok(())),
            Err(error) => return (answer, Err(error)),
        }
    }
}

/// The error of an answer that stops after its first two tokens.
async fn stops_after_two(client: Client) -> Error {
    let (answer, outcome) = generate(client).await;
    assert_eq!(answer.token_ids, TOKENS[..2]);
    outcome.expect_err("lost")
}

/// The end of an answer at a coordinator that lost what the request needs.
fn failed(retry_after_ms: u32) -> Part {
    Part::Finished(Finished {
        reason: FinishReason::Error.into(),
        error: "gone".to_owned(),
        error_code: Code::Unavailable as u32,
        retry_after_ms,
        ..Default::default()
    })
}

fn stopped_after(tokens: usize, retry_after_ms: u32) -> Reply {
    let parts = vec![
        started(true),
        chunk(&TOKENS[..tokens]),
        failed(retry_after_ms),
    ];
    Reply::Answer(parts, End::Stream)
}

#[tokio::test]
async fn an_answer_that_is_lost_goes_on_with_its_seed_where_it_was() {
    let losses = [
        || End::Stream,
        || End::Status(Status::unavailable("stopping")),
    ];
    for end in losses {
        let fake = Fake::start([cut_after(3, end()), cut_after(5, end()), whole(2)]).await;
        let (answer, outcome) = generate(fake.client()).await;
        outcome.expect("gone on with");
        assert_eq!(
            (&answer.text[..], &answer.token_ids[..]),
            (TEXT, &TOKENS[..])
        );
        assert_eq!((answer.origins.len(), answer.resumes), (TOKENS.len(), 2));
        let [first, again, last] = &fake.requests()[..] else {
            panic!("not asked three times");
        };
        // The repeated request leaves no choice to the coordinator.
        assert_eq!(first, &request());
        for repeated in [again, last] {
            let expected = GenerateRequest {
                seed: Some(SEED),
                model: "default".to_owned(),
                max_tokens: Some(TOKENS.len() as u32),
                timeout_ms: repeated.timeout_ms,
                ..request()
            };
            assert_eq!(repeated, &expected);
        }
    }
}

#[tokio::test]
async fn an_answer_goes_on_when_a_broken_connection_stands_again() {
    let fake = Fake::start([cut_after(3, End::Silence), whole(4)]).await;
    let relay = Relay::start(fake.address).await;
    let back = relay.clone();
    // Nobody is there until the client has waited once.
    let client = client(&relay.url()).on_wait(move |_| back.lead_to(Some(fake.address)));
    let mut generation = client.generate(request()).await.expect("taken");
    let mut answer = CollectedAnswer::default();
    let mut lost = Vec::new();
    while let Some(event) = generation.event().await.expect("in order") {
        if let GenerationEvent::Lost(status) = &event {
            lost.push(status.code());
        }
        answer.add(event);
        if answer.token_ids.len() == 3 && lost.is_empty() {
            relay.lead_to(None);
        }
    }
    assert_eq!((&answer.text[..], answer.resumes), (TEXT, 1));
    assert_eq!(lost, [Code::Unavailable]);
}

#[tokio::test]
async fn an_answer_that_was_lost_before_it_began_is_asked_for_as_it_was() {
    let nothing = Reply::Answer(Vec::new(), End::Stream);
    let fake = Fake::start([nothing, whole(2)]).await;
    let (answer, outcome) = generate(fake.client()).await;
    outcome.expect("in order");
    assert_eq!((&answer.text[..], answer.resumes), (TEXT, 0));
    assert_eq!(fake.requests()[1].seed, None);
}

#[tokio::test]
async fn a_coordinator_that_stops_is_asked_again_when_it_says_so() {
    let fake = Fake::start([stopped_after(2, 20), whole(2)]).await;
    let began = std::time::Instant::now();
    let (answer, outcome) = generate(fake.client()).await;
    outcome.expect("gone on with");
    assert_eq!(answer.text, TEXT);
    assert!(began.elapsed() >= Duration::from_millis(20));
    // The repeated request has the time that is left of the first one's.
    assert!(fake.requests()[1].timeout_ms <= 60_000 - 20);
    // A failure of a coordinator that does not stop is final.
    let fake = Fake::start([stopped_after(2, 0), whole(2)]).await;
    let failed = stops_after_two(fake.client()).await;
    assert!(matches!(failed, Error::Failed(_)), "{failed:?}");
    assert_eq!(
        (failed.code(), fake.requests().len()),
        (Code::Unavailable, 1)
    );
}

#[tokio::test]
async fn while_it_goes_on_an_overloaded_coordinator_is_waited_for() {
    let busy = Reply::Refusal(overloaded("busy", Duration::from_millis(20)));
    let fake = Fake::start([cut_after(2, End::Stream), busy, whole(2)]).await;
    let (answer, outcome) = generate(fake.client()).await;
    outcome.expect("gone on with");
    assert_eq!((&answer.text[..], fake.requests().len()), (TEXT, 3));
}

#[tokio::test]
async fn other_tokens_than_before_are_an_error_that_says_so() {
    let other = vec![started(true), chunk(&[10, 99, 12]), finished()];
    let short = vec![started(true), chunk(&TOKENS[..1]), finished()];
    for (parts, found) in [(other, Some(99)), (short, None)] {
        let again = Reply::Answer(parts, End::Stream);
        let fake = Fake::start([cut_after(2, End::Stream), again]).await;
        let error = stops_after_two(fake.client()).await;
        let expected = OtherTokens {
            position: 1,
            given: 11,
            found,
        };
        let is_expected = matches!(error, Error::OtherTokens(other) if other == expected);
        assert!(is_expected, "{error:?}");
    }
}

#[tokio::test]
async fn an_answer_does_not_go_on_where_it_must_not() {
    let lossy = Reply::Answer(vec![started(false), chunk(&TOKENS[..2])], End::Stream);
    let unwanted = Policy {
        resume: false,
        ..Policy::default()
    };
    for (first, policy) in [
        (lossy, Policy::default()),
        (cut_after(2, End::Stream), unwanted),
        (stopped_after(2, 20), unwanted),
    ] {
        let fake = Fake::start([first, whole(2)]).await;
        let error = stops_after_two(fake.client().with_policy(policy)).await;
        assert_eq!(error.code(), Code::Unavailable, "{error:?}");
        assert_eq!(fake.requests().len(), 1);
    }
}

#[tokio::test]
async fn it_is_not_tried_without_end() {
    let lost = || cut_after(2, End::Stream);
    let fake = Fake::start([lost(), lost(), lost(), whole(2)]).await;
    let policy = Policy {
        resume_tries: 2,
        ..Policy::default()
    };
    let error = stops_after_two(fake.client().with_policy(policy)).await;
    assert!(matches!(error, Error::Lost { tokens: 2, .. }), "{error:?}");
    assert_eq!(fake.requests().len(), 3);
}

#[tokio::test]
async fn nobody_is_waited_for_longer_than_the_policy_allows() {
    let fake = Fake::start([cut_after(2, End::Silence)]).await;
    let relay = Relay::start(fake.address).await;
    let client = client(&relay.url()).with_policy(Policy {
        resume_wait: Duration::from_millis(500),
        ..Policy::default()
    });
    let mut generation = client.generate(request()).await.expect("taken");
    for _ in 0..2 {
        generation.event().await.expect("in order");
    }
    relay.lead_to(None);
    let lost = generation.event().await.expect("told");
    assert!(matches!(lost, Some(GenerationEvent::Lost(_))), "{lost:?}");
    let error = tokio::time::timeout(Duration::from_secs(30), generation.event()).await;
    let error = error.expect("in time").expect_err("nobody came");
    assert!(matches!(error, Error::Lost { tokens: 2, .. }), "{error:?}");
    assert_eq!(error.code(), Code::Unavailable);
}

#[tokio::test]
async fn a_refusal_while_it_goes_on_is_told() {
    let other = Status::from(BadField::new("model", "'default' is not served"));
    let fake = Fake::start([cut_after(2, End::Stream), Reply::Refusal(other)]).await;
    let error = stops_after_two(fake.client()).await;
    assert_eq!(error.field().as_deref(), Some("model"));
}
