//! Which acceptance heads a model is served with.

use std::path::Path;

use speculation::ports::LanguageModel;
use speculation::verification::AcceptanceLabel;

use super::ServedModel;
use crate::head::{self, AcceptanceHead, HeadError};
use crate::runtime::Model;

impl ServedModel<Model> {
    /// The heads in the folder of its weights that are its own, at most one for each label.
    ///
    /// # Errors
    /// If one of them cannot be read or is for other weights, or two have one label; beside a GGUF file never,
    /// since its folder may hold other models and their heads.
    pub(super) fn heads_in(&self, folder: &Path) -> Result<Vec<AcceptanceHead>, HeadError> {
        if self.is_converted {
            return Ok(self.heads_among_others(folder));
        }
        head::fitting_in(folder, |head| self.fit(head))
    }

    /// Takes an acceptance head for this model, to be computed beside it.
    ///
    /// A head of as many inputs that was trained for other weights is taken beside weights that may have been
    /// converted from those, with a warning: what a head predicts decides how long drafts are, and changes no
    /// distribution of the output.
    ///
    /// # Errors
    /// As [`AcceptanceHead::check`], but for that.
    pub fn fit(&self, head: AcceptanceHead) -> Result<AcceptanceHead, HeadError> {
        let hidden_size = self.model.shape().hidden_size;
        match head.check(hidden_size, &self.weights_fingerprint) {
            Err(HeadError::OtherDraft { file, found, .. }) if self.is_converted => tracing::warn!(
                model = self.outline.name,
                head = file,
                trained_for = found,
                weights = self.weights_fingerprint,
                "the head was trained for other weights than this GGUF file's; taken as one for those that the \
                 file was made from"
            ),
            checked => checked?,
        }
        Ok(head.in_format(self.head_format))
    }

    /// Those in a folder of several models that may be its own: of its width, and the only one for their label
    /// that was trained for this very file, or else the only one at all.
    fn heads_among_others(&self, folder: &Path) -> Vec<AcceptanceHead> {
        let left_out = |error: HeadError| {
            let error = error.to_string();
            tracing::warn!(
                model = self.outline.name,
                error,
                "left out what is no head for a GGUF file"
            );
        };
        let files = head::files_in(folder).map_err(left_out).unwrap_or_default();
        let opened = files.iter().map(|file| AcceptanceHead::open(file));
        let mut heads: Vec<_> = opened
            .filter_map(|head| head.map_err(left_out).ok())
            .collect();
        let hidden_size = self.model.shape().hidden_size;
        heads.retain(|head| head.info().hidden_size == hidden_size);
        let own = AcceptanceLabel::ALL.into_iter().filter_map(|label| {
            let of_label = heads.iter().filter(|head| head.info().label == label);
            let (trained, others): (Vec<_>, Vec<_>) = of_label
                .partition(|head| head.info().draft_fingerprint == self.weights_fingerprint);
            let candidates = if trained.is_empty() { others } else { trained };
            if candidates.len() > 1 {
                let files: Vec<_> = candidates.iter().map(|head| head.origin()).collect();
                tracing::warn!(
                    model = self.outline.name,
                    heads = files.join(", "),
                    "left out several heads for label {}: name this GGUF file's own in the drafter's `heads`",
                    label.name()
                );
                return None;
            }
            candidates.first().copied()
        });
        own.filter_map(|head| self.fit(head.clone()).map_err(left_out).ok())
            .collect()
    }
}
