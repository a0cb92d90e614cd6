//! An engine that becomes another one behind a verifier.

use model::Model;
use model::source::ServedModel;
use wire::v1::FinishReason;

use super::{Over, Sglang, is_ready, over, target};
use crate::client::{Answer, With, generate, request, try_generate};
use crate::cluster::{eventually, random_draft};

/// Another model of the same tokens, which knows nothing.
fn other() -> ServedModel<Model> {
    random_draft(|_| {})
}

async fn asked(over: &Over) -> Answer {
    generate(&over.coordinator, request("Once upon a time", 24).seed(7)).await
}

/// In the middle of an answer it is noticed by the rows themselves: no token is decided by a row of the other model that
/// is not told of.
#[tokio::test]
async fn an_answer_that_another_engine_went_on_with_is_not_exact() {
    let engine = Sglang::start();
    let over = over(&engine).await;
    let before = asked(&over).await;
    for method in ["coupled", "target-only"] {
        let requested = request("Once upon a time", 200).ignoring_eos();
        engine.serve_after(20, "other", other());
        let answer = generate(&over.coordinator, requested.method(method)).await;
        let finished = &answer.finished;
        assert_eq!(finished.reason(), FinishReason::Length, "{finished:?}");
        assert!(!answer.finished.exact, "{method}");

        eventually("not ready", || !is_ready(&over.verifier)).await;
        let refused = try_generate(&over.coordinator, request("Once", 8)).await;
        let refused = refused.expect("an answer that fails").finished;
        assert_eq!(refused.reason(), FinishReason::Error);
        for part in ["model 'other', before 'default'", "restart the verifier"] {
            assert!(refused.error.contains(part), "{}", refused.error);
        }

        engine.serve("default", target());
        eventually("ready again", || is_ready(&over.verifier)).await;
        let after = asked(&over).await;
        assert_eq!(after.tokens, before.tokens);
        assert!(after.finished.exact);
    }
}

/// Weights that were loaded into a running engine, which says nothing of it.
#[tokio::test]
async fn an_engine_of_the_same_name_and_other_weights_is_noticed_without_a_request() {
    let engine = Sglang::start();
    let over = over(&engine).await;
    eventually("ready", || is_ready(&over.verifier)).await;
    engine.serve("default", other());
    eventually("not ready", || !is_ready(&over.verifier)).await;
    let refused = try_generate(&over.coordinator, request("Once", 8)).await;
    let refused = refused.expect("an answer that fails").finished;
    assert!(refused.error.contains("other numbers"), "{}", refused.error);
}

/// An engine of other tokens: nothing of what was begun makes sense to it.
#[tokio::test]
async fn an_engine_of_other_tokens_goes_on_with_nothing() {
    let engine = Sglang::start();
    let over = over(&engine).await;
    engine.set_fault(Some(super::Fault::OtherTokenizer));
    engine.serve_after(20, "other", other());
    let requested = request("Once upon a time", 400).ignoring_eos();
    let answer = try_generate(&over.coordinator, requested).await;
    let finished = answer.expect("an answer").finished;
    let told = match finished.reason() {
        FinishReason::Error => finished.error.contains("restart the verifier"),
        // It was over before the engine was asked what it is.
        _ => !finished.exact,
    };
    assert!(told, "{finished:?}");
    eventually("not ready", || !is_ready(&over.verifier)).await;
}
