//! Histograms of requests lead to the traces of the requests in them.

use ops::process::Process;
use ops::telemetry::{Telemetry, TelemetryConfig};

use crate::client::{With, generate, request, with_parent};
use crate::cluster::{config, coordinator_in, target, verifier};

const TRACE_ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

#[tokio::test]
async fn a_traced_request_stands_with_its_bucket_and_others_do_not() {
    let (verifier, _) = verifier(target()).await;
    // Only what a client has traced already is traced; nobody takes the spans.
    let traced = TelemetryConfig {
        endpoint: "http://127.0.0.1:9".to_owned(),
        sample_ratio: Some(0.0),
        ..TelemetryConfig::default()
    };
    let telemetry = Telemetry::new(&traced, "coordinator", &|_| None).expect("in order");
    let process = Process {
        traces: telemetry.traces.clone(),
        ..Process::default()
    };
    let coordinator = coordinator_in(process, config(&[], &[verifier.url()])).await;
    let check = |expected: &[&str]| {
        let scrape = coordinator.scrape();
        for histogram in [
            "request_duration",
            "time_to_first_token",
            "time_per_output_token",
        ] {
            let exemplars = scrape.exemplars(&format!("gen_ai_server_{histogram}_seconds"));
            let ids: Vec<&str> = exemplars.iter().map(|(id, _)| id.as_str()).collect();
            assert_eq!(ids, expected, "{histogram}");
        }
    };
    let requested = request("Once upon a time", 20).ignoring_eos();
    generate(&coordinator, requested.clone()).await;
    check(&[]);
    let parent = format!("00-{TRACE_ID}-00f067aa0ba902b7-01");
    with_parent(&coordinator, requested, &parent).await;
    check(&[TRACE_ID]);
}
