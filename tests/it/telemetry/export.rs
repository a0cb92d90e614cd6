//! What happens where spans do not get to a collector.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use drafter::{DrafterConfig, Loaded};
use ops::telemetry::OtlpProtocol;
use tokio::net::TcpListener;
use wire::v1::DraftRound;
use wire::v1::round_answer::Part;
use wire::v1::session_request::Request;

use super::watched::{everything, process, telemetry};
use crate::cluster::{draft, drafter_in};
use crate::protocol::{SessionStream, with_header};

#[tokio::test]
async fn a_collector_that_is_not_there_holds_nobody_up() {
    // Nobody listens at the one; the other accepts and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let silent = (silent.local_addr().expect("an address"), silent);
    for (address, protocol) in [
        (SocketAddr::from(([127, 0, 0, 1], 9)), OtlpProtocol::Grpc),
        (silent.0, OtlpProtocol::Grpc),
        (silent.0, OtlpProtocol::HttpProtobuf),
    ] {
        let mut config = everything(address);
        config.protocol = Some(protocol);
        let telemetry = telemetry(&config, "drafter");
        let drafting = DrafterConfig::default();
        let loaded = Loaded::beside(draft(), &drafting).expect("in order");
        let (drafter, _) = drafter_in(process(&telemetry), loaded, drafting).await;
        let mut stream = SessionStream::at_drafter(drafter.url(), |_| {}).await;
        for round in 1..=40 {
            let requested = DraftRound {
                max_tokens: 2,
                ..Default::default()
            };
            let mut requested = with_header(requested, round, &[]);
            let header = requested.header.get_or_insert_default();
            // As a coordinator sends it where the request is sampled; and one that cannot be one is no error.
            let context = [&[7; 16][..], &[9; 8], &[1]].concat();
            header.trace_context = if round < 40 { context } else { vec![1; 4_000] };
            stream.send(Request::Round(requested)).await;
            let part = stream.part().await.expect("an answer");
            assert!(matches!(part, Part::Block(_)), "{part:?}");
        }
        let began = Instant::now();
        telemetry.flush().await;
        let took = began.elapsed();
        assert!(took < Duration::from_secs(5), "the end waits {took:?}");
    }
}
