//! The files of a checkpoint in the Hugging Face layout: one, or shards that an index names.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use super::{WeightsError, file::UnreadableFile};

/// The file of weights that are not in shards.
pub(crate) const SINGLE: &str = "model.safetensors";
/// The file that names the shards.
pub(crate) const INDEX: &str = "model.safetensors.index.json";

/// The shards that an index names, each once, whatever their names are.
pub(crate) fn named_in(index: &[u8]) -> serde_json::Result<BTreeSet<String>> {
    #[derive(Deserialize)]
    struct ShardIndex {
        weight_map: BTreeMap<String, String>,
    }
    let index: ShardIndex = serde_json::from_slice(index)?;
    Ok(index.weight_map.into_values().collect())
}

/// The safetensors files of the checkpoint in `folder`.
pub(super) fn files(folder: &Path) -> Result<Vec<PathBuf>, WeightsError> {
    let single = folder.join(SINGLE);
    if single.exists() {
        return Ok(vec![single]);
    }
    let path = folder.join(INDEX);
    let json = match fs::read(&path) {
        Ok(json) => json,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(WeightsError::NoWeights {
                folder: folder.to_owned(),
            });
        }
        Err(source) => return Err(UnreadableFile::at(&path)(source).into()),
    };
    let shards = named_in(&json).map_err(|source| WeightsError::Index {
        path: path.clone(),
        source,
    })?;
    shards
        .into_iter()
        .map(|shard| {
            if Path::new(&shard)
                .file_name()
                .is_none_or(|name| name != shard.as_str())
            {
                let path = path.clone();
                return Err(WeightsError::ShardPath { path, shard });
            }
            Ok(folder.join(shard))
        })
        .collect()
}
