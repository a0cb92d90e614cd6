//! Spans as they come to an exporter.

use std::time::{Duration, Instant};

use opentelemetry::trace::{SpanId, Status};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider, SpanData, SpanExporter};
use tonic::metadata::MetadataMap;

use super::*;

/// Keeps what is exported.
#[derive(Clone, Debug, Default)]
struct Kept(Arc<std::sync::Mutex<Vec<SpanData>>>);

impl SpanExporter for Kept {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.0.lock().expect("no panic").extend(batch);
        Ok(())
    }
}

fn traces(sampler: Sampler) -> (Traces, Kept) {
    let kept = Kept::default();
    let provider = SdkTracerProvider::builder()
        .with_simple_exporter(kept.clone())
        .with_sampler(sampler)
        .build();
    let options = TraceOptions {
        round_every: 4,
        capture_text: false,
    };
    (Traces::new(provider, options).of("test"), kept)
}

fn following(root: Sampler) -> Sampler {
    Sampler::ParentBased(Box::new(root))
}

fn metadata(traceparent: &str) -> MetadataMap {
    let mut metadata = MetadataMap::new();
    metadata.insert("traceparent", traceparent.parse().expect("ASCII"));
    metadata
}

const TRACE_ID: &str = "0af7651916cd43dd8448eb211c80319c";
const SPAN_ID: &str = "b7ad6b7169203331";

#[test]
fn spans_hang_together_across_services() {
    let (traces, kept) = traces(following(Sampler::AlwaysOn));
    let request = traces.request("chat", &metadata(&format!("00-{TRACE_ID}-{SPAN_ID}-01")));
    let bytes = request.context().expect("sampled").to_bytes();
    let came = Instant::now();
    let mut round = traces.of("peer").round("draft", &bytes, came);
    let share = TimeBreakdown {
        queue: Duration::from_micros(1),
        ..TimeBreakdown::default()
    };
    round.add_breakdown(&share, came, None);
    drop((round, request));
    let kept = kept.0.lock().expect("no panic");
    let [queue, draft, chat] = kept.as_slice() else {
        panic!("three spans: {kept:?}");
    };
    assert_eq!(queue.start_time, draft.start_time, "no earlier");
    assert_eq!((chat.name.as_ref(), draft.name.as_ref()), ("chat", "draft"));
    assert_eq!(chat.span_context.trace_id().to_string(), TRACE_ID);
    assert_eq!(chat.parent_span_id.to_string(), SPAN_ID);
    assert_eq!(draft.span_context.trace_id(), chat.span_context.trace_id());
    assert_eq!(draft.parent_span_id, chat.span_context.span_id());
    assert_eq!(draft.instrumentation_scope.name(), "peer");
    assert_eq!(
        draft.instrumentation_scope.schema_url(),
        Some(names::SCHEMA_URL)
    );
}

#[test]
fn spans_made_afterwards_have_the_times_that_were_measured() {
    let (traces, kept) = traces(Sampler::AlwaysOn);
    let request = traces.request("chat", &MetadataMap::new());
    let now = Instant::now();
    let began = now.checked_sub(Duration::from_millis(50)).unwrap_or(now);
    let mut part = request.child_at("part", SpanKind::Internal, began);
    part.set("count", 3);
    part.fail("no");
    let share = TimeBreakdown {
        queue: Duration::from_millis(2),
        forward: Duration::from_millis(5),
        accept: Duration::from_millis(3),
        prefills: true,
        forwarded_tokens: 9,
        batch: 2,
    };
    part.add_breakdown(&share, began + Duration::from_millis(1), None);
    part.end_at(began + Duration::from_millis(20));
    drop(request);
    let kept = kept.0.lock().expect("no panic");
    let took = |span: &SpanData| {
        span.end_time
            .duration_since(span.start_time)
            .expect("in order")
    };
    let called: Vec<_> = kept.iter().map(|span| span.name.as_ref()).collect();
    assert_eq!(called, ["queue", "prefill", "accept", "part", "chat"]);
    let [queue, prefill, accept, part, chat] = kept.as_slice() else {
        unreachable!("just counted");
    };
    assert_eq!(took(part), Duration::from_millis(20));
    assert_eq!(took(prefill), Duration::from_millis(5));
    assert_eq!(prefill.start_time, queue.end_time, "one after the other");
    assert_eq!(accept.start_time, prefill.end_time);
    assert_eq!(prefill.parent_span_id, part.span_context.span_id());
    assert_eq!(part.parent_span_id, chat.span_context.span_id());
    assert_eq!(chat.parent_span_id, SpanId::INVALID);
    assert_eq!(part.status, Status::error("no"));
    let forwarded = Attribute::new(names::FORWARDED_TOKENS, 9);
    assert!(prefill.attributes.contains(&forwarded));
    let batch = Attribute::new(names::BATCH, 2);
    let reported = [prefill, part].map(|span| span.attributes.contains(&batch));
    assert_eq!(reported, [true, true]);
    // What is called after its parent began lies before it by the clock of the parent.
    assert!(part.start_time < chat.start_time);
}

#[test]
fn a_request_that_is_not_sampled_is_nothing() {
    let sampled = metadata(&format!("00-{TRACE_ID}-{SPAN_ID}-01"));
    let unsampled = metadata(&format!("00-{TRACE_ID}-{SPAN_ID}-00"));
    let (traces, kept) = traces(following(Sampler::AlwaysOff));
    let request = traces.request("chat", &MetadataMap::new());
    assert!(!request.is_recorded() && request.context().is_none());
    assert!(
        !request
            .child_at("part", SpanKind::Internal, Instant::now())
            .is_recorded()
    );
    assert!(
        traces.request("chat", &sampled).is_recorded(),
        "the client decided"
    );
    assert!(!traces.request("chat", &unsampled).is_recorded());
    drop(request);
    assert_eq!(kept.0.lock().expect("no panic").len(), 1);
    let off = Traces::default();
    assert!(!off.request("chat", &sampled).is_recorded() && !off.has_spans(0));
}

#[test]
fn a_context_that_cannot_be_one_is_ignored() {
    let (traces, kept) = traces(Sampler::AlwaysOn);
    let whole = traces
        .request("chat", &MetadataMap::new())
        .context()
        .expect("sampled");
    let bytes = whole.to_bytes();
    assert_eq!(TraceContext::from_bytes(&bytes), Some(whole));
    let no_trace = [&[0; 16][..], &bytes[16..]].concat();
    let no_span = [&bytes[..16], &[0; 8], &[1]].concat();
    let longer = [&bytes[..], &[0]].concat();
    for wrong in [&[][..], &bytes[..24], &longer, &no_trace, &no_span] {
        assert_eq!(TraceContext::from_bytes(wrong), None, "{wrong:?}");
        assert!(!traces.round("draft", wrong, Instant::now()).is_recorded());
    }
    for wrong in [
        "",
        "00-0-0-01",
        "nonsense",
        &format!("ff-{TRACE_ID}-{SPAN_ID}-01"),
    ] {
        assert!(traces.request("root", &metadata(wrong)).is_recorded());
    }
    let kept = kept.0.lock().expect("no panic");
    assert_eq!(kept.len(), 5, "roots only");
    assert!(
        kept.iter()
            .all(|span| span.parent_span_id == SpanId::INVALID)
    );
}

#[test]
fn one_round_in_so_many_has_spans_from_the_first_on() {
    let (traces, _kept) = traces(Sampler::AlwaysOn);
    let has: Vec<_> = (0..9).filter(|&index| traces.has_spans(index)).collect();
    assert_eq!(has, [0, 4, 8]);
}
