//! Calls: whole answers, waits, refusals, cancelling.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use client::v1::{GenerateRequest, Origin};
use client::{Error, GenerationEvent, Policy, RetryWait};
use tokio::net::TcpListener;
use tonic::{Code, Status};
use wire::status::{BadField, overloaded};

use super::fake::{Fake, client};
use super::replies::{End, Reply, SEED, TEXT, TOKENS, cut_after, whole};

fn request() -> GenerateRequest {
    GenerateRequest::default()
}

/// A coordinator that refuses so often before it answers, and says when to come back.
async fn busy(times: usize) -> Fake {
    let refusal = || Reply::Refusal(overloaded("busy", Duration::from_millis(20)));
    let refusals = (0..times).map(|_| refusal());
    Fake::start(refusals.chain([whole(2)])).await
}

#[tokio::test]
async fn an_answer_comes_as_typed_events_and_as_a_whole() {
    let fake = Fake::start([whole(4), whole(1)]).await;
    let mut generation = fake.client().generate(request()).await.expect("taken");
    let mut kinds = Vec::new();
    while let Some(event) = generation.event().await.expect("in order") {
        kinds.push(match event {
            GenerationEvent::Started(started) => format!("seed {}", started.seed),
            GenerationEvent::Chunk(chunk) => format!("{} tokens", chunk.token_ids.len()),
            GenerationEvent::Finished(finished) => format!("{:?}", finished.reason()),
            other => format!("{other:?}"),
        });
    }
    assert_eq!(kinds, ["seed 7", "4 tokens", "2 tokens", "Length"]);
    assert!(generation.event().await.expect("over").is_none());

    let generation = fake.client().generate(request()).await.expect("taken");
    let answer = generation.collect().await.expect("in order");
    assert!(answer.is_whole());
    assert_eq!(
        (&answer.text[..], &answer.token_ids[..]),
        (TEXT, &TOKENS[..])
    );
    assert_eq!(answer.origins, [Origin::Accepted; TOKENS.len()]);
    assert_eq!((answer.started.seed, answer.resumes), (SEED, 0));
}

#[tokio::test]
async fn models_are_listed() {
    let fake = Fake::start([]).await;
    let models = fake.client().models().await.expect("listed");
    assert_eq!(models[0].name, "default");
}

#[tokio::test]
async fn services_that_were_just_started_are_waited_for() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let client = client(&format!("http://{address}"));
    let impatient = client.clone().with_policy(Policy::NONE);
    let impatient = impatient.on_wait(|waiting| panic!("{waiting:?}"));
    let refused = impatient.models().await.expect_err("nobody is there");
    assert_eq!(refused.code(), Code::Unavailable);

    let started = Arc::new(Mutex::new(None));
    let start = Arc::clone(&started);
    // It starts because it was waited for.
    let client = client.on_wait(move |waiting| {
        let mut started = start.lock().expect("no panic");
        started.get_or_insert_with(|| {
            assert_eq!(waiting.before, 0);
            let listener = std::net::TcpListener::bind(address).expect("still free");
            listener.set_nonblocking(true).expect("set");
            let listener = TcpListener::from_std(listener).expect("a listener");
            Fake::on(listener, [whole(2)])
        });
    });
    let answer = client.generate(request()).await.expect("taken").collect();
    assert_eq!(answer.await.expect("in order").text, TEXT);
}

#[tokio::test]
async fn an_overloaded_coordinator_is_asked_again_when_it_says_so() {
    let fake = busy(2).await;
    let waits = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&waits);
    let client = fake.client().on_wait(move |waiting: &RetryWait<'_>| {
        let mut waits = note.lock().expect("no panic");
        waits.push((waiting.delay.as_millis(), waiting.before));
    });
    let began = std::time::Instant::now();
    let answer = client.generate(request()).await.expect("taken").collect();
    assert_eq!(answer.await.expect("in order").text, TEXT);
    assert!(began.elapsed() >= Duration::from_millis(40));
    assert_eq!(*waits.lock().expect("no panic"), [(20, 0), (20, 1)]);
    assert_eq!(fake.requests().len(), 3);
}

#[tokio::test]
async fn no_more_often_than_the_policy_allows() {
    for (overload_retries, asked) in [(0, 1), (1, 2)] {
        let fake = busy(2).await;
        let client = fake.client().with_policy(Policy {
            overload_retries,
            ..Policy::default()
        });
        let refused = client.generate(request()).await.expect_err("busy");
        assert_eq!(refused.code(), Code::ResourceExhausted);
        assert_eq!(fake.requests().len(), asked);
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_request_is_told_at_once() {
    let bad = Status::from(BadField::new("max_tokens", "0 is out of range"));
    let fake = Fake::start([Reply::Refusal(bad), whole(2)]).await;
    let client = fake.client().on_wait(|waiting| panic!("{waiting:?}"));
    let refused = client.generate(request()).await.expect_err("refused");
    assert_eq!(refused.field().as_deref(), Some("max_tokens"));
    assert!(matches!(refused, Error::Status(_)), "{refused:?}");
    assert_eq!(fake.requests().len(), 1);
}

#[tokio::test]
async fn what_nobody_waits_for_any_more_is_cancelled() {
    let fake = Fake::start([cut_after(2, End::Silence), Reply::Silence]).await;
    let client = fake.client();
    let mut generation = client.generate(request()).await.expect("taken");
    for _ in 0..2 {
        generation.event().await.expect("in order");
    }
    // Whoever stops waiting for the next event has dropped nothing yet.
    let next = tokio::time::timeout(Duration::from_millis(50), generation.event()).await;
    assert!(next.is_err(), "{next:?}");
    drop(generation);
    fake.cancelled(1).await;

    let call = client.generate(request());
    let taken = tokio::time::timeout(Duration::from_millis(500), call).await;
    assert!(taken.is_err(), "{taken:?}");
    assert_eq!(fake.requests().len(), 2);
    fake.cancelled(2).await;
}
