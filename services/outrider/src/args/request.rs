//! Flags of a request, whatever its prompt is.

use std::path::Path;

use anyhow::bail;
use clap::Args;
use wire::v1;

use super::sampling::SamplingArgs;
use super::{MethodArgs, ServicesArgs};

/// Who answers, and how.
#[derive(Debug, Args)]
pub(crate) struct RequestArgs {
    #[command(flatten)]
    sampling: SamplingArgs,
    #[command(flatten)]
    method: MethodArgs,
    #[command(flatten)]
    pub(crate) services: ServicesArgs,
    /// Which of the coordinator's models answers, by the name it is served under; the first one if not given.
    #[arg(
        long,
        alias = "model",
        value_name = "NAME",
        help_heading = "Services",
        hide_short_help = true
    )]
    served_model: Option<String>,
}

impl RequestArgs {
    /// Returns the request without its prompt; what was not given is left to the coordinator.
    ///
    /// # Errors
    /// Names the flag whose value will not do.
    pub(crate) fn request(&self) -> anyhow::Result<v1::GenerateRequest> {
        // A served name may well be that of a file or folder here; a path to one is none.
        if let Some(name) = &self.served_model
            && self.services.coordinator.is_none()
            && self.services.models.is_empty()
            && name.contains('/')
            && Path::new(name).exists()
        {
            bail!(
                "--served-model: '{name}' is a file or folder, and the name of a served model is expected; \
                 --target-model loads a model from one"
            );
        }
        let mut request = v1::GenerateRequest {
            model: self.served_model.clone().unwrap_or_default(),
            ..Default::default()
        };
        self.sampling.apply(&mut request);
        self.method.apply(&mut request)?;
        Ok(request)
    }
}
