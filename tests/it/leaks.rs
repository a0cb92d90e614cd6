//! When a request is over, for whatever reason, nothing of it remains.

use crate::client::{With, begin, generate, request};
use crate::cluster::{Cluster, draft, eventually};

fn nothing_is_held(cluster: &Cluster) -> bool {
    let (draft, target) = (&cluster.draft_monitor, &cluster.target_monitor);
    let sessions = [draft.sessions(), target.sessions()];
    let engines = [draft.engine(), target.engine()];
    sessions
        .iter()
        .all(|held| held.attached + held.detached == 0)
        && engines.iter().all(|held| {
            (held.running, held.queued) == (0, 0) && (held.sequences, held.cached_tokens) == (0, 0)
        })
}

#[tokio::test]
async fn finished_requests_leave_nothing_behind() {
    let cluster = Cluster::start(draft()).await;
    for method in speculation::methods::METHODS {
        let requested = request("Once upon a time", 20).method(method.name);
        generate(&cluster.coordinator, requested).await;
        eventually(method.name, || nothing_is_held(&cluster)).await;
    }
}

#[tokio::test]
async fn clients_that_go_away_free_both_peers() {
    let cluster = Cluster::start(draft()).await;
    for method in ["coupled", "rejection", "target-only"] {
        let long = request("Once upon a time", 480)
            .ignoring_eos()
            .method(method);
        let mut parts = begin(&cluster.coordinator, long).await;
        // What was said of the start and a first chunk: both peers, or the one needed, have a session.
        for _ in 0..2 {
            parts.message().await.expect("a part");
        }
        drop(parts);
        eventually(method, || nothing_is_held(&cluster)).await;
    }
}

#[tokio::test]
async fn a_killed_coordinator_costs_a_lease_and_no_more() {
    let (drafter, _) = crate::cluster::drafter(draft()).await;
    let (verifier, monitor) = crate::cluster::verifier(crate::cluster::target()).await;
    let mut config = crate::cluster::config(&[drafter.url()], &[verifier.url()]);
    config.lease_ms = 600.try_into().expect("not zero");
    let coordinator = crate::cluster::coordinator(config).await;
    let long = request("Once upon a time", 480).ignoring_eos();
    let mut parts = begin(&coordinator, long).await;
    for _ in 0..3 {
        parts.message().await.expect("a part");
    }
    drop(coordinator);
    eventually("the session is freed", || {
        let counts = monitor.sessions();
        counts.attached + counts.detached == 0 && monitor.engine().sequences == 0
    })
    .await;
}
