//! What does not go with a stream is refused by name.

use speculation::methods::SettingValue;

use super::{repeating, streamed};
use crate::client::{With, generate};
use crate::cluster::{Cluster, draft};
use crate::errors::{Case, each_refused};

#[tokio::test]
async fn what_belongs_to_rounds_is_refused_by_name() {
    let cluster = Cluster::start(draft()).await;
    let with = |expected, method: &str, name: &str, value: SettingValue| -> Case {
        let requested = streamed(repeating(8)).method(method);
        (expected, requested.with(name, value))
    };
    let cases = vec![
        with(
            "settings.schedule | 'stream' | 'token'",
            "rejection",
            "draft_cap",
            8.into(),
        ),
        with(
            "settings.schedule | accept_at",
            "coupled",
            "accept_at",
            "coordinator".into(),
        ),
        with(
            "settings.schedule | 'comb:3'",
            "coupled",
            "tree",
            "comb:3".into(),
        ),
        with(
            "settings.schedule | draft_len | draft_cap",
            "coupled",
            "draft_len",
            4.into(),
        ),
        with(
            "settings.schedule | drafting 'cascade'",
            "coupled",
            "drafting",
            "cascade".into(),
        ),
        with(
            "settings.schedule | 'waves' | auto, rounds, stream",
            "coupled",
            "schedule",
            "waves".into(),
        ),
    ];
    each_refused(&cluster.coordinator, cases).await;
    let mut reporting = streamed(repeating(8));
    reporting.report_distributions = true;
    let refused = vec![("report_distributions | accept_at", reporting)];
    each_refused(&cluster.coordinator, refused).await;
    // Nothing was lost by it, and what says the same as the default goes.
    let plain = streamed(repeating(8)).with("accept_at", "verifier");
    let plain = plain.with("drafting", "max-gram").with("draft_len", "auto");
    generate(&cluster.coordinator, plain.with("tree", "chain")).await;
}
