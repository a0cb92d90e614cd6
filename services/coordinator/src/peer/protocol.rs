//! The two kinds of streams, as they are opened.

use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};
use wire::messages::{Drafting, Messages, Verifying};

use super::pool::{Endpoint, drafter_client, verifier_client};

/// One kind of stream.
pub(super) trait Protocol: Messages {
    fn connect(
        endpoint: &Endpoint,
        requests: ReceiverStream<Self::Request>,
    ) -> impl Future<Output = Result<Streaming<Self::Reply>, Status>> + Send;
}

impl Protocol for Drafting {
    async fn connect(
        endpoint: &Endpoint,
        requests: ReceiverStream<Self::Request>,
    ) -> Result<Streaming<Self::Reply>, Status> {
        Ok(drafter_client(endpoint).draft(requests).await?.into_inner())
    }
}

impl Protocol for Verifying {
    async fn connect(
        endpoint: &Endpoint,
        requests: ReceiverStream<Self::Request>,
    ) -> Result<Streaming<Self::Reply>, Status> {
        let verifying = verifier_client(endpoint).verify(requests).await?;
        Ok(verifying.into_inner())
    }
}
