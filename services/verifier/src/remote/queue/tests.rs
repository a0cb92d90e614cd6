//! Sessions that are unlike one another at one queue: what goes together, and what one may do to others.

use std::sync::mpsc;

use futures_util::future::join_all;
use peer::RoundError;
use wire::status::{PeerFailure, classify};

use super::super::tests::fake::{FakeEngine, REFUSED, rows};
use super::*;

/// A queue of at most 8 before `engine`, which is asked for at most 4 sequences at a time, by one thread.
fn queue(engine: &Arc<FakeEngine>) -> Queue {
    let engine: Arc<dyn ScoringEngine> = Arc::clone(engine) as _;
    Queue::new(&engine, 8, 1, 4).expect("a thread")
}

/// Rows of two draft tokens after `token`, the `top` most likely tokens of each.
fn wanted(token: TokenId, top: usize) -> RowRequest {
    RowRequest {
        tokens: vec![1, 2, token, 3, 4],
        committed: 3,
        top,
        asked: vec![vec![token], Vec::new(), vec![0, 5]],
        salt: format!("of {token}").into(),
        deadline: Instant::now() + Duration::from_mins(1),
    }
}

/// Asks for all of `wanted` while the engine is kept busy by another, and returns their answers. The first request to the
/// engine is that other's.
async fn together(queue: &Queue, engine: &FakeEngine, wanted: Vec<RowRequest>) -> Vec<Answered> {
    engine.hold();
    let asking = async {
        let busy = queue.ask(self::wanted(0, 1));
        let others = async {
            engine.begun(1).await;
            // The first poll of each puts it into the queue, and `release` is polled last.
            let asking = join_all(wanted.into_iter().map(|wanted| queue.ask(wanted)));
            let release = async { engine.release() };
            tokio::join!(asking, release).0
        };
        tokio::join!(busy, others)
    };
    let (busy, answers) = soon(asking).await;
    busy.expect("rows");
    answers
}

/// Awaits `asking`, which waits for nothing that is not on its way.
async fn soon<T>(asking: impl Future<Output = T>) -> T {
    let limit = Duration::from_secs(30);
    tokio::time::timeout(limit, asking).await.expect("in time")
}

/// The sequences of the requests after the first, by the token that tells them apart.
fn requests(engine: &FakeEngine) -> Vec<Vec<TokenId>> {
    let asked = engine.asked().into_iter().skip(1);
    let tokens = asked.map(|asked| asked.sequences.iter().map(|it| it[2]).collect());
    tokens.collect()
}

#[tokio::test]
async fn sequences_that_want_as_many_tokens_go_together_and_each_gets_its_own_rows() {
    let engine = Arc::new(FakeEngine::default());
    let queue = queue(&engine);
    let unlike = [
        (5, 2),
        (6, 7),
        (7, 2),
        (8, 16),
        (9, 7),
        (10, 2),
        (11, 2),
        (12, 2),
    ];
    let sent = unlike.map(|(token, top)| wanted(token, top)).into();
    let answers = together(&queue, &engine, sent).await;
    for ((token, top), answer) in unlike.into_iter().zip(answers) {
        let (found, step) = answer.expect("rows");
        let expected = rows(&wanted(token, top).sequence(), top);
        assert_eq!(found.len(), expected.len());
        for (row, expected) in found.iter().zip(&expected) {
            assert_eq!(row.known(), expected.known(), "token {token}, top {top}");
        }
        assert_eq!(step.forwarded_tokens, 3);
    }
    // Those that wait the longest first, four at most, of one K.
    assert_eq!(
        requests(&engine),
        [vec![5, 7, 10, 11], vec![6, 9], vec![8], vec![12]]
    );
    let asked = engine.asked();
    assert_eq!(asked[1].top, 2);
    assert_eq!(asked[2].top, 7);
    assert_eq!(asked[2].salts, ["of 6", "of 9"]);
}

#[tokio::test]
async fn a_request_may_take_as_long_as_the_most_patient_of_its_sequences() {
    let engine = Arc::new(FakeEngine::default());
    let queue = queue(&engine);
    let now = Instant::now();
    let patience = [50, 600, 40].map(Duration::from_secs);
    let sent = patience
        .iter()
        .zip(5..)
        .map(|(patience, token)| RowRequest {
            deadline: now + *patience,
            ..wanted(token, 2)
        });
    let answers = together(&queue, &engine, sent.collect()).await;
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(engine.asked()[1].deadline, now + patience[1]);
}

#[tokio::test]
async fn a_sequence_that_is_refused_fails_alone() {
    let engine = Arc::new(FakeEngine::default());
    let queue = queue(&engine);
    let sent = [5, REFUSED, 7].map(|token| wanted(token, 2)).into();
    let answers = together(&queue, &engine, sent).await;
    let answered: Vec<bool> = answers.iter().map(Result::is_ok).collect();
    assert_eq!(answered, [true, false, true]);
    assert_eq!(
        requests(&engine),
        [vec![5, REFUSED, 7], vec![5], vec![REFUSED], vec![7]]
    );
}

/// What is said of the engine itself is not asked again for each sequence.
#[tokio::test]
async fn an_engine_that_is_busy_or_late_is_not_asked_again_for_each_sequence() {
    for failure in [
        || ScoringError::Late(Duration::from_secs(3)),
        || ScoringError::Busy {
            status: 503,
            tries: 2,
        },
    ] {
        let engine = FakeEngine::failing([None, Some(failure())]);
        let queue = queue(&engine);
        let sent = [5, 6].map(|token| wanted(token, 2)).into();
        let answers = together(&queue, &engine, sent).await;
        assert!(answers.iter().all(Result::is_err));
        assert_eq!(requests(&engine), [[5, 6]], "{:?}", failure());
    }
}

#[tokio::test]
async fn a_connection_that_had_ended_is_tried_once_more() {
    let broken = || Some(ScoringError::Unreachable("closed".to_owned()));
    let engine = FakeEngine::failing([broken()]);
    let queue = queue(&engine);
    queue
        .ask(wanted(5, 2))
        .await
        .expect("rows of the second try");
    assert_eq!(engine.asked().len(), 2);

    let engine = FakeEngine::failing([broken(), broken()]);
    let queue = self::queue(&engine);
    let error = queue.ask(wanted(5, 2)).await.expect_err("it is gone");
    assert!(error.to_string().contains("closed"), "{error}");
    assert_eq!(engine.asked().len(), 2);
}

/// A client that leaves takes its sequence out of the queue, and its place.
#[tokio::test]
async fn what_nobody_waits_for_is_not_asked() {
    let engine = Arc::new(FakeEngine::default());
    let queue = queue(&engine);
    engine.hold();
    let busy = queue.ask(wanted(0, 1));
    let others = async {
        engine.begun(1).await;
        {
            let left = join_all((1..=8).map(|token| queue.ask(wanted(token, 2))));
            let polled = futures_util::poll!(Box::pin(left));
            assert!(polled.is_pending());
            // All eight places were taken, and are free again.
        }
        let stay = join_all((5..=12).map(|token| queue.ask(wanted(token, 2))));
        let one_more = async {
            let refused = queue
                .ask(wanted(13, 2))
                .await
                .expect_err("no place is left");
            engine.release();
            refused
        };
        tokio::join!(stay, one_more)
    };
    let (_, (stayed, refused)) = soon(async { tokio::join!(busy, others) }).await;
    assert!(stayed.iter().all(Result::is_ok));
    assert_eq!(requests(&engine), [[5, 6, 7, 8], [9, 10, 11, 12]]);
    let RoundError::Other(status) = refused else {
        panic!("{refused}");
    };
    let overloaded = PeerFailure::Overloaded {
        retry_after: RETRY_AFTER,
    };
    assert_eq!(classify(&status), overloaded);
    assert!(
        status.message().contains("verifier.engine.max_queue"),
        "{status:?}"
    );
}

/// The time in the queue is told apart from the engine's.
#[tokio::test]
async fn what_a_request_cost_is_told() {
    let engine = Arc::new(FakeEngine::default());
    let queue = queue(&engine);
    let sent = [5, 6, 7].map(|token| wanted(token, 2)).into();
    for answer in together(&queue, &engine, sent).await {
        let (_, step) = answer.expect("rows");
        assert_eq!((step.batch_sequences, step.batch_tokens), (3, 9));
        assert!(step.queue > Duration::ZERO);
    }
}

#[tokio::test]
async fn the_threads_end_with_the_queue() {
    let engine = Arc::new(FakeEngine::default());
    drop(queue(&engine));
    let (ended, end) = mpsc::channel();
    std::thread::spawn(move || {
        while Arc::strong_count(&engine) > 1 {
            std::thread::yield_now();
        }
        ended.send(())
    });
    let limit = Duration::from_secs(10);
    end.recv_timeout(limit)
        .expect("the thread lets the engine go");
}
