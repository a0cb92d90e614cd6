//! The command against a server within the test, whose answers are known.

mod stub;

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use self::stub::{Stub, StubFault, served};
use super::*;
use crate::cli::parsed;

async fn measured(url: &str, flags: &[&str]) -> anyhow::Result<BenchReport> {
    let args: ServeArgs = parsed(&[&["--url", url], flags].concat());
    let mut report = BenchReport::quiet();
    let measured = measure(&args, &mut report, &CancellationToken::new()).await;
    measured.map(|()| report)
}

#[tokio::test]
async fn what_a_server_does_is_counted_as_it_tells_it() {
    let drafts =
        json!({ "num_spec_steps": 2, "num_draft_tokens": 8, "num_accepted_draft_tokens": 4 });
    let (stub, url) = served(Stub {
        tells_usage: true,
        told: json!({ "metrics": { "speculative_decoding": drafts } }),
        ..Stub::default()
    })
    .await;
    let flags = [
        "--requests=10",
        "--warmup=2",
        "--concurrency=1,4",
        "--slo=ttft:60s",
        "--per-kind",
    ];
    let report = measured(&url, &flags).await.expect("measured");
    let rows = report.objects("load");
    assert_eq!(rows.len(), 2);
    for (row, at_once) in rows.iter().zip([1, 4]) {
        assert_eq!(row["concurrency"], at_once);
        assert_eq!((&row["completed"], &row["failed"]), (&json!(10), &json!(0)));
        assert_eq!(row["output_tokens"], json!(6.0));
        assert_eq!(row["tokens_per_event"], json!(2.0));
        assert_eq!(row["draft_acceptance_rate"], json!(0.5));
        assert_eq!(row["mean_acceptance_length"], json!(3.0));
        assert_eq!(row["drafts_told_by"], "answers");
        assert_eq!(row["within_slo"], json!(1.0));
    }
    // Ten requests of five kinds of built-in prompts.
    let kinds = report.objects("kinds");
    assert_eq!(kinds.len(), 10);
    assert!(
        kinds
            .iter()
            .all(|row| row["completed"] == 2 && row["tokens"] == json!(12.0))
    );
    let counts = |measure: &str| -> Vec<Value> {
        let rows = report.objects("latency").into_iter();
        let of_it = rows.filter(|row| row["measure"] == measure);
        of_it.map(|row| row["count"].clone()).collect()
    };
    assert_eq!(counts("ttft"), [10, 10]);
    assert_eq!(counts("itl"), [20, 20]);
    assert!(report.objects("failures").is_empty());
    assert_eq!(stub.asked.lock().len(), 2 + 20);
    let most = stub.most_open.load(Ordering::SeqCst);
    assert!((2..=4).contains(&most), "{most} at once");
    assert_eq!(stub.asked.lock()[0]["model"], "stub");
}

#[tokio::test]
async fn requests_that_fail_are_counted_by_reason_and_spoil_nothing_else() {
    let faults = [
        (1, StubFault::Busy),
        (2, StubFault::ErrorEvent),
        (3, StubFault::NoEnd),
        (4, StubFault::NoJson),
        (5, StubFault::Busy),
    ];
    let (_, url) = served(Stub {
        faults: faults.to_vec(),
        ..Stub::default()
    })
    .await;
    let flags = ["--requests=8", "--warmup=0", "--slo=ttft:60s"];
    let report = measured(&url, &flags).await.expect("measured");
    let row = &report.objects("load")[0];
    assert_eq!((&row["completed"], &row["failed"]), (&json!(3), &json!(5)));
    assert_eq!(row["within_slo"], json!(0.375));
    // Without usage an event is a token.
    assert_eq!(row["output_tokens"], json!(3.0));
    assert_eq!(row["input_tokens"], Value::Null);
    assert_eq!(row["drafts_told_by"], "not told");
    assert!(
        report
            .text()
            .contains("3 answers at rate inf told no usage")
    );
    let failures: Vec<(Value, Value)> = report
        .objects("failures")
        .into_iter()
        .map(|row| (row["reason"].clone(), row["failed"].clone()))
        .collect();
    let expected = [
        ("error in the stream", 1),
        ("malformed answer", 1),
        ("status 429", 2),
        ("stream ended early", 1),
    ];
    assert_eq!(
        failures,
        expected.map(|(reason, count)| (json!(reason), json!(count)))
    );
    let first = report.objects("failures")[2]["first"].to_string();
    assert!(
        first.contains("come again") && first.contains("--concurrency"),
        "{first}"
    );
}

#[tokio::test]
async fn synthetic_prompts_have_the_tokens_that_the_server_counts() {
    let (stub, url) = served(Stub {
        tells_usage: true,
        ..Stub::default()
    })
    .await;
    let flags = [
        "--input-tokens=104",
        "--output-tokens=7",
        "--requests=3",
        "--rate=100",
    ];
    let report = measured(&url, &flags).await.expect("measured");
    let row = &report.objects("load")[0];
    assert_eq!(
        (&row["input_tokens"], &row["rate"]),
        (&json!(104.0), &json!(100.0))
    );
    let asked = stub.asked.lock();
    // Two that count tokens, one that does not count, three that do.
    let tokens: Vec<u64> = asked
        .iter()
        .filter_map(|it| it["max_tokens"].as_u64())
        .collect();
    assert_eq!(tokens, [1, 1, 7, 7, 7, 7]);
    let prompts: Vec<&str> = asked
        .iter()
        .filter_map(|it| it["prompt"].as_str())
        .collect();
    assert!(
        prompts[3..]
            .iter()
            .all(|prompt| prompt.split(' ').count() == 50)
    );
    assert_ne!(prompts[3], prompts[4]);
}

#[tokio::test]
async fn chats_are_asked_as_messages_and_metrics_tell_drafts() {
    let (stub, url) = served(Stub::default()).await;
    let metrics = url.replace("/v1", "/metrics");
    let flags = [
        "--chat",
        "--requests=4",
        "--model=mine",
        "--metrics-url",
        &metrics,
    ];
    let extra = ["--extra-body", r#"{"seed": 7, "temperature": null}"#];
    let report = measured(&url, &[&flags[..], &extra].concat())
        .await
        .expect("measured");
    let row = &report.objects("load")[0];
    assert_eq!(row["drafts_told_by"], "metrics");
    // The warm-up is not in it.
    assert_eq!(
        (&row["drafted"], &row["accepted"]),
        (&json!(40.0), &json!(24.0))
    );
    assert_eq!(row["mean_acceptance_length"], json!(4.0));
    let asked = &stub.asked.lock()[0];
    assert_eq!(asked["messages"][0]["role"], "user");
    assert_eq!(
        (&asked["model"], &asked["seed"]),
        (&json!("mine"), &json!(7))
    );
    assert_eq!(asked.get("temperature"), None);
}

#[tokio::test]
async fn a_server_that_answers_nothing_is_told_with_its_address() {
    let (_, url) = served(Stub::default()).await;
    // The address of the server itself, and one where nobody listens.
    let without = url.replace("/v1", "");
    let nobody = "http://127.0.0.1:9/v1".to_owned();
    for (url, part) in [(without, "status 404"), (nobody, "cannot be reached")] {
        let error = measured(&url, &[]).await.expect_err("refused");
        let error = format!("{error:#}");
        assert!(error.contains(&url) && error.contains(part), "{error}");
    }
}

#[tokio::test]
async fn what_was_measured_before_an_interruption_is_told() {
    let (stub, url) = served(Stub::default()).await;
    let args: ServeArgs = parsed(&["--url", &url, "--requests=1000", "--warmup=0"]);
    let mut report = BenchReport::quiet();
    let stop = CancellationToken::new();
    let interrupting = async {
        while stub.asked.lock().len() < 3 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        stop.cancel();
    };
    let (measured, ()) = tokio::join!(measure(&args, &mut report, &stop), interrupting);
    measured.expect("told");
    let completed = report.objects("load")[0]["completed"]
        .as_u64()
        .expect("a count");
    assert!((1..1000).contains(&completed), "{completed}");
    assert!(
        report
            .text()
            .contains("of 1000 requests of rate inf had ended")
    );
}
