//! A head as it is stored: safetensors, with what it is in the metadata.
//!
//! All of the metadata stands in one entry, as JSON: safetensors writes its entries in no fixed
//! order, and the same training must give the same file.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use safetensors::tensor::TensorView;
use safetensors::{Dtype, serialize};
use serde::{Deserialize, Serialize};

use super::{AcceptanceHead, HeadError, HeadInfo, HeadWeights, MAX_DEPTH};
use crate::weights::{Weights, file::json_entry};

/// Version of the file's layout.
const FORMAT: u32 = 1;
/// The metadata entry.
const ENTRY: &str = "acceptance_head";

/// What the metadata entry holds.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredHead {
    format: u32,
    depth: usize,
    tied: bool,
    hidden_size: usize,
    label: String,
    draft_fingerprint: String,
    w_rej: f64,
    mix: f64,
    seed: u64,
}

impl AcceptanceHead {
    /// Opens the head in `file`.
    ///
    /// # Errors
    /// Names the file, the field and what is expected of it.
    pub fn open(file: &Path) -> Result<Self, HeadError> {
        let origin = file.display().to_string();
        let bytes = fs::read(file).map_err(HeadError::io(file, "read"))?;
        Self::from_bytes(bytes, &origin)
    }

    /// Takes the bytes of a head's file; `origin` names it in messages.
    ///
    /// # Errors
    /// As [`AcceptanceHead::open`].
    pub fn from_bytes(
        bytes: impl Into<Cow<'static, [u8]>>,
        origin: &str,
    ) -> Result<Self, HeadError> {
        let bytes = bytes.into();
        let info = info(&bytes, origin)?;
        let tensor_error = |source| HeadError::Tensor {
            file: origin.to_owned(),
            source,
        };
        let tensors = Weights::from_bytes(bytes).map_err(tensor_error)?;
        let tensor =
            |name: &str, shape: &[usize]| tensors.tensor(name, shape).map_err(tensor_error);
        let hidden = info.hidden_size;
        let block = |index: usize| {
            Ok((
                tensor(&format!("blocks.{index}.weight"), &[hidden, hidden])?,
                tensor(&format!("blocks.{index}.bias"), &[hidden])?,
            ))
        };
        let weights = HeadWeights {
            blocks: (0..info.stored_blocks())
                .map(block)
                .collect::<Result<_, HeadError>>()?,
            out_weight: tensor("out.weight", &[2, hidden])?,
            out_bias: tensor("out.bias", &[2])?,
        };
        Self::new(info, weights, origin)
    }

    /// The bytes of its file, the same for the same head.
    ///
    /// # Errors
    /// If it cannot be put into safetensors.
    pub fn to_bytes(&self) -> Result<Vec<u8>, HeadError> {
        let malformed = |error: &dyn std::fmt::Display| HeadError::Malformed {
            file: self.origin.clone(),
            reason: error.to_string(),
        };
        let (hidden, info) = (self.info.hidden_size, &self.info);
        let mut tensors: Vec<(String, Vec<usize>, Vec<u8>)> = Vec::new();
        let mut add = |name: String, shape: Vec<usize>, values: &[f32]| {
            let bytes = values.iter().flat_map(|value| value.to_le_bytes());
            tensors.push((name, shape, bytes.collect()));
        };
        for (index, (weight, bias)) in self.weights.blocks.iter().enumerate() {
            add(
                format!("blocks.{index}.weight"),
                vec![hidden, hidden],
                weight,
            );
            add(format!("blocks.{index}.bias"), vec![hidden], bias);
        }
        let weights = &self.weights;
        add(
            "out.weight".to_owned(),
            vec![2, hidden],
            &weights.out_weight,
        );
        add("out.bias".to_owned(), vec![2], &weights.out_bias);
        let views = tensors.iter().map(|(name, shape, bytes)| {
            let view = TensorView::new(Dtype::F32, shape.clone(), bytes);
            view.map(|view| (name, view))
        });
        let views = views.collect::<Result<Vec<_>, _>>();
        let views = views.map_err(|error| malformed(&error))?;
        let stored = StoredHead {
            format: FORMAT,
            depth: info.depth,
            tied: info.tied,
            hidden_size: hidden,
            label: info.label.to_string(),
            draft_fingerprint: info.draft_fingerprint.clone(),
            w_rej: info.w_rej,
            mix: info.mix,
            seed: info.seed,
        };
        let entry = serde_json::to_string(&stored).map_err(|error| malformed(&error))?;
        let metadata = HashMap::from([(ENTRY.to_owned(), entry)]);
        serialize(views, Some(metadata)).map_err(|error| malformed(&error))
    }

    /// Writes its file: first beside it, then in its place, so that it is whole or not there.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, file: &Path) -> Result<(), HeadError> {
        let bytes = self.to_bytes()?;
        let mut beside = file.as_os_str().to_owned();
        beside.push(format!(".{}.part", std::process::id()));
        let written = fs::write(&beside, bytes).and_then(|()| fs::rename(&beside, file));
        written.map_err(|error| {
            let _ = fs::remove_file(&beside);
            HeadError::io(file, "written")(error)
        })
    }
}

/// The files of heads in `folder`: `head-*.safetensors`, in the order of their names.
///
/// # Errors
/// If the folder cannot be read.
pub(crate) fn files_in(folder: &Path) -> Result<Vec<PathBuf>, HeadError> {
    let unreadable = HeadError::io(folder, "read");
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(&unreadable)? {
        let name = entry.map_err(&unreadable)?.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("head-") && name.ends_with(".safetensors") {
            files.push(folder.join(&*name));
        }
    }
    files.sort();
    Ok(files)
}

/// Opens the heads in `folder` as `fit` takes them, at most one for each label.
///
/// # Errors
/// If one cannot be read, if `fit` refuses one, or if two have one label.
pub(crate) fn fitting_in(
    folder: &Path,
    fit: impl Fn(AcceptanceHead) -> Result<AcceptanceHead, HeadError>,
) -> Result<Vec<AcceptanceHead>, HeadError> {
    let files = files_in(folder)?.into_iter();
    let heads = files.map(|file| fit(AcceptanceHead::open(&file)?));
    let heads = heads.collect::<Result<Vec<_>, _>>()?;
    for (index, head) in heads.iter().enumerate() {
        let same = |other: &&AcceptanceHead| other.info.label == head.info.label;
        if let Some(other) = heads[..index].iter().find(same) {
            return Err(HeadError::Field {
                file: head.origin.clone(),
                field: "label",
                found: head.info.label.to_string(),
                expected: format!("another one than that of {}", other.origin),
            });
        }
    }
    Ok(heads)
}

/// Reads and checks the metadata.
fn info(bytes: &[u8], origin: &str) -> Result<HeadInfo, HeadError> {
    let malformed = |reason: String| HeadError::Malformed {
        file: origin.to_owned(),
        reason,
    };
    let stored = json_entry(bytes, ENTRY).map_err(malformed)?;
    let wrong = |field, found: String, expected: &str| HeadError::Field {
        file: origin.to_owned(),
        field,
        found,
        expected: expected.to_owned(),
    };
    // Before the other fields, which another format may name otherwise.
    let format = &stored["format"];
    if format.as_u64() != Some(FORMAT.into()) {
        return Err(wrong("format", format.to_string(), &FORMAT.to_string()));
    }
    let stored: StoredHead =
        serde_json::from_value(stored).map_err(|error| malformed(format!("{ENTRY}: {error}")))?;
    if stored.depth > MAX_DEPTH {
        let expected = format!("0 to {MAX_DEPTH}");
        return Err(wrong("depth", stored.depth.to_string(), &expected));
    }
    let label = stored.label.parse();
    Ok(HeadInfo {
        depth: stored.depth,
        tied: stored.tied,
        hidden_size: stored.hidden_size,
        label: label.map_err(|_| wrong("label", stored.label, "coupled or rejection"))?,
        draft_fingerprint: stored.draft_fingerprint,
        w_rej: stored.w_rej,
        mix: stored.mix,
        seed: stored.seed,
    })
}
