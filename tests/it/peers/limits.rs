//! What requests hold is bounded in bytes, and what needs much of it can be forbidden.

use tonic::Code;
use wire::v1::GenerateRequest;

use crate::client::{With, generate, request, try_generate};
use crate::cluster::{config, coordinator, pair};

/// A request whose blocks the coordinator decides, and reports with all distributions.
fn reporting() -> GenerateRequest {
    let mut requested = request("Once upon a time", 200)
        .draft_len(32)
        .ignoring_eos();
    requested.set("accept_at", "coordinator");
    requested.report_distributions = true;
    requested
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_forbids_what_holds_much() {
    let (drafter, verifier) = pair().await;
    let of = async |change: fn(&mut coordinator::CoordinatorConfig)| {
        let mut config = config(&[drafter.url()], &[verifier.url()]);
        change(&mut config);
        coordinator(config).await
    };
    let no_reports = of(|config| config.allow_distribution_reports = false).await;
    let refused = try_generate(&no_reports, reporting())
        .await
        .expect_err("forbidden");
    assert!(
        refused
            .message()
            .starts_with("report_distributions: not allowed"),
        "{refused:?}"
    );
    let mut quiet = reporting();
    quiet.report_distributions = false;
    generate(&no_reports, quiet.clone()).await;
    let never = of(|config| config.allow_accept_at_coordinator = false).await;
    let refused = try_generate(&never, quiet).await.expect_err("forbidden");
    assert!(
        refused
            .message()
            .starts_with("settings.accept_at: coordinator is not"),
        "{refused:?}"
    );
    generate(&never, request("Once upon a time", 8)).await;
}

/// Megabytes of this process that are in memory.
fn resident_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kb = line.and_then(|line| line.split_whitespace().next());
    kb.expect("a size").parse::<u64>().expect("a number") / 1024
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_that_nobody_reads_take_no_more_than_their_budget() {
    let (drafter, verifier) = pair().await;
    let mut config = config(&[drafter.url()], &[verifier.url()]);
    // A round of 33 positions is 1.1 MB as it comes, as much as it is read, and both again for its report.
    config.max_distribution_bytes = (64 << 20).try_into().expect("not zero");
    let coordinator = coordinator(config).await;
    generate(&coordinator, reporting()).await;
    let before = resident_mb();
    let mut unread = Vec::new();
    let refused = loop {
        match try_begin(&coordinator).await {
            Ok(parts) => unread.push(parts),
            Err(refused) => break refused,
        }
        assert!(unread.len() < 60, "everybody is let in");
    };
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(unread.len() > 4, "{} are let in", unread.len());
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let grown = resident_mb().saturating_sub(before);
    // The peers live in this process too.
    assert!(grown < 200, "{grown} MB for {} requests", unread.len());
    drop(unread);
}

async fn try_begin(
    coordinator: &crate::cluster::Service,
) -> Result<tonic::Streaming<wire::v1::GenerateResponse>, tonic::Status> {
    let mut client = crate::cluster::client(coordinator);
    Ok(client.generate(reporting()).await?.into_inner())
}
