use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::*;

fn lines(metrics: &Metrics, name: &str) -> Vec<String> {
    let text = metrics.encode().unwrap();
    let of_name = |line: &&str| {
        let rest = line.strip_prefix("# ").unwrap_or(line);
        let rest = rest.trim_start_matches(|letter: char| letter.is_ascii_uppercase());
        rest.trim_start().starts_with(name)
    };
    text.lines().filter(of_name).map(str::to_owned).collect()
}

#[test]
fn definitions_are_consistent() {
    let mut seen = BTreeSet::new();
    for metric in names::ALL {
        let name = metric.name;
        assert!(seen.insert(name), "{name} stands twice");
        let known = ["outrider_", "gen_ai_server_", "process_"];
        assert!(
            known.iter().any(|prefix| name.starts_with(prefix)),
            "{name}"
        );
        assert!(
            !name.ends_with("_total") && !name.ends_with("_info"),
            "{name}"
        );
        assert!(
            !metric.help.ends_with('.') && !metric.help.is_empty(),
            "{name}"
        );
        if let MetricKind::Histogram(bounds) = metric.kind {
            assert!(bounds.is_sorted_by(|a, b| a < b), "{name}");
        }
    }
}

#[test]
fn a_counter_is_written_with_type_unit_and_labels() {
    let metrics = Metrics::default();
    // A clone is the same, and values are escaped.
    let labels = ["default", "a\"b\\c\nd"];
    metrics.counter(&names::DRAFT_TOKENS, &labels).inc_by(5.0);
    let clone = metrics.clone();
    clone.counter(&names::DRAFT_TOKENS, &labels).inc_by(2.0);
    assert_eq!(
        lines(&metrics, "outrider_draft_tokens"),
        [
            "# HELP outrider_draft_tokens Draft tokens verified; all nodes of a tree count.",
            "# TYPE outrider_draft_tokens counter",
            "# UNIT outrider_draft_tokens tokens",
            "outrider_draft_tokens_total{model=\"default\",method=\"a\\\"b\\\\c\\nd\"} 7.0",
        ]
    );
}

#[test]
fn a_bucket_shows_the_trace_of_a_request_in_it() {
    let metrics = Metrics::default();
    let labels = ["chat", "outrider", "m"];
    let metric = &names::TIME_TO_FIRST_TOKEN;
    let histogram = metrics.histogram(metric, &labels);
    histogram.observe_traced(0.03, Some("4bf92f3577b34da6"));
    histogram.observe_traced(0.3, None);
    let lines = lines(&metrics, "gen_ai_server_time_to_first_token_seconds_bucket");
    let traced: Vec<_> = lines.iter().filter(|line| line.contains('#')).collect();
    assert_eq!(traced.len(), 1, "{lines:#?}");
    assert!(traced[0].contains("le=\"0.04\""), "{traced:?}");
    assert!(
        traced[0].contains("1 # {trace_id=\"4bf92f3577b34da6\"} 0.03 "),
        "{traced:?}"
    );
}

#[test]
fn sources_are_summed_and_forgotten_when_they_are_gone() {
    let metrics = Metrics::default();
    let sessions = Arc::new(Mutex::new(3));
    for _ in 0..2 {
        let sessions = Arc::downgrade(&sessions);
        metrics.sample(move |samples| {
            let count = *sessions.upgrade()?.lock().unwrap();
            samples.add(&names::SESSIONS, &["verifier", "open"], f64::from(count));
            Some(())
        });
    }
    let name = "outrider_sessions{";
    assert_eq!(
        lines(&metrics, name),
        ["outrider_sessions{role=\"verifier\",state=\"open\"} 6.0"]
    );
    *sessions.lock().unwrap() = 0;
    assert_eq!(
        lines(&metrics, name),
        ["outrider_sessions{role=\"verifier\",state=\"open\"} 0.0"]
    );
    drop(sessions);
    assert!(lines(&metrics, name).is_empty());
}

#[test]
fn the_process_tells_of_itself() {
    let metrics = Metrics::default();
    let version = env!("CARGO_PKG_VERSION");
    let build = lines(&metrics, "outrider_build_info");
    assert_eq!(
        build,
        [format!("outrider_build_info{{version=\"{version}\"}} 1")]
    );
    if cfg!(target_os = "linux") {
        for name in [
            "process_cpu_seconds_total",
            "process_resident_memory_bytes{",
            "process_start_time_seconds{",
            "process_open_fds{",
            "process_threads{",
        ] {
            assert_eq!(lines(&metrics, name).len(), 1, "{name}");
        }
        let start = lines(&metrics, "process_start_time_seconds{")[0].clone();
        let start: f64 = start.rsplit_once(' ').unwrap().1.parse().unwrap();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let ago = now.unwrap().as_secs_f64() - start;
        assert!((-2.0..3_600.0).contains(&ago), "started {ago} s ago");
        let used = || -> f64 {
            let line = lines(&metrics, "process_cpu_seconds_total")[0].clone();
            line.rsplit_once(' ').unwrap().1.parse().unwrap()
        };
        let (before, began) = (used(), std::time::Instant::now());
        while used() < before + 0.05 {
            let waited = began.elapsed();
            assert!(waited.as_secs() < 30, "no processor time in {waited:?}");
        }
    }
}

#[test]
fn a_peer_tells_how_rounds_ended() {
    use tonic::Status;
    let metrics = Metrics::default();
    let peer = PeerMetrics::new(&metrics, "verifier");
    peer.computed(Duration::from_micros(70), Duration::from_millis(3), 4);
    peer.forwarded(Duration::from_millis(3), 1);
    for ended in [
        Ok(()),
        Err(Status::resource_exhausted("")),
        Err(Status::deadline_exceeded("")),
        Err(Status::invalid_argument("")),
        Err(Status::unavailable("")),
        Err(Status::internal("")),
    ] {
        peer.round(&ended);
    }
    let mut rounds = lines(&metrics, "outrider_peer_rounds_total");
    rounds.sort();
    let expected = [
        ("answered", 1),
        ("failed", 2),
        ("late", 1),
        ("overloaded", 1),
        ("refused", 1),
    ];
    let expected = expected.map(|(outcome, count)| {
        format!("outrider_peer_rounds_total{{role=\"verifier\",outcome=\"{outcome}\"}} {count}.0")
    });
    assert_eq!(rounds, expected);
    assert_eq!(
        lines(&metrics, "outrider_queue_duration_seconds_count"),
        ["outrider_queue_duration_seconds_count{role=\"verifier\"} 1"]
    );
    assert_eq!(
        lines(&metrics, "outrider_forward_duration_seconds_count"),
        ["outrider_forward_duration_seconds_count{role=\"verifier\"} 2"]
    );
}

/// Every code that a round can end with, and the outcome that it is counted as.
#[test]
fn rounds_of_a_peer_are_counted_by_their_outcome() {
    use tonic::{Code, Status};
    for (code, expected) in [
        (Code::Ok, "answered"),
        (Code::Cancelled, "failed"),
        (Code::Unknown, "failed"),
        (Code::InvalidArgument, "refused"),
        (Code::DeadlineExceeded, "late"),
        (Code::NotFound, "failed"),
        (Code::AlreadyExists, "failed"),
        (Code::PermissionDenied, "failed"),
        (Code::ResourceExhausted, "overloaded"),
        (Code::FailedPrecondition, "refused"),
        (Code::Aborted, "failed"),
        (Code::OutOfRange, "refused"),
        (Code::Unimplemented, "refused"),
        (Code::Internal, "failed"),
        (Code::Unavailable, "failed"),
        (Code::DataLoss, "failed"),
        (Code::Unauthenticated, "failed"),
    ] {
        let metrics = Metrics::default();
        let answered = match code {
            Code::Ok => Ok(()),
            code => Err(Status::new(code, "why")),
        };
        PeerMetrics::new(&metrics, "drafter").round(&answered);
        let counted = lines(&metrics, "outrider_peer_rounds_total{");
        let counted: Vec<_> = counted
            .iter()
            .filter(|line| line.ends_with(" 1.0"))
            .collect();
        let label = format!("outcome=\"{expected}\"");
        assert!(
            counted.len() == 1 && counted[0].contains(&label),
            "{code:?}: {counted:?}"
        );
    }
}
