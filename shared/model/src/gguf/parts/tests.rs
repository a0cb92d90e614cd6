use std::fs;
use std::path::PathBuf;

use candle_core::quantized::GgmlDType;
use tempfile::TempDir;

use super::*;
use crate::gguf::tests::{bytes, floats};
use crate::gguf_writer::header::MetadataFields;

/// Three files of a model, each with one tensor.
struct Model {
    folder: TempDir,
}

/// The metadata of file `number` of three.
fn keys(number: u32) -> MetadataFields {
    let mut metadata = MetadataFields::default();
    metadata.insert(NUMBER, number - 1);
    metadata.insert(COUNT, 3_u32);
    metadata.insert(TENSORS, 3_u32);
    if number == 1 {
        metadata.insert("general.name", "big");
    }
    metadata
}

impl Model {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let model = Self { folder };
        for number in 1..=3 {
            model.write(number, &keys(number), &format!("t{number}"));
        }
        model
    }

    fn path(&self, number: u32) -> PathBuf {
        let name = format!("big-{number:05}-of-00003.gguf");
        self.folder.path().join(name)
    }

    /// Writes a file with a tensor, all of whose numbers are the file's.
    fn write(&self, number: u32, metadata: &MetadataFields, tensor: &str) {
        let contents = floats(&[number as f32; 2]);
        let tensor = (tensor, &[2_usize][..], GgmlDType::F32, contents);
        fs::write(self.path(number), bytes(metadata, &[tensor])).unwrap();
    }

    /// The error of opening file `number`.
    fn refused(&self, number: u32) -> String {
        let error = GgufModel::open(&self.path(number)).err().expect("refused");
        error.to_string()
    }
}

#[test]
fn each_file_opens_all() {
    let model = Model::new();
    for number in 1..=3 {
        let opened = GgufModel::open(&model.path(number)).unwrap();
        let name = opened.metadata.string("general.name").unwrap();
        assert_eq!((name, opened.files.len()), (Some("big"), 3));
        for (tensor, number) in [("t1", 1.0), ("t2", 2.0), ("t3", 3.0)] {
            let (_, bytes) = opened.tensor(tensor).unwrap();
            assert_eq!(bytes, floats(&[number; 2]), "{tensor}");
        }
        assert!(opened.tensor("t4").is_none());
    }
}

#[test]
fn a_missing_file_is_named() {
    let model = Model::new();
    fs::remove_file(model.path(2)).unwrap();
    let expected = "big-00003-of-00003.gguf is one of 3 parts of a model, and big-00002-of-00003.gguf is not beside it";
    assert_eq!(model.refused(3), expected);
}

#[test]
fn files_that_are_not_those_of_one_model_are_refused() {
    type Change = fn(&mut MetadataFields);
    let changes: [(&str, Change); 4] = [
        (
            "the number in big-00002-of-00003.gguf is 3 and not 2",
            |keys| keys.insert(NUMBER, 2_u32),
        ),
        (
            "big-00002-of-00003.gguf is of another number of parts",
            |keys| keys.insert(COUNT, 4_u32),
        ),
        (
            "big-00002-of-00003.gguf is a part of another model: its split.tensors.count is not that of the first",
            |keys| keys.insert(TENSORS, 7_u32),
        ),
        (
            "big-00002-of-00003.gguf is a part of another model: its general.name is not that of the first",
            |keys| keys.insert("general.name", "small"),
        ),
    ];
    for (expected, change) in changes {
        let model = Model::new();
        let mut metadata = keys(2);
        change(&mut metadata);
        model.write(2, &metadata, "t2");
        let found = model.refused(1);
        assert!(found.ends_with(expected), "{found}");
    }
}

#[test]
fn tensors_that_are_missing_or_there_twice_are_refused() {
    let model = Model::new();
    model.write(3, &keys(3), "t1");
    let found = model.refused(1);
    assert!(found.ends_with("two of them have the tensor t1"), "{found}");
    fs::write(model.path(3), bytes(&keys(3), &[])).unwrap();
    let found = model.refused(1);
    assert!(
        found.ends_with("together they have 2 tensors and not 3"),
        "{found}"
    );
}

#[test]
fn a_name_that_does_not_say_which_is_refused() {
    let model = Model::new();
    let renamed = |name: &str| {
        let path = model.folder.path().join(name);
        fs::copy(model.path(1), &path).unwrap();
        GgufModel::open(&path).err().unwrap().to_string()
    };
    let expected = "m.gguf is one of 3 parts of a model, and its name does not say which: \
                    NAME-00001-of-00003.gguf is the first one's";
    assert_eq!(renamed("m.gguf"), expected);
    let found = renamed("big-00001-of-00002.gguf");
    assert!(found.ends_with("its name says that there are 2"), "{found}");
    // Whatever its name is, a file that is all of a model is opened.
    let mut whole = keys(1);
    whole.insert(COUNT, 1_u32);
    model.write(1, &whole, "t1");
    assert_eq!(GgufModel::open(&model.path(1)).unwrap().files.len(), 1);
}
