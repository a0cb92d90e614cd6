//! What happens where spans do not get to a collector; and what a peer makes of a context.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use drafter::{DrafterConfig, Loaded, Monitor};
use server::telemetry::{Protocol, Telemetry};
use server::trace::names;
use tokio::net::TcpListener;
use wire::v1::DraftRound;
use wire::v1::draft_reply::Reply;

use super::collector::Collector;
use super::watched::{everything, process, telemetry};
use crate::cluster::{Service, draft, drafter_in, eventually};
use crate::protocol::{DraftStream, with_header};

/// A drafter that tells of its spans.
async fn drafter(telemetry: &Telemetry) -> (Service, Monitor) {
    let config = DrafterConfig::default();
    let loaded = Loaded::beside(draft(), &config).expect("in order");
    drafter_in(process(telemetry), loaded, config).await
}

#[tokio::test]
async fn a_collector_that_is_not_there_holds_nobody_up() {
    // Nobody listens at the one; the other accepts and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let silent = (silent.local_addr().expect("an address"), silent);
    for (address, protocol) in [
        (SocketAddr::from(([127, 0, 0, 1], 9)), Protocol::Grpc),
        (silent.0, Protocol::Grpc),
        (silent.0, Protocol::HttpProtobuf),
    ] {
        let mut config = everything(address);
        config.protocol = Some(protocol);
        let telemetry = telemetry(&config, "drafter");
        let (drafter, _) = drafter(&telemetry).await;
        let context = context(1);
        let mut stream = DraftStream::opened(drafter.url(), |_| {}).await;
        for round in 1..=40 {
            let reply = ask(&mut stream, round, &context).await;
            assert!(matches!(reply, Reply::Block(_)), "{reply:?}");
        }
        let began = Instant::now();
        telemetry.flush().await;
        let took = began.elapsed();
        assert!(took < Duration::from_secs(5), "the end waits {took:?}");
    }
}

/// A context as a coordinator sends it, sampled or not.
fn context(flags: u8) -> Vec<u8> {
    [&[7; 16][..], &[9; 8], &[flags]].concat()
}

/// What a drafter answers to a round with this context.
async fn ask(stream: &mut DraftStream, round: u64, context: &[u8]) -> Reply {
    let asked = DraftRound {
        max_tokens: 2,
        ..Default::default()
    };
    let mut asked = with_header(asked, round, &[]);
    asked.header.get_or_insert_default().trace_context = context.to_vec();
    stream.send(asked).await;
    stream.receive().await.expect("an answer")
}

#[tokio::test]
async fn a_context_that_cannot_be_one_is_no_error() {
    let (collector, address) = Collector::start().await;
    let telemetry = telemetry(&everything(address), "drafter");
    let (drafter, monitor) = drafter(&telemetry).await;
    let mut stream = DraftStream::opened(drafter.url(), |_| {}).await;
    let no_trace = [&[0; 16][..], &[9; 8], &[1]].concat();
    let contexts = [
        Vec::new(),
        vec![1],
        context(1)[..24].to_vec(),
        vec![1; 26],
        vec![1; 4_000],
        no_trace,
        context(0),
        context(1),
    ];
    for (round, context) in (1..).zip(&contexts) {
        let reply = ask(&mut stream, round, context).await;
        assert!(matches!(reply, Reply::Block(_)), "{context:?}: {reply:?}");
    }
    drop(stream);
    eventually("the session is closed", || monitor.sessions().attached == 0).await;
    telemetry.flush().await;
    let spans = collector.spans();
    let drafted = spans.one(names::DRAFT);
    let span = &drafted.span;
    let context = [&span.trace_id[..], &span.parent_span_id, &[1]].concat();
    assert_eq!(context, contexts[7]);
    let forwards = [names::FORWARD, names::PREFILL].map(|name| spans.all(name).len());
    assert_eq!(forwards.iter().sum::<usize>(), 1);
}
