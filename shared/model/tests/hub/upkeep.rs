//! What is in the cache already: damaged, half downloaded, pulled again.

use model::hub::{Hub, HubSettings, Snapshot};

use crate::server::COMMIT;
use crate::{REPO, Setup, fetch_as, read, refused, weights};

/// Turns one bit of a file of the cached model around.
fn damage(snapshot: &Snapshot, name: &str) {
    let path = snapshot.path.join(name);
    let mut bytes = read(&path);
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).expect("written");
}

#[test]
fn pulling_finds_damaged_files_and_downloads_them_again() {
    let setup = Setup::new();
    let snapshot = setup.fetch(REPO).expect("a model");
    let pull = |model: &str| {
        Hub::new(setup.settings())
            .expect("a hub")
            .pull(&model.parse().expect("a name"))
    };
    let downloaded = |snapshot: &Snapshot| -> Vec<String> {
        let files = snapshot.files.iter().filter(|file| file.downloaded);
        files.map(|file| file.name.clone()).collect()
    };
    assert!(downloaded(&pull(REPO).expect("a model")).is_empty());
    for name in ["model.safetensors", "tokenizer.json"] {
        for model in [REPO.to_owned(), format!("{REPO}@{COMMIT}")] {
            let right = read(&snapshot.path.join(name));
            damage(&snapshot, name);
            // Whoever only uses the model does not read it all.
            let used = setup.fetch(&model).expect("a model");
            assert!(downloaded(&used).is_empty());
            let pulled = pull(&model).expect("a model");
            assert_eq!(downloaded(&pulled), [name]);
            assert_eq!(read(&snapshot.path.join(name)), right);
        }
    }
    // Cut off, it is no less damaged.
    std::fs::write(snapshot.path.join("model.safetensors"), &weights()[..100]).expect("written");
    let pulled = pull(REPO).expect("a model");
    assert_eq!(downloaded(&pulled), ["model.safetensors"]);
}

#[test]
fn damage_that_cannot_be_mended_is_named() {
    let setup = Setup::new();
    let snapshot = setup.fetch(REPO).expect("a model");
    let [offline, unreachable] = [setup.offline(), setup.unreachable()];
    let pull = |settings: &HubSettings| {
        let hub = Hub::new(settings.clone()).expect("a hub");
        hub.pull(&REPO.parse().expect("a name"))
    };
    assert_eq!(pull(&offline).expect("whole").path, snapshot.path);
    damage(&snapshot, "model.safetensors");
    for (settings, why) in [
        (&offline, "HF_HUB_OFFLINE"),
        (&unreachable, "cannot be reached"),
    ] {
        let file = snapshot
            .path
            .join("model.safetensors")
            .display()
            .to_string();
        refused(pull(settings), &[&file, "sha256 is", why, "models pull"]);
    }
}

#[test]
fn what_a_download_lacks_is_told() {
    let setup = Setup::new();
    setup.server.cut_after(&[1_000_000, 0, 0, 0, 0, 0]);
    setup.fetch(REPO).expect_err("interrupted");
    let parts = ["weights are missing", "1000000 bytes", "goes on from them"];
    let reported = refused(fetch_as(REPO, setup.offline()), &parts);
    assert!(!reported.contains("never"), "{reported}");
    let held = Hub::new(setup.settings()).expect("a hub").cached();
    let [model] = held.as_slice() else {
        panic!("{held:?}");
    };
    let missing = model.missing.as_deref().expect("incomplete");
    assert!(parts.iter().all(|part| missing.contains(part)), "{missing}");

    // One file alone, of which nothing is whole.
    setup.server.add("org/gguf", "m.gguf", weights());
    setup.server.cut_after(&[500_000, 0, 0, 0, 0, 0]);
    setup.fetch("org/gguf:m.gguf").expect_err("interrupted");
    let half = fetch_as("org/gguf:m.gguf", setup.offline());
    refused(half, &["500000 bytes"]);
    let held = Hub::new(setup.settings()).expect("a hub").cached();
    let missing = |repo: &str| {
        let model = held.iter().find(|model| model.snapshot.repo == repo);
        model.expect(repo).missing.clone()
    };
    assert!(missing("org/gguf").is_some_and(|reported| reported.contains("no file is whole")));
    setup.server.cut_after(&[]);
    setup.fetch("org/gguf:m.gguf").expect("a file");
    setup.fetch(REPO).expect("a model");
    let held = Hub::new(setup.settings()).expect("a hub").cached();
    assert!(held.iter().all(|model| model.missing.is_none()), "{held:?}");
}
