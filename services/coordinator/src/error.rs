//! Why a coordinator does not start.

use net::channel::ChannelError;
use net::listen::BindError;
use ops::lifecycle::ServeError;
use ops::reflection::ReflectionError;

/// Why a coordinator does not start, or stopped by itself.
#[derive(Debug, thiserror::Error)]
pub enum CoordinatorError {
    /// A setting cannot be used.
    #[error("coordinator.{key}: {problem}")]
    Setting {
        /// The setting.
        key: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A peer's URL is wrong.
    #[error("coordinator.models: {0}")]
    Url(#[from] ChannelError),
    /// The address cannot be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// Reflection cannot be served.
    #[error(transparent)]
    Reflection(#[from] ReflectionError),
    /// The server failed.
    #[error(transparent)]
    Serve(#[from] ServeError),
}

impl CoordinatorError {
    /// Returns the setting at fault; empty where none is.
    pub fn key(&self) -> String {
        match self {
            Self::Setting { key, .. } => format!("coordinator.{key}"),
            Self::Url(_) => "coordinator.models".to_owned(),
            Self::Bind(_) | Self::Reflection(_) | Self::Serve(_) => String::new(),
        }
    }
}
