//! A model in one GGUF file or in several, as `llama-gguf-split` cuts them: the first has the metadata, each says which
//! of how many it is, and how many tensors they have together.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;

use super::GgufError;
use super::container::GgufFile;
use super::part_name::{PartName, shown};
use super::value::GgufMetadata;
use crate::weights::file::{TensorFile, TensorInfo};

const NUMBER: &str = "split.no";
const COUNT: &str = "split.count";
const TENSORS: &str = "split.tensors.count";

/// All that a model's files hold.
pub(crate) struct GgufModel {
    pub(crate) metadata: GgufMetadata,
    /// Their tensors, those of each file by themselves.
    pub(crate) files: Vec<TensorFile>,
}

impl From<GgufFile> for GgufModel {
    fn from(file: GgufFile) -> Self {
        Self {
            metadata: file.metadata,
            files: vec![file.tensors],
        }
    }
}

impl GgufModel {
    /// Maps the file at `path`, and if it is one of several the others beside it.
    ///
    /// # Errors
    /// If one cannot be read, is no GGUF file, or they are not all the files of one model.
    pub(crate) fn open(path: &Path) -> Result<Self, GgufError> {
        let file = GgufFile::open(path)?;
        match file.metadata.whole(COUNT)? {
            Some(count) if count > 1 => Parts { path, count }.open(file),
            _ => Ok(file.into()),
        }
    }

    /// The tensor of that name, and its bytes.
    pub(crate) fn tensor(&self, name: &str) -> Option<(&TensorInfo, &[u8])> {
        self.files.iter().find_map(|file| file.get(name))
    }
}

/// The files of a model of which one, at `path`, says how many there are.
struct Parts<'a> {
    path: &'a Path,
    count: u64,
}

impl Parts<'_> {
    /// Opens all but `given`, which is at the path.
    fn open(&self, given: GgufFile) -> Result<GgufModel, GgufError> {
        let name = self.path.file_name().and_then(OsStr::to_str);
        let name = name.and_then(PartName::of).ok_or_else(|| {
            let count = self.count;
            self.refused(format!(
                "its name does not say which: NAME-00001-of-{count:05}.gguf is the first one's"
            ))
        })?;
        if u64::from(name.count) != self.count {
            let reason = format!("its name says that there are {}", name.count);
            return Err(self.refused(reason));
        }
        let mut given = Some(given);
        let mut model: Option<GgufModel> = None;
        for number in 1..=name.count {
            let path = self.path.with_file_name(name.of_part(number));
            let own = given.take_if(|_| number == name.number);
            let file = match own {
                Some(file) => file,
                None if !path.exists() => {
                    return Err(self.refused(format!("{} is not beside it", shown(&path))));
                }
                None => GgufFile::open(&path)?,
            };
            let first = model.as_ref().map(|model| &model.metadata);
            self.check(&path, number, &file.metadata, first)?;
            match &mut model {
                None => model = Some(file.into()),
                Some(model) => model.files.push(file.tensors),
            }
        }
        let model = model.ok_or_else(|| self.refused("it has none".to_owned()))?;
        self.check_tensors(&model)?;
        Ok(model)
    }

    /// Refuses the metadata of the file at `path` if it is not that of part `number` of the model whose first file has
    /// the metadata `first`.
    fn check(
        &self,
        path: &Path,
        number: u32,
        metadata: &GgufMetadata,
        first: Option<&GgufMetadata>,
    ) -> Result<(), GgufError> {
        let found = metadata.whole(NUMBER)?.map(|found| found.saturating_add(1));
        if found != Some(number.into()) {
            let found = found.map_or("has none".to_owned(), |found| format!("is {found}"));
            let name = shown(path);
            return Err(self.refused(format!("the number in {name} {found} and not {number}")));
        }
        if metadata.whole(COUNT)? != Some(self.count) {
            let reason = format!("{} is of another number of parts", shown(path));
            return Err(self.refused(reason));
        }
        // Others have no more than that, most of them.
        let differs = first.and_then(|first| {
            let own = |key: &str| key == NUMBER || key == "general.alignment";
            let mut values = metadata.0.iter().filter(|(key, _)| !own(key));
            values.find(|(key, value)| first.0.get(*key).is_some_and(|first| first != *value))
        });
        match differs {
            None => Ok(()),
            Some((key, _)) => Err(self.refused(format!(
                "{} is a part of another model: its {key} is not that of the first",
                shown(path)
            ))),
        }
    }

    /// Refuses tensors that are there twice, and files that lack some.
    fn check_tensors(&self, model: &GgufModel) -> Result<(), GgufError> {
        let mut names = BTreeSet::new();
        for file in &model.files {
            for name in file.tensors.keys() {
                if !names.insert(name) {
                    return Err(self.refused(format!("two of them have the tensor {name}")));
                }
            }
        }
        let (found, expected) = (names.len() as u64, model.metadata.whole(TENSORS)?);
        match expected.filter(|&expected| expected != found) {
            None => Ok(()),
            Some(expected) => Err(self.refused(format!(
                "together they have {found} tensors and not {expected}"
            ))),
        }
    }

    fn refused(&self, reason: String) -> GgufError {
        GgufError::Parts {
            name: shown(self.path),
            count: self.count,
            reason,
        }
    }
}

#[cfg(test)]
mod tests;
