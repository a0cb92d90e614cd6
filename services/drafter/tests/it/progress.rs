//! Drafting that takes long: told of while it goes on, and given up when the client leaves.

use std::time::{Duration, Instant};

use wire::describe::PROGRESS;
use wire::v1::draft_reply::Reply;
use wire::v1::{DescribeRequest, Drafting};

use crate::world::{AMPLE, ATTEMPTS, DRAFT, PROMPT, World, models};

#[tokio::test]
async fn long_drafting_is_told_of_and_not_late() {
    let world = World::start().await;
    let described = world.client().describe(DescribeRequest {}).await;
    let described = described.expect("a description").into_inner();
    assert_eq!(described.features, [PROGRESS]);
    for (id, drafting) in [(10, Drafting::Model), (20, Drafting::Cascade)] {
        let mut stream = world.open(id).await;
        let began = Instant::now();
        stream.ask(drafting, 4, AMPLE).await;
        let (told, tokens) = stream.block().await.expect("a block");
        let took = began.elapsed();
        assert_eq!(tokens, 4);
        if drafting == Drafting::Model {
            assert_eq!(told[0].total as usize, PROMPT);
        }
        assert!(
            told.is_sorted_by(|one, next| one.done < next.done),
            "{told:?}"
        );
        assert!(told.iter().all(|progress| progress.done <= progress.total));
        assert!(told.len() as u128 <= 2 + took.as_millis() / 100, "{told:?}");

        // The same in a fourth of the time it takes, on sessions that have to begin anew.
        let mut told = None;
        for attempt in 1..=ATTEMPTS {
            let mut stream = world.open(id + attempt).await;
            told = stream.in_time(drafting, 4, took / 4).await;
            if told.is_some() {
                break;
            }
        }
        let told = told.expect("not always late");
        // In a cascade one model reads the prompt after the other.
        let last = told.last().expect("told").done as usize;
        let earlier = (models(drafting) - 1) * PROMPT;
        assert!(last > earlier, "{drafting:?}: {told:?}");
    }
}

#[tokio::test]
async fn each_token_of_a_draft_is_progress() {
    let world = World::start().await;
    let mut stream = world.open(1).await;
    // The prompt is forwarded once, and the rounds after it forward what they draft.
    stream.ask(Drafting::Model, 1, AMPLE).await;
    stream.block().await.expect("a block");
    let began = Instant::now();
    stream.ask(Drafting::Model, DRAFT, AMPLE).await;
    let (_, tokens) = stream.block().await.expect("a block");
    let took = began.elapsed();
    assert_eq!(tokens, DRAFT as usize);
    let mut told = None;
    for _ in 0..ATTEMPTS {
        told = stream.in_time(Drafting::Model, DRAFT, took / 4).await;
        if told.is_some() {
            break;
        }
        // A round that is late ends its stream.
        stream = world.open(1).await;
    }
    assert!(!told.expect("not always late").is_empty());
}

#[tokio::test]
async fn a_client_that_leaves_ends_its_drafting() {
    for drafting in [Drafting::Model, Drafting::Cascade] {
        let world = World::start().await;
        let mut stream = world.open(1).await;
        stream.ask(drafting, 4, AMPLE).await;
        // Until the slow model reads, the last of them.
        let earlier = (models(drafting) - 1) * (PROMPT + 4);
        loop {
            match stream.receive().await.expect("told") {
                Reply::Progress(progress) if progress.done as usize > earlier => break,
                Reply::Progress(_) => {}
                other => panic!("another reply: {other:?}"),
            }
        }
        drop(stream);
        let began = Instant::now();
        let remains = || {
            let sessions = world.monitor.sessions();
            sessions.attached + world.monitor.engine().running > 0
        };
        while remains() {
            assert!(began.elapsed() < AMPLE, "it goes on");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let forwards = world.monitor.totals().forwards;
        let all = (models(drafting) * PROMPT) as u64;
        assert!(forwards < all, "{drafting:?}: {forwards} forwards");
        assert_eq!(world.monitor.sessions().detached, 0);
    }
}
