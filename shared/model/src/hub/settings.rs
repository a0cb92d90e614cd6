//! Where the hub is, where its files are kept, and who asks: the variables of the Python library.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{CaFile, HubError};

/// The public hub.
const PUBLIC: &str = "https://huggingface.co";

/// An access token, and where it came from. The secret must not end up in a log.
#[derive(Clone, PartialEq, Eq, derive_more::Debug)]
#[debug("*** from {origin}")]
pub struct HubToken {
    pub(super) secret: String,
    pub(super) origin: String,
}

impl HubToken {
    /// The token `secret`; `origin` is a variable's name or a file's, for messages.
    pub fn new(secret: impl Into<String>, origin: impl Into<String>) -> Self {
        let (secret, origin) = (secret.into(), origin.into());
        Self { secret, origin }
    }
}

/// How the hub is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubSettings {
    /// Address, without a slash at its end.
    pub endpoint: String,
    /// Folder of the cache.
    pub cache: PathBuf,
    /// Access token; sent to the endpoint alone.
    pub token: Option<HubToken>,
    /// Whether the network must not be touched.
    pub offline: bool,
    /// CAs by which an endpoint with TLS is believed, in place of the system's.
    pub ca_file: Option<CaFile>,
}

impl HubSettings {
    /// Reads `HF_ENDPOINT`, `HF_HUB_CACHE`, `HF_HOME`, `HF_TOKEN`, `HF_TOKEN_PATH`, `HF_HUB_OFFLINE` and
    /// `REQUESTS_CA_BUNDLE`.
    ///
    /// # Errors
    /// If one of them cannot be used, or there is nowhere to keep files.
    pub fn from_env() -> Result<Self, HubError> {
        Self::from_variables(|name| std::env::var_os(name))
    }

    /// The same with variables from elsewhere. An empty one counts as not set.
    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, HubError> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let text = |name: &'static str| match variable(name).map(OsString::into_string) {
            None => Ok(None),
            Some(Ok(value)) => Ok(Some(value.trim().to_owned())),
            Some(Err(_)) => Err(HubError::setting(name, "is not UTF-8")),
        };
        let path = |name: &str| variable(name).map(PathBuf::from);
        let home = path("HF_HOME").or_else(|| {
            let cache = path("XDG_CACHE_HOME");
            let cache = cache.or_else(|| std::env::home_dir().map(|home| home.join(".cache")));
            cache.map(|cache| cache.join("huggingface"))
        });
        let cache = path("HF_HUB_CACHE").or_else(|| home.as_ref().map(|home| home.join("hub")));
        let cache = cache
            .ok_or_else(|| HubError::setting("HF_HOME", "is not set, and there is no home"))?;
        let endpoint = text("HF_ENDPOINT")?.unwrap_or_else(|| PUBLIC.to_owned());
        let endpoint = endpoint.trim_end_matches('/').to_owned();
        if !endpoint.starts_with("http://") && !endpoint.starts_with("https://") {
            let problem = "is no address, expected http://HOST or https://HOST";
            return Err(HubError::setting("HF_ENDPOINT", problem));
        }
        let token = match text("HF_TOKEN")? {
            Some(token) => Some(HubToken::new(token, "HF_TOKEN")),
            None => path("HF_TOKEN_PATH")
                .or_else(|| home.map(|home| home.join("token")))
                .and_then(|path| token_in(&path)),
        };
        if let Some(token) = &token
            && !token.secret.bytes().all(|byte| byte.is_ascii_graphic())
        {
            let problem = "holds characters that no token has";
            return Err(HubError::setting(&token.origin, problem));
        }
        let offline = text("HF_HUB_OFFLINE")?.is_some_and(|value| {
            let value = value.to_ascii_uppercase();
            ["1", "ON", "YES", "TRUE"].contains(&value.as_str())
        });
        Ok(Self {
            endpoint,
            cache,
            token,
            offline,
            ca_file: CaFile::named(path),
        })
    }
}

/// The token that `hf auth login` left.
fn token_in(path: &Path) -> Option<HubToken> {
    let token = std::fs::read_to_string(path).ok()?;
    let token = Some(token.trim()).filter(|token| !token.is_empty());
    token.map(|token| HubToken::new(token, path.display().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<HubSettings, HubError> {
        let find = |name: &str| variables.iter().find(|(key, _)| *key == name);
        HubSettings::from_variables(|name| find(name).map(|(_, value)| value.into()))
    }

    #[test]
    fn the_variables_of_the_python_library_are_honoured() {
        let read = |variables: &[(&str, &str)]| read(variables).expect("settings");
        let plain = read(&[("HF_HOME", "/h")]);
        assert_eq!(plain.endpoint, "https://huggingface.co");
        assert_eq!(plain.cache, Path::new("/h/hub"));
        assert_eq!(
            (plain.token, plain.offline, plain.ca_file),
            (None, false, None)
        );
        let cache = |variables: &[(&str, &str)]| read(variables).cache;
        let both = [("HF_HOME", "/h"), ("HF_HUB_CACHE", "/c")];
        assert_eq!(cache(&both), Path::new("/c"));
        let xdg = [("XDG_CACHE_HOME", "/x")];
        assert_eq!(cache(&xdg), Path::new("/x/huggingface/hub"));
        let endpoint = [("HF_HOME", "/h"), ("HF_ENDPOINT", "http://mirror:8000/")];
        assert_eq!(read(&endpoint).endpoint, "http://mirror:8000");
        for (value, expected) in [("1", true), ("true", true), ("0", false), ("", false)] {
            let settings = read(&[("HF_HOME", "/h"), ("HF_HUB_OFFLINE", value)]);
            assert_eq!(settings.offline, expected, "{value:?}");
        }
    }

    #[test]
    fn the_token_comes_from_the_variable_or_the_file_and_is_not_shown() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("token"), "hf_file\n").expect("written");
        let home = folder.path().to_str().expect("UTF-8");
        let token = |variables: &[(&str, &str)]| read(variables).expect("settings").token;
        let file = folder.path().join("token").display().to_string();
        let found = token(&[("HF_HOME", home)]);
        assert_eq!(found, Some(HubToken::new("hf_file", file)));
        let given = [("HF_HOME", home), ("HF_TOKEN", "hf_variable")];
        assert_eq!(
            token(&given),
            Some(HubToken::new("hf_variable", "HF_TOKEN"))
        );
        let shown = format!("{:?}", read(&given).expect("settings"));
        assert!(!shown.contains("hf_variable"), "{shown}");
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let reported = |variables: &[(&str, &str)]| read(variables).expect_err("bad").to_string();
        let endpoint = reported(&[("HF_HOME", "/h"), ("HF_ENDPOINT", "mirror:8000")]);
        assert!(endpoint.contains("HF_ENDPOINT"), "{endpoint}");
        let token = reported(&[("HF_HOME", "/h"), ("HF_TOKEN", "a\r\nb")]);
        assert!(
            token.contains("HF_TOKEN") && !token.contains("\r\n"),
            "{token}"
        );
    }
}
