//! Where a model's files are on this machine.

use std::path::{Path, PathBuf};

use super::SourceError;
use crate::gguf::part_name;
use crate::reference::has_ending;
use crate::weights::shards::{INDEX, SINGLE};

/// Where a model is on this machine.
pub(super) enum Located {
    /// Compiled in, by role.
    Embedded(String),
    /// A folder or a file.
    Stored(PathBuf),
}

impl Located {
    /// The model at `path`: of a folder without other weights its one GGUF file, of several files of a model the first.
    ///
    /// # Errors
    /// If the folder has several models.
    pub(super) fn stored(path: PathBuf) -> Result<Self, SourceError> {
        if !path.is_dir() || [SINGLE, INDEX].iter().any(|name| path.join(name).exists()) {
            return Ok(Self::Stored(part_name::first(path)));
        }
        match part_name::models(gguf_files(&path)).as_slice() {
            // What is missing is told when the folder is opened.
            [] => Ok(Self::Stored(path)),
            [file] => Ok(Self::Stored(path.join(file))),
            several => Err(SourceError::SeveralGguf {
                first: path.join(&several[0]),
                files: several.join(", "),
                path,
            }),
        }
    }
}

/// The folder that a stored model is, or that its file lies in.
pub(super) fn folder_of(path: &Path) -> &Path {
    if !path.is_file() {
        return path;
    }
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Names of the GGUF files in `folder`, sorted.
fn gguf_files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter(|entry| entry.path().is_file() && has_ending(entry.path(), "gguf"))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_gguf_files_is_the_only_one_of_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        let located = || match Located::stored(path.to_owned())? {
            Located::Stored(path) => Ok::<_, SourceError>(path),
            Located::Embedded(role) => panic!("{role}"),
        };
        let add = |name: &str| std::fs::write(path.join(name), "").expect("written");
        assert_eq!(located().expect("a folder"), path);
        // As many repositories have it beside their GGUF files.
        add("config.json");
        add("b.Q8_0.GGUF");
        assert_eq!(located().expect("a file"), path.join("b.Q8_0.GGUF"));
        add("a.gguf");
        let reported = located().expect_err("two").to_string();
        for part in ["a.gguf, b.Q8_0.GGUF", "several GGUF files", "name one"] {
            assert!(reported.contains(part), "{reported}");
        }
        for number in 1..=2 {
            add(&format!("c-0000{number}-of-00002.gguf"));
        }
        let reported = located().expect_err("three").to_string();
        let parts = "(a.gguf, b.Q8_0.GGUF, c-00001-of-00002.gguf)";
        assert!(reported.contains(parts), "{reported}");
        for name in ["a.gguf", "b.Q8_0.GGUF"] {
            std::fs::remove_file(path.join(name)).expect("removed");
        }
        let first = path.join("c-00001-of-00002.gguf");
        assert_eq!(located().expect("a model"), first);
        let second = Located::stored(path.join("c-00002-of-00002.gguf"));
        assert!(matches!(second, Ok(Located::Stored(path)) if path == first));
        add("model.safetensors");
        assert_eq!(located().expect("a checkpoint"), path);
    }
}
