//! Where each setting came from.

use figment::Figment;
use figment::value::{Dict, Value};
use serde::Serialize;

/// One setting as `outrider config print` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SettingProvenance {
    /// The whole key, `section.key`.
    pub key: String,
    /// The value in JSON, which for numbers, strings and arrays is TOML too; `***` for a secret.
    pub value: String,
    /// The origin in words: `default`, `file` and its path, `environment` and the variable, `flag`.
    pub source: String,
}

/// Flattens a `section` of a merged configuration to its leaves, in the order of their keys.
pub(super) fn settings(section: &str, values: &Dict, figment: &Figment) -> Vec<SettingProvenance> {
    let mut settings = Vec::new();
    for (name, value) in values {
        let key = format!("{section}{name}");
        if let Value::Dict(_, inner) = value
            && !inner.is_empty()
        {
            settings.extend(self::settings(&format!("{key}."), inner, figment));
            continue;
        }
        let origin = figment.get_metadata(value.tag());
        settings.push(SettingProvenance {
            value: rendered(&key, value),
            source: origin.map_or_else(String::new, |metadata| metadata.name.to_string()),
            key,
        });
    }
    settings
}

fn rendered(key: &str, value: &Value) -> String {
    match value {
        Value::Empty(..) => "unset".to_owned(),
        _ if is_secret(key) => "***".to_owned(),
        value => serde_json::to_string(value).map_or_else(
            |error| format!("({error})"),
            |text| without_user_info(&text),
        ),
    }
}

/// Returns the same text with `***` for what stands before the `@` of each URL in it.
fn without_user_info(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(scheme) = rest.find("://") {
        let (before, after) = rest.split_at(scheme + 3);
        shown.push_str(before);
        let end = after.find(['/', '?', '#', '"', ' ']);
        let authority = &after[..end.unwrap_or(after.len())];
        rest = match authority.rfind('@') {
            Some(at) => {
                shown.push_str("***");
                &after[at..]
            }
            None => after,
        };
    }
    shown + rest
}

/// Tells by its name whether a key holds something that must not be shown.
pub(super) fn is_secret(key: &str) -> bool {
    [
        "token",
        "secret",
        "password",
        "passphrase",
        "api_key",
        "headers",
    ]
    .iter()
    .any(|word| key.ends_with(word))
}
