//! Histograms of requests lead to the traces of the requests in them.

use server::admin;
use server::process::Process;
use server::telemetry::{Telemetry, TelemetryConfig};
use tokio::net::TcpListener;
use tonic::Request;

use super::Watched;
use crate::client::{With, collect, generate, request};
use crate::cluster::{client, config, coordinator_in, target};

const TRACE_ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

#[tokio::test]
async fn a_traced_request_stands_with_its_bucket_and_others_do_not() {
    let verifier = Watched::verifier(target()).await;
    // Only what a client has traced already is traced; nobody takes the spans.
    let traced = TelemetryConfig {
        endpoint: "http://127.0.0.1:9".to_owned(),
        sample_ratio: Some(0.0),
        ..TelemetryConfig::default()
    };
    let telemetry = Telemetry::new(&traced, "coordinator", &|_| None).expect("in order");
    let process = Process {
        traces: telemetry.traces().clone(),
        ..Process::default()
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let admin = admin::serve(listener, &process).expect("an admin port");
    let service = coordinator_in(process, config(&[], &[verifier.service.url()])).await;
    let coordinator = Watched { service, admin };
    let histograms = [
        "gen_ai_server_request_duration_seconds",
        "gen_ai_server_time_to_first_token_seconds",
        "gen_ai_server_time_per_output_token_seconds",
    ];

    let asked = request("Once upon a time", 20).ignoring_eos();
    generate(&coordinator.service, asked.clone()).await;
    let scrape = coordinator.scrape().await;
    for histogram in histograms {
        assert!(scrape.exemplars(histogram).is_empty(), "{histogram}");
    }

    let mut asked = Request::new(asked);
    let parent = format!("00-{TRACE_ID}-00f067aa0ba902b7-01");
    let parent = parent.parse().expect("ASCII");
    asked.metadata_mut().insert("traceparent", parent);
    let parts = client(&coordinator.service).generate(asked).await;
    collect(parts.expect("in order").into_inner(), |_| {}).await;
    let scrape = coordinator.scrape().await;
    for histogram in histograms {
        let exemplars = scrape.exemplars(histogram);
        let ids: Vec<&str> = exemplars.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(ids, [TRACE_ID], "{histogram}");
    }
}
