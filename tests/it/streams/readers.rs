//! A client that does not read holds at most its grant at the verifier.

use std::sync::Arc;
use std::time::Duration;

use coordinator::limits::ANSWER_BUFFER;
use verifier::Verifier;
use wire::v1::GenerateRequest;

use super::{assert_equal, streamed};
use crate::client::{With, begin_unread, collect, generate, request};
use crate::cluster::{Service, config, coordinator, eventually, random_draft, verifier};

/// Tokens of an answer that is not read: many more than all buffers on its way hold.
const LONG: u32 = 2_000;

/// Tokens that the engine holds once it has stopped making forwards.
async fn held_at_rest(monitor: &Arc<Verifier>) -> u32 {
    let mut before = 0;
    loop {
        tokio::time::sleep(Duration::from_millis(700)).await;
        let engine = monitor.engine();
        if engine.forwards > 0 && engine.forwards == before {
            return engine.cached_tokens as u32;
        }
        before = engine.forwards;
    }
}

/// A coordinator that grants so many tokens, plain or with log probabilities.
async fn granting(plain: u32, with_logprobs: u32, verifier: &Service) -> Service {
    let mut config = config(&[], &[verifier.url()]);
    config.round_timeout_ms = 500.try_into().expect("not zero");
    config.decode_ahead = plain.try_into().expect("not zero");
    config.decode_ahead_logprobs = with_logprobs.try_into().expect("not zero");
    coordinator(config).await
}

/// Only a few tokens come, so that much of the text was there before.
fn long(logprobs: bool) -> GenerateRequest {
    let mut requested = request("Once", LONG).ignoring_eos();
    let sampling = requested.sampling.get_or_insert_default();
    sampling.allowed_token_ids = (300..303).collect();
    requested.logprobs = logprobs;
    requested
}

#[tokio::test]
async fn a_client_that_does_not_read_holds_at_most_its_grant() {
    let roomy = random_draft(|config| config.context_len = 4_096);
    let (verifier, monitor) = verifier(roomy).await;
    for (logprobs, (plain, with_logprobs), least) in [
        (false, (16, 1_000), 16),
        (true, (1_000, 16), 16),
        // It is the grant that bounds it.
        (false, (1_000, 16), 1_000),
    ] {
        let coordinator = granting(plain, with_logprobs, &verifier).await;
        let requested = long(logprobs);
        let alone = requested.clone().method("target-only");
        let expected = generate(&coordinator, alone.clone()).await;
        assert_eq!(expected.tokens.len(), LONG as usize);
        for unread in [alone, streamed(requested)] {
            eventually("nothing is held", || monitor.engine().cached_tokens == 0).await;
            let parts = begin_unread(&coordinator, unread).await;
            let held = held_at_rest(&monitor).await;
            // What is on its way to the client comes to a few tokens a part.
            let most = least + 4 * (ANSWER_BUFFER as u32 + 50);
            assert!((least..most).contains(&held), "{held} of {least}");
            // Longer than a round may take.
            tokio::time::sleep(Duration::from_millis(700)).await;
            let late = collect(parts, |_| {}).await;
            assert_equal(&late, &expected, "read late");
            assert_eq!((late.statistics().retries, late.fallbacks()), (0, 0));
        }
    }
}
