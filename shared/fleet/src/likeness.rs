//! Whether the verifiers of a model are alike.
//!
//! A session may go to any of them, and back, so what an answer promises holds for all of them together: a seed gives its
//! tokens again only where all compute the same bits. Verifiers of other weights serve another model. They are refused,
//! unless the configuration allows them: those with the weights that most verifiers have are used.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use itertools::Itertools;
use parking_lot::Mutex;
use wire::describe::Mismatch;
use wire::v1::{Numerics, PeerDescription};

/// The descriptions that the verifiers of one model last gave of themselves.
#[derive(Debug)]
pub(crate) struct Likeness {
    /// Whether other weights are allowed.
    mixed_weights: bool,
    known: Mutex<KnownVerifiers>,
}

#[derive(Debug, Default)]
struct KnownVerifiers {
    /// The verifiers by their addresses.
    verifiers: BTreeMap<String, PeerDescription>,
    /// Fingerprint of the weights that are used; empty while none is known.
    used: String,
}

impl Likeness {
    pub(crate) fn new(mixed_weights: bool) -> Self {
        Self {
            mixed_weights,
            known: Mutex::default(),
        }
    }

    /// Stores the description that the verifier at `address` gave of itself.
    ///
    /// # Errors
    /// If it has other weights than those that are used.
    pub(crate) fn met(&self, address: &str, said: &PeerDescription) -> Result<(), Mismatch> {
        let mut known = self.known.lock();
        let is_news = known.verifiers.get(address) != Some(said);
        if is_news {
            known.verifiers.insert(address.to_owned(), said.clone());
            known.choose();
        }
        let refused = self.mismatch(&known, said);
        if let Some(mismatch) = &refused
            && is_news
        {
            tracing::warn!(verifier = address, %mismatch, "verifier not used");
        }
        refused.map_or(Ok(()), Err)
    }

    /// Forgets the verifiers at all other addresses.
    pub(crate) fn keep(&self, addresses: &BTreeSet<&str>) {
        let mut known = self.known.lock();
        known
            .verifiers
            .retain(|address, _| addresses.contains(address.as_str()));
        known.choose();
    }

    /// Returns whether the verifier at `address` is known to have other weights than those that are used.
    pub(crate) fn refuses(&self, address: &str) -> bool {
        let known = self.known.lock();
        let verifier = known.verifiers.get(address);
        verifier.is_some_and(|verifier| self.mismatch(&known, verifier).is_some())
    }

    /// Returns the number of verifiers that are refused.
    pub(crate) fn refused(&self) -> usize {
        let known = self.known.lock();
        let verifiers = known.verifiers.values();
        verifiers
            .filter(|verifier| self.mismatch(&known, verifier).is_some())
            .count()
    }

    /// Returns whether two verifiers that are used compute other bits, or make other prompts of the same messages.
    pub(crate) fn vary(&self) -> bool {
        self.kinds().len() > 1
    }

    /// Describes the differences between verifiers to operators; the list is empty if all are alike.
    pub(crate) fn problems(&self) -> Vec<String> {
        let kinds = self.kinds();
        let known = self.known.lock();
        let refused = known.verifiers.iter().filter_map(|(address, verifier)| {
            let mismatch = self.mismatch(&known, verifier)?;
            Some(format!("verifier {address} is not used: {mismatch}"))
        });
        let unlike = (kinds.len() > 1).then(|| {
            let mut each = kinds.iter().map(|(address, kind)| {
                let Numerics { dtype, kernels, .. } = kind.numerics.clone().unwrap_or_default();
                let text = &kind.text_fingerprint;
                format!("{address} computes in {dtype} ({kernels}), with text files {text}")
            });
            format!(
                "verifiers differ, so no answer is reproducible: {}",
                each.join(", ")
            )
        });
        refused.chain(unlike).collect()
    }

    /// Returns one verifier, with its address, for each different pair of numerics and text files among those that are
    /// used.
    fn kinds(&self) -> Vec<(String, PeerDescription)> {
        let known = self.known.lock();
        let is_used = |verifier| self.mismatch(&known, verifier).is_none();
        let used = (known.verifiers.iter()).filter(|(_, verifier)| is_used(verifier));
        let kinds =
            used.unique_by(|(_, verifier)| (&verifier.numerics, &verifier.text_fingerprint));
        kinds
            .map(|(address, kind)| (address.clone(), kind.clone()))
            .collect()
    }

    fn mismatch(&self, known: &KnownVerifiers, verifier: &PeerDescription) -> Option<Mismatch> {
        if self.mixed_weights || known.used.is_empty() || verifier.model_fingerprint == known.used {
            return None;
        }
        let mut others = known.verifiers.values();
        let expected = others.find(|it| it.model_fingerprint == known.used)?;
        Some(Mismatch(format!(
            "it serves '{}' with weights {}, other verifiers of this model serve '{}' with weights {}",
            verifier.model, verifier.model_fingerprint, expected.model, known.used
        )))
    }
}

impl KnownVerifiers {
    /// Chooses the weights that most verifiers have. In a tie it keeps the weights that were used before, or else takes the
    /// lowest fingerprint.
    fn choose(&mut self) {
        let weights = self.verifiers.values().map(|it| &it.model_fingerprint[..]);
        let counts = weights.counts().into_iter();
        let is_used = |fingerprint: &str| fingerprint == self.used;
        let most = counts.max_by_key(|&(it, count)| (count, is_used(it), Reverse(it)));
        let Some((most, _)) = most else {
            return;
        };
        if most != self.used {
            let before = std::mem::replace(&mut self.used, most.to_owned());
            if !before.is_empty() {
                let now = &self.used;
                tracing::warn!(before, now, "most verifiers have other weights now");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(model: &str, fingerprint: &str, dtype: &str) -> PeerDescription {
        PeerDescription {
            model: model.to_owned(),
            model_fingerprint: fingerprint.to_owned(),
            numerics: Some(Numerics {
                weights: format!("{fingerprint} {dtype}"),
                dtype: dtype.to_owned(),
                kernels: "cpu".to_owned(),
            }),
            ..Default::default()
        }
    }

    #[test]
    fn verifiers_of_one_model_in_two_formats_are_used_and_nothing_is_reproducible() {
        let likeness = Likeness::new(false);
        assert_eq!(likeness.met("a", &said("m", "1", "f32")), Ok(()));
        assert_eq!(likeness.met("b", &said("m", "1", "f32")), Ok(()));
        assert!(!likeness.vary() && likeness.problems().is_empty());
        assert_eq!(likeness.met("c", &said("m", "1", "q4_k")), Ok(()));
        assert!(likeness.vary());
        let problems = likeness.problems().join("\n");
        assert!(
            problems.contains("a computes in f32") && problems.contains("c computes in q4_k"),
            "{problems}"
        );
        assert!(!problems.contains("b computes"), "{problems}");
        likeness.keep(&BTreeSet::from(["a", "b"]));
        assert!(!likeness.vary() && likeness.problems().is_empty());
        let other_template = PeerDescription {
            text_fingerprint: "another".to_owned(),
            ..said("m", "1", "f32")
        };
        assert_eq!(likeness.met("b", &other_template), Ok(()));
        assert!(
            likeness.vary(),
            "of the same messages it makes other prompts"
        );
    }

    #[test]
    fn verifiers_of_other_weights_than_most_have_are_refused_unless_that_is_allowed() {
        let likeness = Likeness::new(false);
        assert_eq!(likeness.met("a", &said("old", "1", "f32")), Ok(()));
        let refused = likeness.met("b", &said("new", "2", "f32"));
        let mismatch = refused
            .expect_err("one of each: the first stays")
            .to_string();
        assert!(
            mismatch.contains("'new' with weights 2") && mismatch.contains("'old' with weights 1"),
            "{mismatch}"
        );
        assert!(likeness.refuses("b") && !likeness.refuses("a") && !likeness.refuses("c"));
        assert!(!likeness.vary(), "a refused one has no say");
        assert_eq!((likeness.refused(), likeness.problems().len()), (1, 1));
        // Most have the new ones: it is the other that is refused, until it has them too.
        assert_eq!(likeness.met("d", &said("new", "2", "f32")), Ok(()));
        assert!(likeness.refuses("a") && !likeness.refuses("b"));
        assert_eq!(likeness.met("a", &said("new", "2", "f32")), Ok(()));
        assert_eq!(likeness.refused(), 0);

        let mixed = Likeness::new(true);
        assert_eq!(mixed.met("a", &said("old", "1", "f32")), Ok(()));
        assert_eq!(mixed.met("b", &said("new", "2", "f32")), Ok(()));
        assert!(mixed.vary() && !mixed.refuses("b"));
    }
}
