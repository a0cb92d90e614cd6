//! The families of models, and what computes each.

use super::EngineKind;
use crate::candle::family::FAMILIES as BY_CANDLE;
use crate::config::architecture::FAMILIES as OWN;

/// A family of models that a program of this build computes by itself.
#[derive(Clone, Copy, Debug)]
pub struct FamilyOfModels {
    /// Values of `model_type` in `config.json`.
    pub model_types: &'static [&'static str],
    /// Names of its models in `architectures`.
    pub classes: &'static [&'static str],
    /// What computes it where nobody says.
    pub engine: EngineKind,
    /// Whether that engine computes it as a drafter only.
    pub drafts_only: bool,
    /// Its `general.architecture` in GGUF files, if our own runtime reads those.
    pub gguf: Option<&'static str>,
}

/// Returns all families that this program computes where no engine is named. Each `model_type` belongs to one of them.
pub fn families() -> impl Iterator<Item = FamilyOfModels> {
    let own = OWN.iter().map(|family| FamilyOfModels {
        model_types: family.model_types,
        classes: family.classes,
        engine: EngineKind::Outrider,
        drafts_only: false,
        gguf: family.gguf.as_ref().map(|form| form.architecture),
    });
    let by_candle = BY_CANDLE
        .iter()
        .filter(|family| !family.model_types.iter().any(|name| is_own(name)));
    let by_candle = by_candle.map(|family| FamilyOfModels {
        model_types: family.model_types,
        classes: family.classes,
        engine: EngineKind::Candle,
        drafts_only: family.drafts_only(),
        gguf: None,
    });
    own.chain(by_candle)
}

/// Whether our own runtime computes models of this `model_type`.
pub(super) fn is_own(model_type: &str) -> bool {
    let mut types = OWN.iter().flat_map(|family| family.model_types);
    types.any(|own| *own == model_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A model's files tell who computes it, so no `model_type` may be in two families. Both engines know SmolLM3 and GLM-4, and
    /// our own is the one listed.
    #[test]
    fn no_model_type_is_of_two_families() {
        let types = families().flat_map(|family| family.model_types);
        let mut types: Vec<_> = types.collect();
        let count = types.len();
        types.sort_unstable();
        types.dedup();
        assert_eq!(types.len(), count);
        assert!(types.contains(&&"llama") && types.contains(&&"qwen3_moe"));
        for name in ["smollm3", "glm4"] {
            let family = families().find(|family| family.model_types.contains(&name));
            let engine = family.map(|family| family.engine);
            assert_eq!(engine, Some(EngineKind::Outrider), "{name}");
        }
    }
}
