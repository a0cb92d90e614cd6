//! The token that goes with every request to another service.

use tonic::service::Interceptor;
use tonic::{Request, Status};

use super::Tokens;

/// The header a token comes in.
const HEADER: &str = "authorization";

/// Adds the process's token, as it is now, to what is sent.
#[derive(Clone, Debug, Default)]
pub struct Shown(pub(super) Option<Tokens>);

impl Interceptor for Shown {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(header) = self.0.as_ref().and_then(|tokens| tokens.get().header()) {
            request.metadata_mut().insert(HEADER, header);
        }
        Ok(request)
    }
}
