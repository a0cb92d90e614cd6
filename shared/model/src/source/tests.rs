use super::*;
#[cfg(feature = "embedded")]
use crate::head::AcceptanceHead;
#[cfg(feature = "embedded")]
use crate::runtime::Model;

#[test]
fn wrong_settings_are_named() {
    type Change = fn(&mut ModelSource);
    let hub = "org/name[@revision]";
    let changes: [(&str, &str, Change); 5] = [
        ("embedded:other", "", |s| s.path = "embedded:other".into()),
        ("int3", "", |s| s.dtype = "int3".into()),
        ("fp8", "", |s| s.kv_dtype = "fp8".into()),
        ("tpu", "", |s| s.device = "tpu".into()),
        ("no/such/folder", hub, |s| s.path = "no/such/folder".into()),
    ];
    for (named, advice, change) in changes {
        let mut source = ModelSource::embedded("target");
        change(&mut source);
        let reported = source.load().expect_err(named).to_string();
        assert!(
            reported.contains(named) && reported.contains(advice),
            "{reported}"
        );
    }
}

/// The target's rows of 384 are no whole blocks of 256, those of 1024 are.
#[test]
#[cfg(feature = "embedded")]
fn what_is_computed_in_another_format_than_asked_for_is_told() {
    let dtype = |role: &str, dtype: &str| {
        let source = ModelSource {
            dtype: dtype.to_owned(),
            ..ModelSource::embedded(role)
        };
        source.load().expect("a model").numerics.dtype
    };
    assert_eq!(dtype("target", "q4_k"), "q4_k, q8_0 in 43 of 50 matrices");
    assert_eq!(dtype("draft", "q4_k"), "q8_0");
    assert_eq!(dtype("draft", "q8_0"), "q8_0");
    assert_eq!(dtype("draft", "f32"), "f32");
}

#[test]
#[cfg(feature = "embedded")]
fn the_embedded_pair_shares_one_vocabulary() {
    let target = ModelSource::embedded("target").load().expect("a target");
    let draft = ModelSource::embedded("draft").load().expect("a draft");
    let fingerprint = |served: &ServedModel<Model>| served.outline.vocab_fingerprint;
    assert_eq!(fingerprint(&target), fingerprint(&draft));
    assert_eq!(
        (target.outline.vocab_size, target.outline.name.as_str()),
        (4096, "default-target")
    );
    assert_ne!(target.numerics, draft.numerics);
    let labels = |heads: &[AcceptanceHead]| -> Vec<String> {
        heads
            .iter()
            .map(|head| head.info().label.to_string())
            .collect()
    };
    assert_eq!(labels(&draft.heads), ["coupled", "rejection"]);
    assert!(target.heads.is_empty());
    assert_eq!(target.eos_token_ids, [2]);
}
