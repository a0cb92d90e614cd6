//! Names of the files of a model that is in several: `NAME-00002-of-00003.gguf`.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Digits of both numbers.
const DIGITS: usize = 5;

/// The name of one of several files, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PartName<'a> {
    /// What all names begin with; of files in folders these, too.
    stem: &'a str,
    /// Its number among the files, from 1 on.
    pub(crate) number: u32,
    /// How many there are.
    pub(crate) count: u32,
    /// `.gguf`, as it is written.
    ending: &'a str,
}

impl<'a> PartName<'a> {
    /// Takes `name` apart; none if it is no such name.
    pub(crate) fn of(name: &'a str) -> Option<Self> {
        let (rest, ending) = name.split_at_checked(name.len().checked_sub(".gguf".len())?)?;
        let (rest, count) = rest.rsplit_once("-of-")?;
        let (stem, number) = rest.rsplit_once('-')?;
        let digits = |text: &str| {
            let whole = text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_digit());
            whole.then(|| text.parse::<u32>().ok()).flatten()
        };
        let (number, count) = (digits(number)?, digits(count)?);
        let holds = ending.eq_ignore_ascii_case(".gguf") && (1..=count).contains(&number);
        holds.then_some(Self {
            stem,
            number,
            count,
            ending,
        })
    }

    /// The name of file `number` of the same model.
    pub(crate) fn of_part(&self, number: u32) -> String {
        let (stem, count, ending) = (self.stem, self.count, self.ending);
        format!("{stem}-{number:0DIGITS$}-of-{count:0DIGITS$}{ending}")
    }

    /// The names of all files of the model, in order.
    pub(crate) fn all(&self) -> impl Iterator<Item = String> {
        (1..=self.count).map(|number| self.of_part(number))
    }
}

/// The names of all files of a model, of which `name` is one; that alone where it is all.
pub(crate) fn files(name: &str) -> Vec<String> {
    let part = PartName::of(name);
    part.map_or_else(|| vec![name.to_owned()], |part| part.all().collect())
}

/// The first file of a model of which the file at `path` is one, if it is there; else `path`.
pub(crate) fn first(path: PathBuf) -> PathBuf {
    let name = path.file_name().and_then(OsStr::to_str);
    let first = name.and_then(PartName::of).map(|part| part.of_part(1));
    let first = first.map(|first| path.with_file_name(first));
    first.filter(|first| first.is_file()).unwrap_or(path)
}

/// One name for each model that `names`, which are sorted, are files of: its first one's.
pub(crate) fn models(names: Vec<String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let is_new = |name: &String| {
        PartName::of(name).is_none_or(|part| seen.insert((part.stem.to_owned(), part.count)))
    };
    names.into_iter().filter(is_new).collect()
}

/// The name of the file at `path`, for messages.
pub(super) fn shown(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart_and_made() {
        let part = PartName::of("q4/a-b-00002-of-00003.gguf").unwrap();
        assert_eq!((part.stem, part.number, part.count), ("q4/a-b", 2, 3));
        let all = [
            "q4/a-b-00001-of-00003.gguf",
            "q4/a-b-00002-of-00003.gguf",
            "q4/a-b-00003-of-00003.gguf",
        ];
        assert_eq!(files(all[2]), all);
        assert_eq!(files("a-00001-of-00002.GGUF")[1], "a-00002-of-00002.GGUF");
        for other in [
            "a.gguf",
            "a-00001.gguf",
            "a-1-of-2.gguf",
            "a-00000-of-00002.gguf",
            "a-00003-of-00002.gguf",
            "a-+0001-of-00002.gguf",
            "a-00001-of-00002.bin",
            "-of-ö",
            "",
        ] {
            assert_eq!(PartName::of(other), None, "{other}");
            assert_eq!(files(other), [other]);
        }
    }

    #[test]
    fn of_each_model_one_file_is_named() {
        let names = [
            "a-00001-of-00002.gguf",
            "a-00001-of-00003.gguf",
            "a-00002-of-00002.gguf",
            "b-00002-of-00002.gguf",
            "c.gguf",
        ];
        let found = models(names.map(str::to_owned).to_vec());
        assert_eq!(found, [names[0], names[1], names[3], names[4]]);
    }
}
