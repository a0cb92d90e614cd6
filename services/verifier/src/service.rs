//! What a verifier knows beside the engine, and its gRPC service.

use std::sync::Arc;

use model::source::{InspectedText, SpecialTokens};
use peer::{HeldSession, PeerServer, ReplyStream};
use tonic::codegen::BoxStream;
use tonic::{Request, Response, Status, Streaming};
use wire::v1;
use wire::v1::verifier_server;

use crate::remote::Remote;

/// Bytes of tokenizer.json in one message: well below every default limit of message sizes.
const TOKENIZER_PART_BYTES: usize = 1 << 20;

/// A verifier with its model loaded and its engine running.
pub type Verifier = PeerServer<Target>;

/// A session of a verifier.
pub(crate) type VerifySession = HeldSession<Target>;

/// What a verifier tells of its target model's text, which the coordinator asks it for, and who computes the model.
pub struct Target {
    pub(crate) text: InspectedText,
    /// The engine elsewhere that computes it, if there is one.
    pub(crate) remote: Option<Arc<Remote>>,
}

impl Target {
    /// Returns the fingerprint of tokenizer, chat template and special tokens, in hexadecimal. A coordinator fetches them
    /// again when it changes.
    pub(crate) fn text_fingerprint(&self) -> String {
        let InspectedText {
            tokenizer_json,
            special_tokens,
            chat_template,
        } = &self.text;
        let SpecialTokens { bos, eos } = special_tokens;
        let mut bytes = tokenizer_json.clone();
        for text in [chat_template, bos, eos] {
            let text = text.as_deref().unwrap_or_default();
            bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
        format!("{:016x}", wire::digest::short(&bytes))
    }
}

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
        if let Some(remote) = &self.0.role.remote {
            description.numerics = Some(remote.numerics());
        }
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
