//! Why a service does not start, or stopped by itself.

use std::error::Error;

use net::listen::BindError;

use crate::lifecycle::ServeError;
use crate::reflection::ReflectionError;

/// Why a service does not start, or stopped by itself.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The address cannot be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// A setting is wrong, or what it names cannot be loaded.
    #[error("{section}.{setting}: {source}")]
    Setting {
        /// The service's section of the configuration.
        section: &'static str,
        /// The setting, in that section.
        setting: String,
        /// What is wrong with it.
        source: Box<dyn Error + Send + Sync>,
    },
    /// An engine did not start.
    #[error("{section}: {source}")]
    Engine {
        /// The service's section of the configuration.
        section: &'static str,
        /// Why not.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Reflection cannot be served.
    #[error(transparent)]
    Reflection(#[from] ReflectionError),
    /// The server failed, or an engine panicked.
    #[error(transparent)]
    Serve(#[from] ServeError),
}

impl ServiceError {
    /// Returns the setting at fault, `section.setting`; empty where none is.
    pub fn key(&self) -> String {
        match self {
            Self::Setting {
                section, setting, ..
            } => format!("{section}.{setting}"),
            Self::Engine { section, .. } => format!("{section}.engine"),
            Self::Bind(_) | Self::Reflection(_) | Self::Serve(_) => String::new(),
        }
    }

    /// Returns the error of a setting of `section`.
    pub fn setting(
        section: &'static str,
        setting: impl Into<String>,
        problem: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self::Setting {
            section,
            setting: setting.into(),
            source: problem.into(),
        }
    }

    /// Returns the error of an engine of `section` that did not start.
    pub fn engine<E: Into<Box<dyn Error + Send + Sync>>>(
        section: &'static str,
    ) -> impl Fn(E) -> Self {
        move |error| Self::Engine {
            section,
            source: error.into(),
        }
    }
}
