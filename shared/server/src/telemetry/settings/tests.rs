//! What of configuration and environment holds.

use std::time::Duration;

use super::*;

/// Settings of `config` under these variables.
fn resolve(
    config: &TelemetryConfig,
    variables: &[(&str, &str)],
) -> Result<Settings, TelemetryError> {
    Settings::resolve(config, &|name| {
        let found = variables.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| (*value).to_owned())
    })
}

fn resolved(config: &TelemetryConfig, variables: &[(&str, &str)]) -> Settings {
    resolve(config, variables).expect("in order")
}

fn of_endpoint(endpoint: &str) -> TelemetryConfig {
    TelemetryConfig {
        endpoint: endpoint.to_owned(),
        logs: true,
        ..TelemetryConfig::default()
    }
}

fn destination_of(url: &str, protocol: Protocol) -> Destination {
    Destination {
        url: url.to_owned(),
        protocol,
        authorities: None,
        timeout: Duration::from_secs(10),
    }
}

#[test]
fn nothing_is_sent_unless_somebody_says_where() {
    let settings = resolved(&TelemetryConfig::default(), &[]);
    assert_eq!((settings.traces, settings.logs), (None, None));
    let empty = [("OTEL_EXPORTER_OTLP_ENDPOINT", "")];
    assert_eq!(resolved(&TelemetryConfig::default(), &empty).traces, None);
}

#[test]
fn the_configuration_is_stronger_than_variables_key_by_key() {
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://elsewhere:4318"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
        ("OTEL_SERVICE_NAME", "theirs"),
    ];
    let settings = resolved(&of_endpoint("http://here:9"), &variables);
    // The endpoint is from one, the protocol from the other.
    let over_http = |url| Some(destination_of(url, Protocol::HttpProtobuf));
    assert_eq!(settings.traces, over_http("http://here:9/v1/traces"));
    assert_eq!(settings.logs, over_http("http://here:9/v1/logs"));
    assert_eq!(settings.service_name.as_deref(), Some("theirs"));

    let config = TelemetryConfig {
        protocol: Some(Protocol::Grpc),
        service_name: "ours".to_owned(),
        ..TelemetryConfig::default()
    };
    let settings = resolved(&config, &variables);
    let traces = Some(destination_of("http://elsewhere:4318", Protocol::Grpc));
    assert_eq!(settings.traces, traces);
    assert_eq!(settings.logs, None, "only where that is asked for");
    assert_eq!(settings.service_name.as_deref(), Some("ours"));
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
    let config = TelemetryConfig {
        logs: true,
        ..TelemetryConfig::default()
    };
    let settings = resolved(&config, &variables);
    // The whole URL, as it is.
    let own = destination_of("http://traces:4318/own/path", Protocol::HttpProtobuf);
    let common = destination_of("http://common:4317", Protocol::Grpc);
    assert_eq!((settings.traces, settings.logs), (Some(own), Some(common)));
}

#[test]
fn authorities_and_time_are_a_signals_own_or_common() {
    let variables = [
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/common.pem"),
        ("OTEL_EXPORTER_OTLP_LOGS_CERTIFICATE", "/logs.pem"),
        ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "250"),
    ];
    let of = |destination: Option<Destination>| {
        let destination = destination.expect("a destination");
        let authorities = destination.authorities.expect("some are chosen");
        let file = authorities.file.display().to_string();
        (authorities.key, file, destination.timeout.as_millis())
    };
    let config = of_endpoint("https://here:4317");
    let settings = resolved(&config, &variables);
    let named = |key: &str, file: &str, ms| (key.to_owned(), file.to_owned(), ms);
    let common = "OTEL_EXPORTER_OTLP_CERTIFICATE";
    assert_eq!(of(settings.traces), named(common, "/common.pem", 250));
    let own = "OTEL_EXPORTER_OTLP_LOGS_CERTIFICATE";
    assert_eq!(of(settings.logs), named(own, "/logs.pem", 10_000));
    let config = TelemetryConfig {
        ca_file: "/ours.pem".into(),
        ..config
    };
    let ours = named("telemetry.ca_file", "/ours.pem", 10_000);
    assert_eq!(of(resolved(&config, &variables).logs), ours);
}

#[test]
fn what_is_turned_off_stays_off() {
    let config = of_endpoint("http://here:4317");
    let off = resolved(&config, &[("OTEL_SDK_DISABLED", "True")]);
    assert_eq!((off.traces, off.logs), (None, None));
    let on = resolved(&config, &[("OTEL_SDK_DISABLED", "no")]);
    assert!(on.traces.is_some() && on.logs.is_some());
    let no_traces = resolved(&config, &[("OTEL_TRACES_EXPORTER", "none")]);
    assert!(no_traces.traces.is_none() && no_traces.logs.is_some());
}

#[test]
fn samplers_follow_the_client_unless_the_variable_says_otherwise() {
    let sampler = |ratio: Option<f64>, variables: &[(&str, &str)]| {
        let config = TelemetryConfig {
            sample_ratio: ratio,
            ..TelemetryConfig::default()
        };
        format!("{:?}", resolved(&config, variables).sampler)
    };
    let following = |root: Sampler| format!("{:?}", Sampler::ParentBased(Box::new(root)));
    let at = |ratio| following(Sampler::TraceIdRatioBased(ratio));
    assert_eq!(sampler(None, &[]), at(SAMPLE_RATIO));
    let named = |name| {
        [
            ("OTEL_TRACES_SAMPLER", name),
            ("OTEL_TRACES_SAMPLER_ARG", "0.25"),
        ]
    };
    assert_eq!(sampler(Some(0.5), &named("always_off")), at(0.5));
    for (name, expected) in [
        ("parentbased_traceidratio", at(0.25)),
        ("parentbased_always_on", following(Sampler::AlwaysOn)),
        ("parentbased_always_off", following(Sampler::AlwaysOff)),
        ("traceidratio", "TraceIdRatioBased(0.25)".to_owned()),
        ("always_on", "AlwaysOn".to_owned()),
        ("always_off", "AlwaysOff".to_owned()),
    ] {
        assert_eq!(sampler(None, &named(name)), expected);
    }
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
        let error = resolve(&config, &variables)
            .expect_err(expected)
            .to_string();
        assert!(error.contains(expected), "{error}");
    }
}
