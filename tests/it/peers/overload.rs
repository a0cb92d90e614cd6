//! Overload puts requests off and loses none.

use futures_util::future::join_all;
use tonic::Code;

use super::{MS, ended, paced_verifier, retries};
use crate::client::{With, generate, request, try_generate};
use crate::cluster::{config, coordinator, target};
use crate::paced::Pace;

#[tokio::test(flavor = "multi_thread")]
async fn requests_under_way_wait_for_an_overloaded_verifier() {
    let pace = Pace::default();
    let one = 1.try_into().expect("not zero");
    let verifier = paced_verifier(&pace, target(), |config| {
        (config.engine.max_batch, config.engine.max_queue) = (one, one);
    })
    .await;
    let coordinator = coordinator(config(&[], &[verifier.url()])).await;
    let requested = |seed| request("Once upon a time", 40).seed(seed).ignoring_eos();
    let expected = generate(&coordinator, requested(0)).await.tokens;
    pace.slow(MS * 60);
    let all = (0..5).map(|_| try_generate(&coordinator, requested(0)));
    let mut answered = 0;
    for answer in join_all(all).await {
        match answer {
            Ok(answer) => {
                assert_eq!(answer.finished.error, "");
                assert_eq!(answer.tokens, expected);
                answered += 1;
            }
            // Not let in, as those under way wait already.
            Err(refused) => assert_eq!(refused.code(), Code::ResourceExhausted, "{refused:?}"),
        }
    }
    assert!(answered > 1, "nobody had to wait");
    assert!(retries(&coordinator) > 5.0, "nobody waited for long");
    assert!(ended(&verifier, "overloaded") > 5.0);
    assert!(ended(&verifier, "answered") > 0.0);
    assert_eq!(
        ["late", "refused", "failed"].map(|outcome| ended(&verifier, outcome)),
        [0.0; 3]
    );
}
