//! The gRPC service of a verifier.

use std::sync::Arc;

use peer::ReplyStream;
use tonic::codegen::BoxStream;
use tonic::{Request, Response, Status, Streaming};
use wire::v1;
use wire::v1::verifier_server;

use crate::scorer::Verifier;

/// Bytes of tokenizer.json in one message: well below every default limit of message sizes.
const TOKENIZER_PART_BYTES: usize = 1 << 20;

/// The service as tonic calls it.
pub(crate) struct VerifierService(pub(crate) Arc<Verifier>);

#[tonic::async_trait]
impl verifier_server::Verifier for VerifierService {
    type TokenizerStream = BoxStream<v1::TokenizerPart>;
    type VerifyStream = ReplyStream;

    async fn describe(
        &self,
        _request: Request<v1::DescribeRequest>,
    ) -> Result<Response<v1::PeerDescription>, Status> {
        let mut description = self.0.description.clone();
        description.numerics = self.0.role.scorer.numerics().or(description.numerics);
        Ok(Response::new(description))
    }

    async fn tokenizer(
        &self,
        _request: Request<v1::TokenizerRequest>,
    ) -> Result<Response<Self::TokenizerStream>, Status> {
        let verifier = Arc::clone(&self.0);
        let text = &verifier.role.text;
        let first = v1::TokenizerPart {
            chat_template: text.chat_template.clone().unwrap_or_default(),
            bos_token: text.special_tokens.bos.clone().unwrap_or_default(),
            eos_token: text.special_tokens.eos.clone().unwrap_or_default(),
            tokenizer_json: Vec::new(),
        };
        let parts = text.tokenizer_json.len().div_ceil(TOKENIZER_PART_BYTES);
        let rest = (0..parts).map(move |part| {
            let whole = &verifier.role.text.tokenizer_json;
            let from = part * TOKENIZER_PART_BYTES;
            let to = whole.len().min(from + TOKENIZER_PART_BYTES);
            v1::TokenizerPart {
                tokenizer_json: whole[from..to].to_vec(),
                ..Default::default()
            }
        });
        let parts = std::iter::once(first).chain(rest).map(Ok);
        Ok(Response::new(Box::pin(tokio_stream::iter(parts))))
    }

    async fn verify(
        &self,
        request: Request<Streaming<v1::SessionRequest>>,
    ) -> Result<Response<Self::VerifyStream>, Status> {
        let replies = peer::spawn(Arc::clone(&self.0), request.into_inner());
        Ok(Response::new(replies))
    }
}
