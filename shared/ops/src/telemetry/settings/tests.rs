//! What of configuration and environment holds.

use std::time::Duration;

use super::*;

/// Returns what reads these variables.
fn among<'a>(variables: &'a [(&str, &str)]) -> impl Fn(&str) -> Option<String> + 'a {
    |name| {
        let found = variables.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| (*value).to_owned())
    }
}

/// Returns where traces and logs go.
fn resolved(
    config: &TelemetryConfig,
    variables: &[(&str, &str)],
) -> (Option<OtlpDestination>, Option<OtlpDestination>) {
    let of = |signal| destination(config, signal, &among(variables)).expect("in order");
    (of("traces"), of("logs"))
}

fn of_endpoint(endpoint: &str) -> TelemetryConfig {
    TelemetryConfig {
        endpoint: endpoint.to_owned(),
        ..TelemetryConfig::default()
    }
}

fn destination_of(url: &str, protocol: OtlpProtocol) -> OtlpDestination {
    OtlpDestination {
        uri: url.parse().expect("a URL"),
        protocol,
        authorities: None,
        timeout: Duration::from_secs(10),
    }
}

#[test]
fn nothing_is_sent_unless_somebody_says_where() {
    let config = TelemetryConfig::default();
    assert_eq!(resolved(&config, &[]), (None, None));
}

#[test]
fn the_configuration_is_stronger_than_variables_key_by_key() {
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://elsewhere:4318"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
    ];
    // The endpoint is from one, the protocol from the other.
    let over_http = |url| Some(destination_of(url, OtlpProtocol::HttpProtobuf));
    let expected = (
        over_http("http://here:9/v1/traces"),
        over_http("http://here:9/v1/logs"),
    );
    assert_eq!(
        resolved(&of_endpoint("http://here:9"), &variables),
        expected
    );
    let config = TelemetryConfig {
        protocol: Some(OtlpProtocol::Grpc),
        ..TelemetryConfig::default()
    };
    let traces = Some(destination_of("http://elsewhere:4318", OtlpProtocol::Grpc));
    assert_eq!(resolved(&config, &variables).0, traces);
}

#[test]
fn a_signals_own_variables_are_stronger_than_the_common_ones() {
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://common:4317"),
        (
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            "http://traces:4318/own/path",
        ),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf"),
    ];
    // The whole URL, as it is.
    let own = destination_of("http://traces:4318/own/path", OtlpProtocol::HttpProtobuf);
    let common = destination_of("http://common:4317", OtlpProtocol::Grpc);
    let expected = (Some(own), Some(common));
    assert_eq!(resolved(&TelemetryConfig::default(), &variables), expected);
}

#[test]
fn authorities_and_time_are_a_signals_own_or_common() {
    let variables = [
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/common.pem"),
        ("OTEL_EXPORTER_OTLP_LOGS_CERTIFICATE", "/logs.pem"),
        ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "250"),
    ];
    let of = |destination: Option<OtlpDestination>| {
        let destination = destination.expect("a destination");
        let (key, file) = destination.authorities.expect("some are chosen");
        (
            key,
            file.display().to_string(),
            destination.timeout.as_millis(),
        )
    };
    let config = of_endpoint("https://here:4317");
    let (traces, logs) = resolved(&config, &variables);
    let named = |key: &str, file: &str, ms| (key.to_owned(), file.to_owned(), ms);
    let common = "OTEL_EXPORTER_OTLP_CERTIFICATE";
    assert_eq!(of(traces), named(common, "/common.pem", 250));
    let own = "OTEL_EXPORTER_OTLP_LOGS_CERTIFICATE";
    assert_eq!(of(logs), named(own, "/logs.pem", 10_000));
    let config = TelemetryConfig {
        ca_file: "/ours.pem".into(),
        ..config
    };
    let ours = named("telemetry.ca_file", "/ours.pem", 10_000);
    assert_eq!(of(resolved(&config, &variables).1), ours);
}

#[test]
fn a_signal_that_is_turned_off_stays_off() {
    let config = of_endpoint("http://here:4317");
    let (traces, logs) = resolved(&config, &[("OTEL_TRACES_EXPORTER", "none")]);
    assert!(traces.is_none() && logs.is_some());
}

#[test]
fn samplers_follow_the_client_unless_the_variable_says_otherwise() {
    let sampled = |ratio: Option<f64>, variables: &[(&str, &str)]| {
        let config = TelemetryConfig {
            sample_ratio: ratio,
            ..TelemetryConfig::default()
        };
        let sampler = sampler(&config, &among(variables)).expect("in order");
        sampler.map(|sampler| format!("{sampler:?}"))
    };
    let following = |ratio| {
        let root = Sampler::TraceIdRatioBased(ratio);
        Some(format!("{:?}", Sampler::ParentBased(Box::new(root))))
    };
    assert_eq!(sampled(None, &[]), following(SAMPLE_RATIO));
    let named = [
        ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
        ("OTEL_TRACES_SAMPLER_ARG", "0.25"),
    ];
    assert_eq!(sampled(Some(0.5), &named), following(0.5));
    assert_eq!(sampled(None, &named), None, "the SDK reads it");
}

#[test]
fn what_cannot_be_used_is_named_with_its_value() {
    let of_ratio = |ratio| TelemetryConfig {
        sample_ratio: Some(ratio),
        ..TelemetryConfig::default()
    };
    // Configurations, and variables of the default one: `NAME=value NAME=value | what is said`.
    let mut wrong = vec![
        (
            of_endpoint("collector:4317"),
            " | telemetry.endpoint: \"collector:4317\"",
        ),
        (
            of_endpoint("unix:///run/collector"),
            " | write http://HOST:PORT",
        ),
        (
            of_endpoint("https://collector:4317"),
            "OTEL_EXPORTER_OTLP_TIMEOUT=10s | OTEL_EXPORTER_OTLP_TIMEOUT: \"10s\"",
        ),
        (of_ratio(1.5), " | telemetry.sample_ratio: \"1.5\""),
        (of_ratio(f64::NAN), " | telemetry.sample_ratio: \"NaN\""),
    ];
    let variables = [
        "OTEL_EXPORTER_OTLP_ENDPOINT=nowhere | OTEL_EXPORTER_OTLP_ENDPOINT: \"nowhere\"",
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=//x | OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        "OTEL_EXPORTER_OTLP_ENDPOINT=http://x:1 OTEL_EXPORTER_OTLP_PROTOCOL=http/json | expected grpc or http/protobuf",
        "OTEL_TRACES_EXPORTER=zipkin | OTEL_TRACES_EXPORTER: \"zipkin\"",
        "OTEL_TRACES_SAMPLER=jaeger_remote | OTEL_TRACES_SAMPLER: \"jaeger_remote\"",
        "OTEL_TRACES_SAMPLER=traceidratio OTEL_TRACES_SAMPLER_ARG=2 | OTEL_TRACES_SAMPLER_ARG: \"2\"",
    ];
    wrong.extend(variables.map(|line| (TelemetryConfig::default(), line)));
    for (config, line) in wrong {
        let (variables, expected) = line.split_once(" | ").expect("what is said");
        let variables: Vec<_> = variables
            .split(' ')
            .filter_map(|set| set.split_once('='))
            .collect();
        let environment = among(&variables);
        let sampler = sampler(&config, &environment).map(|_| ());
        let resolved = sampler.and(destination(&config, "traces", &environment).map(|_| ()));
        let error = resolved.expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
    }
}
