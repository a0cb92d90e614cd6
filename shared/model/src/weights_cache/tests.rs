use std::fs;
use std::io;

use super::*;

/// A file of one matrix.
fn written(entry: &CacheEntry, bytes: &[u8]) -> PackedStore {
    let begun = entry.create().expect("begun");
    begun.keep("a", bytes);
    entry.finish(begun).expect("finished")
}

fn entry(folder: &Path) -> CacheEntry {
    CacheEntry::new(folder, "0123456789abcdef", "kernels", 1)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name());
    names
        .map(|name| name.to_string_lossy().into_owned())
        .collect()
}

#[test]
fn matrices_begin_at_pages_and_come_back_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let entry = entry(&folder.path().join("made"));
    assert!(entry.open().is_none());
    let begun = entry.create().expect("begun");
    let contents = [("a", vec![1; 100]), ("b", vec![2; 5000]), ("c", Vec::new())];
    for (key, bytes) in &contents {
        assert!(begun.find(key).is_none());
        begun.keep(key, bytes);
    }
    entry.finish(begun).expect("finished");
    let kept = entry.open().expect("kept");
    for (key, bytes) in &contents {
        let (map, range) = kept.find(key).expect(key);
        assert_eq!(range.start % 4096, 0);
        assert_eq!(map[range], bytes[..]);
    }
    assert!(kept.find("d").is_none() && !kept.is_lacking());
    kept.keep("d", &[3]);
    assert!(kept.is_lacking());
}

#[test]
fn whatever_decides_the_bytes_decides_the_name() {
    let folder = Path::new("folder");
    let of =
        |fingerprint, kernels, layout| CacheEntry::new(folder, fingerprint, kernels, layout).path;
    let base = of("f", "k", 1);
    assert_eq!(base, of("f", "k", 1));
    for other in [of("g", "k", 1), of("f", "l", 1), of("f", "k", 2)] {
        assert_ne!(base, other);
    }
}

#[test]
fn what_cannot_be_written_to_its_end_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let entry = entry(folder.path());
    let begun = entry.create().expect("begun");
    begun.keep("a", &[1; 10]);
    let PackedStore::Begun(writer) = &begun else {
        panic!("begun")
    };
    writer
        .lock()
        .fail(io::Error::from(io::ErrorKind::StorageFull));
    begun.keep("b", &[1; 10]);
    assert!(entry.finish(begun).is_none());
    // Neither does one that is given up.
    drop(entry.create().expect("begun"));
    assert_eq!(names(folder.path()), Vec::<String>::new());
}

#[test]
fn what_was_left_unfinished_is_removed_and_what_is_being_written_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let entry = entry(folder.path());
    let under_way = entry.create().expect("begun");
    let left = names(folder.path())[0].replace(&std::process::id().to_string(), "1");
    fs::write(folder.path().join(&left), "left").unwrap();
    fs::write(folder.path().join("another.unfinished"), "").unwrap();
    written(&entry, &[1]);
    let found = names(folder.path());
    assert!(!found.contains(&left), "{found:?}");
    assert_eq!(found.len(), 3, "{found:?}");
    under_way.keep("a", &[1]);
    assert!(entry.finish(under_way).is_some());
    assert_eq!(names(folder.path()).len(), 2);
}
