//! What a measurement needs that is not in the repository.

use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::bail;

/// Where the driver of NVIDIA says of its GPUs.
const GPUS: &str = "/proc/driver/nvidia/gpus";

/// Something that may be missing.
#[derive(Clone, Debug)]
pub(super) enum Need {
    /// A file or a folder.
    File(String),
    /// A module that python3 can import.
    Python(String),
    /// An NVIDIA GPU, and a build with the feature `cuda`.
    Gpu,
}

impl Need {
    /// Reads `file PATH`, `python MODULE` or `gpu`.
    ///
    /// # Errors
    /// If it is none of them.
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        Ok(match text.split_once(' ') {
            Some(("file", path)) => Self::File(path.to_owned()),
            Some(("python", module)) => Self::Python(module.to_owned()),
            None if text == "gpu" => Self::Gpu,
            _ => bail!("'{text}' is unknown, expected file PATH, python MODULE or gpu"),
        })
    }

    /// Why it cannot be had, in words; none if it can.
    pub(super) fn missing(&self) -> Option<String> {
        match self {
            Self::File(path) => (!Path::new(path).exists()).then(|| format!("there is no {path}")),
            Self::Python(module) => {
                // By argument, so that a name is never taken for code.
                let script = "import importlib, sys; importlib.import_module(sys.argv[1])";
                let mut python = Command::new("python3");
                python.args(["-c", script, module]).stdin(Stdio::null());
                let status = python.stdout(Stdio::null()).stderr(Stdio::null()).status();
                let imported = status.is_ok_and(|status| status.success());
                (!imported).then(|| format!("python3 cannot import {module}"))
            }
            Self::Gpu if !cfg!(feature = "cuda") => {
                Some("built without the feature cuda".to_owned())
            }
            Self::Gpu => (!Path::new(GPUS).exists()).then(|| "no driver tells of a GPU".to_owned()),
        }
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "file {path}"),
            Self::Python(module) => write!(f, "python {module}"),
            Self::Gpu => f.write_str("gpu"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_says_so() {
        let missing = |text| Need::parse(text).expect("a need").missing();
        assert_eq!(missing("file Cargo.toml"), None);
        let reported = missing("file no-such.gguf").expect("missing");
        assert!(reported.contains("no-such.gguf"), "{reported}");
        // A name that would be code elsewhere is the name of a module that there is not.
        let reported = missing("python sys;pass").expect("missing");
        assert!(reported.contains("cannot import"), "{reported}");
        assert_eq!(
            missing("gpu").is_some(),
            !cfg!(feature = "cuda") || !Path::new(GPUS).exists()
        );
    }
}
