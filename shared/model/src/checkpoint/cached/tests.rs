use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use super::super::tests::config;
use super::*;
use crate::config::ModelConfig;
use crate::linear::WeightFormat;

/// A model whose matrices are in Q4_K as far as they can be, and that has biases.
fn model() -> Checkpoint {
    drawn(1)
}

/// A model of these sizes with weights of this seed.
fn drawn(seed: u64) -> Checkpoint {
    let config = ModelConfig {
        hidden_size: 256,
        intermediate_size: 288,
        heads: 4,
        kv_heads: 2,
        head_dim: 64,
        qkv_bias: true,
        mlp_bias: true,
        ..config()
    };
    Checkpoint::random(config, seed).unwrap()
}

/// The bytes of its matrices, and whether all are mapped from a file.
fn matrices(model: &Model) -> (Vec<Vec<u8>>, bool) {
    let Model::Decoder(model) = model else {
        panic!("no decoder")
    };
    let bytes = model
        .matrices()
        .map(|matrix| matrix.packed_bytes().to_vec());
    let mut shown = model.matrices().map(|matrix| format!("{matrix:?}"));
    let is_mapped = shown.all(|shown| shown.contains("MappedBlocks"));
    (bytes.collect(), is_mapped)
}

/// The files in the folder with this ending.
fn files(folder: &TempDir, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.path()).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|found| found == ending))
        .collect()
}

#[test]
fn what_a_folder_keeps_has_the_bits_of_what_is_packed_anew() {
    let folder = TempDir::new().unwrap();
    for (index, format) in WeightFormat::ALL.into_iter().enumerate() {
        let (expected, is_mapped) = matrices(&model().load(format).unwrap());
        assert!(!is_mapped);
        let mut written = None;
        for process in 0..3 {
            let loaded = model().cached_in(folder.path()).load(format).unwrap();
            let (found, is_mapped) = matrices(&loaded);
            // The first one, too: there is one copy in memory.
            assert!(found == expected && is_mapped, "{format}, {process}");
            let files = files(&folder, "packed");
            assert_eq!(files.len(), index + 1, "one of each format");
            let times = files
                .iter()
                .map(|file| fs::metadata(file).unwrap().modified());
            let times: Vec<_> = times.map(Result::unwrap).collect();
            let written = written.get_or_insert_with(|| times.clone());
            assert_eq!(*written, times, "written once");
        }
    }
    assert!(files(&folder, "unfinished").is_empty());
}

#[test]
fn a_file_that_is_not_whole_or_of_something_else_is_made_anew() {
    let folder = TempDir::new().unwrap();
    let format = WeightFormat::Q8_0;
    let load = || matrices(&model().cached_in(folder.path()).load(format).unwrap());
    let expected = load();
    let [file] = &files(&folder, "packed")[..] else {
        panic!("one file")
    };
    let whole = fs::read(file).unwrap();
    let other = TempDir::new().unwrap();
    drawn(2).cached_in(other.path()).load(format).unwrap();
    let of_another = fs::read(&files(&other, "packed")[0]).unwrap();
    let kernels = format.kernel_family();
    let entry = CacheEntry::new(other.path(), &model().fingerprint(), kernels, LAYOUT);
    let empty = entry.create().and_then(|begun| entry.finish(begun));
    assert!(empty.is_some());
    let name = file.file_name().unwrap();
    let without_matrices = fs::read(other.path().join(name)).unwrap();
    let changed = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes
    };
    for (what, bytes) in [
        ("nothing", Vec::new()),
        ("a part of the header", whole[..50].to_vec()),
        ("a part of the weights", whole[..whole.len() / 2].to_vec()),
        ("all but a byte", whole[..whole.len() - 1].to_vec()),
        ("a byte more", [&whole[..], &[0]].concat()),
        ("another kind", changed(0)),
        ("another version", changed(8)),
        ("another length", changed(16)),
        ("an index elsewhere", changed(24)),
        ("an index of another length", changed(32)),
        ("another digest", changed(70)),
        ("another index", changed(whole.len() - 5)),
        ("another model", of_another),
        ("no matrices", without_matrices),
    ] {
        // A new file, as those that are mapped must not change.
        fs::remove_file(file).unwrap();
        fs::write(file, bytes).unwrap();
        assert!(load() == expected, "{what}");
        assert!(fs::read(file).unwrap() == whole, "{what}: made anew");
    }
}

#[test]
fn several_that_start_at_once_all_get_the_same() {
    let folder = TempDir::new().unwrap();
    let format = WeightFormat::Q8_0;
    let expected = matrices(&model().load(format).unwrap()).0;
    std::thread::scope(|scope| {
        let start = || {
            let loaded = model().cached_in(folder.path()).load(format).unwrap();
            matrices(&loaded)
        };
        let starting: Vec<_> = (0..6).map(|_| scope.spawn(start)).collect();
        for started in starting {
            let (found, is_mapped) = started.join().unwrap();
            assert!(found == expected && is_mapped);
        }
    });
    assert_eq!(files(&folder, "packed").len(), 1);
    assert!(files(&folder, "unfinished").is_empty());
}

#[test]
fn a_folder_that_cannot_be_written_stops_nothing() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let format = WeightFormat::Q8_0;
    let expected = matrices(&model().load(format).unwrap());
    let model = model().cached_in(file.path().join("within"));
    assert!(matrices(&model.load(format).unwrap()) == expected);
}

#[test]
fn an_encoder_and_its_decoder_are_kept_whole() {
    let folder = TempDir::new().unwrap();
    let load = || {
        let model = Checkpoint::random(crate::t5::tests::config(), 1).unwrap();
        model
            .cached_in(folder.path())
            .load(WeightFormat::Q8_0)
            .unwrap()
    };
    load();
    let [file] = &files(&folder, "packed")[..] else {
        panic!("one file")
    };
    let written = fs::metadata(file).unwrap().modified().unwrap();
    load();
    let again = fs::metadata(file).unwrap().modified().unwrap();
    assert_eq!(again, written, "nothing was missing");
}
