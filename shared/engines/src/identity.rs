//! What an engine says of itself.

/// What an engine says of itself. If it changes, another engine answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Name and version.
    pub version: String,
    /// What it calls the model.
    pub model: String,
    /// What its numbers depend on beside version and number format, as far as it says.
    pub fingerprint: String,
    /// Format of its numbers; empty where it does not say.
    pub dtype: String,
    /// Longest sequence that it scores, draft tokens included.
    pub longest: usize,
}

impl Identity {
    /// Describes the differences from `before`; the text is empty if there are none.
    pub fn differences(&self, before: &Self) -> String {
        let longest = [self, before].map(|identity| identity.longest.to_string());
        let [now, then] = &longest;
        let parts = [
            ("model", &self.model, &before.model),
            ("version", &self.version, &before.version),
            (
                "weights and formats",
                &self.fingerprint,
                &before.fingerprint,
            ),
            ("number format", &self.dtype, &before.dtype),
            ("longest sequence", now, then),
        ];
        let parts = parts.iter().filter(|(_, now, then)| now != then);
        let parts = parts.map(|(what, now, then)| format!("{what} '{now}', before '{then}'"));
        parts.collect::<Vec<_>>().join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_named_and_nothing_else() {
        let before = Identity {
            version: "sglang 0.5.23".to_owned(),
            model: "A".to_owned(),
            fingerprint: "/models/A".to_owned(),
            dtype: "bfloat16".to_owned(),
            longest: 505,
        };
        assert_eq!(before.differences(&before), "");
        let now = Identity {
            model: "B".to_owned(),
            longest: 4_000,
            ..before.clone()
        };
        assert_eq!(
            now.differences(&before),
            "model 'B', before 'A'; longest sequence '4000', before '505'"
        );
    }
}
