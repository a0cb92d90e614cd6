//! Readiness of a coordinator: it is ready while a verifier of any model answers, so that one model's outage does not keep
//! the others from being served.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fleet::ServedModel;
use futures_util::future::join_all;

use crate::front::SharedState;

/// Time between two attempts to reach a model's first verifier.
const SEARCH_INTERVAL: Duration = Duration::from_millis(500);

/// Longest time between two checks whether verifiers answer.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// Reports the service ready once a verifier of any model has sent its tokenizer, and then for as long as one answers.
/// Checks drafters meanwhile.
pub(super) async fn watch(shared: &SharedState) -> Infallible {
    shared.health.wait();
    let each = shared.models.iter().map(async |model| {
        find_verifier(model).await;
        shared.health.ready();
        model.watch_drafters().await;
    });
    let (never, _) = tokio::join!(watch_verifiers(shared), join_all(each));
    never
}

/// Reports the service not ready while no verifier of any model answers, once that has lasted as long as the
/// configuration allows.
async fn watch_verifiers(shared: &SharedState) -> Infallible {
    let timeout = Duration::from_millis(shared.config.unready_after_ms.get());
    let (mut heard, mut is_waiting) = (Instant::now(), false);
    loop {
        tokio::time::sleep((timeout / 3).min(LOOK_INTERVAL)).await;
        let all = join_all(shared.models.iter().map(|model| model.probe_verifiers()));
        if all.await.contains(&true) {
            heard = Instant::now();
            if is_waiting {
                is_waiting = false;
                tracing::info!("a verifier answers again");
                shared.health.ready();
            }
        } else if !is_waiting && heard.elapsed() >= timeout {
            is_waiting = true;
            let models = shared.models.names().join(", ");
            tracing::warn!(models, patience = ?timeout, "not ready: no verifier has answered");
            shared.health.wait();
        }
    }
}

/// Completes when a verifier of `model` has sent its tokenizer, and the others and the drafters were met once.
async fn find_verifier(model: &Arc<ServedModel>) {
    let mut reported = String::new();
    while let Err(error) = model.target(&[0; 16]).await {
        let reason = error.details();
        if reason != reported {
            tracing::info!(
                model = model.name(),
                error = reason,
                "waiting for a verifier"
            );
            reported = reason;
        }
        tokio::time::sleep(SEARCH_INTERVAL).await;
    }
    tokio::join!(model.probe_verifiers(), model.probe_drafters());
}
