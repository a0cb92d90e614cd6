//! Drafting that takes long: told of while it goes on, and given up when the client leaves.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ::drafter::{Drafter, DrafterConfig, Loaded};
use tonic::Code;
use wire::v1::session_reply::Reply;
use wire::v1::session_request::Request;
use wire::v1::{Drafting, Progress};

use super::{Rounds, requested, smaller};
use crate::cluster::{Service, drafter_of, eventually, random_draft};
use crate::protocol::{open, with_header};

/// Tokens of a prompt, and of a long draft; each is a forward of some milliseconds.
const LONG: usize = 200;

/// A drafter with a cascade of a slow model and a small one, which forward one token at once.
async fn slow_drafter() -> (Service, Arc<Drafter>) {
    let mut config = DrafterConfig {
        max_draft_tokens: 200.try_into().expect("not zero"),
        ..DrafterConfig::default()
    };
    config.engine.max_batch_tokens = 1.try_into().expect("not zero");
    let slow = random_draft(|config| {
        (config.hidden_size, config.intermediate_size, config.layers) = (768, 2_048, 6);
        (config.heads, config.kv_heads, config.head_dim) = (12, 12, 64);
    });
    let loaded = Loaded::of(vec![slow, smaller()], &config).expect("in order");
    drafter_of(loaded, config).await
}

async fn opened(drafter: &Service, id: u8, timeout: Duration) -> Rounds {
    let opening = open(|open| {
        open.session_id = vec![id; 16];
        open.prompt_token_ids = (0..LONG).map(|at| 300 + at as u32).collect();
    });
    let mut rounds = Rounds::open(drafter, opening).await;
    rounds.timeout = timeout;
    rounds
}

/// What is told of a block that takes longer than the time of its round, and is not late.
async fn told_in_little_time(
    drafter: &Service,
    (drafting, tokens): (Drafting, u32),
    took: Duration,
) -> Vec<Progress> {
    let mut timeout = took / 4;
    for id in 100..110 {
        // On sessions that have to begin anew.
        let mut rounds = opened(drafter, id, timeout).await;
        let began = Instant::now();
        match rounds.try_ask(&[], requested(drafting, tokens)).await {
            Ok(block) if began.elapsed() > timeout => return block.reported,
            // The machine has less to do than before.
            Ok(_) => timeout = began.elapsed() / 4,
            // A machine that is busy with something else may stand still for longer than a round's time.
            Err(late) => {
                assert_eq!(late.code(), Code::DeadlineExceeded, "{late:?}");
                timeout = timeout * 3 / 2;
            }
        }
    }
    panic!("too late, or too quick to show that, ten times");
}

/// In a cascade one model reads the prompt after the other; a draft model forwards what it drafts.
#[tokio::test]
async fn long_drafting_is_told_of_and_not_late() {
    let (drafter, _) = slow_drafter().await;
    for (id, drafting, tokens) in [(1, Drafting::Cascade, 4), (2, Drafting::Model, LONG as u32)] {
        let mut rounds = opened(&drafter, id, Duration::from_mins(1)).await;
        let began = Instant::now();
        let block = rounds.ask(&[], requested(drafting, tokens)).await;
        let (took, reported) = (began.elapsed(), block.reported);
        assert_eq!(block.drafts.tokens().len(), tokens as usize);
        if drafting == Drafting::Model {
            assert_eq!(reported[0].total as usize, LONG);
        }
        assert!(
            reported.is_sorted_by(|one, next| one.done < next.done),
            "{reported:?}"
        );
        assert!(
            reported
                .iter()
                .all(|progress| progress.done <= progress.total)
        );
        assert!(
            reported.len() as u128 <= 2 + took.as_millis() / 100,
            "{reported:?}"
        );
        let reported = told_in_little_time(&drafter, (drafting, tokens), took).await;
        let last = reported.last().expect("told").done as usize;
        assert!(last > LONG, "{drafting:?}: {reported:?}");
    }
}

#[tokio::test]
async fn a_client_that_leaves_ends_its_drafting() {
    let (drafter, monitor) = slow_drafter().await;
    for (id, drafting, models) in [(1, Drafting::Model, 1), (2, Drafting::Cascade, 2)] {
        let before = monitor.engine().forwards;
        let mut stream = opened(&drafter, id, Duration::ZERO).await.stream;
        let mut round = with_header(requested(drafting, 4), 1, &[]);
        round.header.get_or_insert_default().timeout_ms = 60_000;
        stream.send(Request::Round(round)).await;
        // Until the slow model reads, the last of them.
        let earlier = (models - 1) * (LONG + 4);
        loop {
            match stream.receive().await.expect("told") {
                Reply::Progress(progress) if progress.done as usize > earlier => break,
                Reply::Progress(_) => {}
                other => panic!("another reply: {other:?}"),
            }
        }
        drop(stream);
        let is_over = || monitor.sessions().attached + monitor.engine().running == 0;
        eventually("nothing remains", is_over).await;
        let forwards = monitor.engine().forwards - before;
        let all = (models * LONG) as u64;
        assert!(forwards < all, "{drafting:?}: {forwards} forwards");
        assert_eq!(monitor.sessions().detached, 0);
    }
}
