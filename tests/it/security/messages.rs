//! Messages at the edge of what is taken, and beyond it.

use net::MAX_MESSAGE_BYTES;
use tonic::Code;
use tonic::codec::CompressionEncoding;
use wire::v1::coordinator_client::CoordinatorClient;
use wire::v1::drafter_client::DrafterClient;
use wire::v1::session_request::Request;
use wire::v1::verifier_client::VerifierClient;
use wire::v1::{GenerateRequest, Open, SessionRequest};

use crate::client::{generate, request, try_generate};
use crate::cluster::{Cluster, draft};

/// The largest message of a client.
const MAX_REQUEST_BYTES: usize = 4 << 20;

/// A prompt that makes a request of `bytes` bytes in all.
fn padded(bytes: usize) -> wire::v1::GenerateRequest {
    use wire::encoded_bytes;
    let overhead = encoded_bytes(&request(&"x".repeat(bytes), 8)) as usize - bytes;
    let requested = request(&"x".repeat(bytes - overhead), 8);
    assert_eq!(encoded_bytes(&requested) as usize, bytes);
    requested
}

#[tokio::test]
async fn a_client_sends_four_mebibytes_and_not_a_byte_more() {
    let cluster = Cluster::start(draft()).await;
    // Taken, and then refused for what is in it.
    let status = try_generate(&cluster.coordinator, padded(MAX_REQUEST_BYTES)).await;
    let status = status.expect_err("no context holds that");
    assert_eq!(status.code(), Code::InvalidArgument);
    let at_sight = "prompt: This model's maximum context length is 512 tokens; 4194";
    assert!(status.message().starts_with(at_sight), "{status}");
    assert!(status.message().contains("which cannot fit"), "{status}");
    let status = try_generate(&cluster.coordinator, padded(MAX_REQUEST_BYTES + 1)).await;
    let status = status.expect_err("too long");
    assert_eq!(status.code(), Code::OutOfRange);
    assert!(status.message().contains("4194304"), "{status}");
    let answer = generate(&cluster.coordinator, request("x", 4)).await;
    assert_eq!(answer.tokens.len(), 4);
}

/// Go's and Java's clients compress where they are told to.
#[tokio::test]
async fn a_compressed_request_is_read_and_one_that_unpacks_to_too_much_is_not() {
    let cluster = Cluster::start(draft()).await;
    let compressing = CoordinatorClient::new(cluster.coordinator.channel())
        .send_compressed(CompressionEncoding::Gzip);
    let asked = async |message: GenerateRequest| {
        let mut client = compressing.clone();
        client.generate(message).await.map(drop)
    };
    asked(request("x", 4)).await.expect("read");
    // Of four mebibytes all is read, and the prompt then refused; of one byte more nothing is.
    let status = asked(padded(MAX_REQUEST_BYTES)).await;
    assert_eq!(
        status.expect_err("no context holds that").code(),
        Code::InvalidArgument
    );
    for bytes in [MAX_REQUEST_BYTES + 1, 200 << 20] {
        let status = asked(padded(bytes)).await.expect_err("too long");
        assert_eq!(status.code(), Code::ResourceExhausted);
        assert!(status.message().contains("4194304"), "{status}");
    }
}

#[tokio::test]
async fn peers_take_no_more_than_they_say() {
    let cluster = Cluster::start(draft()).await;
    let open = Open {
        model: "x".repeat(MAX_MESSAGE_BYTES),
        ..Default::default()
    };
    let requested = || tokio_stream::once(SessionRequest::from(Request::Open(open.clone())));
    let mut drafter = DrafterClient::new(cluster.drafter.channel());
    let of_drafter = match drafter.draft(requested()).await {
        Ok(replies) => replies.into_inner().message().await.map(drop),
        Err(status) => Err(status),
    };
    let mut verifier = VerifierClient::new(cluster.verifier.channel());
    let of_verifier = match verifier.verify(requested()).await {
        Ok(replies) => replies.into_inner().message().await.map(drop),
        Err(status) => Err(status),
    };
    for reported in [of_drafter, of_verifier] {
        let status = reported.expect_err("too long");
        assert_eq!(status.code(), Code::OutOfRange, "{status}");
        assert!(status.message().contains("67108864"), "{status}");
    }
    let answer = generate(&cluster.coordinator, request("x", 4)).await;
    assert_eq!(answer.tokens.len(), 4);
}
