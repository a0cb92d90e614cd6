//! Models from a hub: downloads, resumed ones, offline starts, and everything that goes wrong.
#![cfg(feature = "hub")]

mod server;
mod upkeep;

use std::path::{Path, PathBuf};

use model::hub::{Hub, HubError, HubSettings, HubToken, Snapshot};
use server::{COMMIT, HubServer, sha256};
use tempfile::TempDir;

const REPO: &str = "org/tiny";

/// Weights, as far as a download cares: large enough for many reads.
fn weights() -> Vec<u8> {
    (0..3_000_000_u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect()
}

/// A hub with one model, and an empty cache.
struct Setup {
    server: HubServer,
    folder: TempDir,
}

impl Setup {
    fn new() -> Self {
        let server = HubServer::start();
        for (name, text) in [
            ("config.json", "{}"),
            ("tokenizer.json", "{\"model\": 1}"),
            ("tokenizer_config.json", "{\"bos_token\": \"<s>\"}"),
            ("README.md", "not needed"),
            ("pytorch_model.bin", "not needed"),
        ] {
            server.add(REPO, name, text);
        }
        server.add(REPO, "model.safetensors", weights());
        let folder = tempfile::tempdir().expect("a folder");
        Self { server, folder }
    }

    fn settings(&self) -> HubSettings {
        HubSettings {
            endpoint: self.server.url.clone(),
            cache: self.folder.path().to_owned(),
            token: None,
            offline: false,
            ca_file: None,
        }
    }

    fn offline(&self) -> HubSettings {
        HubSettings {
            offline: true,
            ..self.settings()
        }
    }

    /// At a place where nothing listens: port 9 of loopback.
    fn unreachable(&self) -> HubSettings {
        HubSettings {
            endpoint: "http://127.0.0.1:9".to_owned(),
            ..self.settings()
        }
    }

    fn with_token(&self, token: &str, origin: &str) -> HubSettings {
        HubSettings {
            token: Some(HubToken::new(token, origin)),
            ..self.settings()
        }
    }

    fn fetch(&self, model: &str) -> Result<Snapshot, HubError> {
        fetch_as(model, self.settings())
    }

    fn blobs(&self) -> PathBuf {
        self.folder.path().join("models--org--tiny/blobs")
    }

    /// Files that are not complete.
    fn incomplete(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.blobs()).into_iter().flatten();
        let paths = entries.flatten().map(|entry| entry.path());
        let is_one = |path: &PathBuf| path.extension().is_some_and(|end| end == "incomplete");
        paths.filter(is_one).collect()
    }
}

fn fetch_as(model: &str, settings: HubSettings) -> Result<Snapshot, HubError> {
    Hub::new(settings)
        .expect("a hub")
        .fetch(&model.parse().expect("a name"))
}

/// Why a download is refused; each of `parts` is told.
#[track_caller]
fn refused(fetched: Result<Snapshot, HubError>, parts: &[&str]) -> String {
    let reported = fetched.expect_err("refused").to_string();
    for part in parts {
        assert!(reported.contains(part), "{part}: {reported}");
    }
    reported
}

fn names(snapshot: &Snapshot) -> Vec<&str> {
    let names = snapshot.files.iter().map(|file| file.name.as_str());
    names.collect()
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).expect("a file")
}

#[test]
fn a_download_brings_what_is_needed_and_no_more() {
    let setup = Setup::new();
    let snapshot = setup.fetch(REPO).expect("a model");
    let expected = [
        "config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "model.safetensors",
    ];
    assert_eq!(names(&snapshot), expected);
    assert_eq!(snapshot.commit, COMMIT);
    assert_eq!(read(&snapshot.path.join("model.safetensors")), weights());
    let large = snapshot.files.last().expect("weights");
    let hash = format!("sha256:{}", sha256(&weights()));
    assert_eq!(large.labelled_hash(), hash);
    assert_eq!(large.size, 3_000_000);
    assert!(setup.incomplete().is_empty());
    // The layout of the Python library.
    let root = setup.folder.path().join("models--org--tiny");
    let noted = std::fs::read_to_string(root.join("refs/main")).expect("a ref");
    assert_eq!(noted, COMMIT);
    assert_eq!(snapshot.path, root.join("snapshots").join(COMMIT));
    let requested = setup.server.seen();
    let needless = requested.iter().find(|seen| seen.path.contains("README"));
    assert!(needless.is_none(), "{needless:?}");

    // Once more: the hub is asked what is new, and nothing is downloaded.
    let before = requested.len();
    let again = setup.fetch(REPO).expect("a model");
    assert!(again.files.iter().all(|file| !file.downloaded));
    assert_eq!(setup.server.seen().len(), before + 1);
    // By its commit it is not even asked.
    setup.fetch(&format!("{REPO}@{COMMIT}")).expect("a model");
    assert_eq!(setup.server.seen().len(), before + 1);

    // The cache tells what it holds.
    let held = Hub::new(setup.settings()).expect("a hub").cached();
    let [model] = held.as_slice() else {
        panic!("{held:?}");
    };
    assert_eq!(
        (&model.revisions[..], &model.missing),
        (&["main".to_owned()][..], &None)
    );
    let mut files = model.snapshot.files.clone();
    files.sort_by_key(|file| names(&again).iter().position(|name| *name == file.name));
    assert_eq!(
        (&model.snapshot.commit, files),
        (&again.commit, again.files)
    );
}

#[test]
fn shards_are_those_of_the_index() {
    let setup = Setup::new();
    let repo = "org/sharded";
    setup.server.add(repo, "config.json", "{}");
    for shard in ["a.safetensors", "b.safetensors", "c.safetensors"] {
        setup.server.add(repo, shard, shard);
    }
    let index = r#"{"weight_map": {"x": "b.safetensors", "y": "a.safetensors"}}"#;
    setup
        .server
        .add(repo, "model.safetensors.index.json", index);
    let snapshot = setup.fetch(repo).expect("a model");
    let expected = [
        "config.json",
        "model.safetensors.index.json",
        "a.safetensors",
        "b.safetensors",
    ];
    assert_eq!(names(&snapshot), expected);
}

#[test]
fn one_named_file_comes_alone() {
    let setup = Setup::new();
    setup.server.add(REPO, "sub/tiny.Q8_0.gguf", "GGUF");
    let name = format!("{REPO}:sub/tiny.Q8_0.gguf");
    let snapshot = setup.fetch(&name).expect("a file");
    assert_eq!(names(&snapshot), ["sub/tiny.Q8_0.gguf"]);
    assert_eq!(read(&snapshot.path), b"GGUF");
    let other = setup.fetch(&format!("{REPO}:other.gguf"));
    refused(other, &["other.gguf", "sub/tiny.Q8_0.gguf"]);
}

/// Whichever is named.
#[test]
fn all_files_of_a_model_in_several_come() {
    let setup = Setup::new();
    let part = |number| format!("q4/big-0000{number}-of-00003.gguf");
    let all = [1, 2, 3].map(part);
    for name in &all[..2] {
        setup.server.add(REPO, name, "GGUF");
    }
    let lacking = setup.fetch(&format!("{REPO}:{}", all[0]));
    refused(lacking, &[&all[2]]);
    assert!(
        Hub::new(setup.settings())
            .expect("a hub")
            .cached()
            .is_empty()
    );
    setup.server.add(REPO, &all[2], "GGUF");
    let name = format!("{REPO}:{}", all[1]);
    for snapshot in [setup.fetch(&name), fetch_as(&name, setup.offline())] {
        let snapshot = snapshot.expect("files");
        assert_eq!(names(&snapshot), all);
        assert!(snapshot.path.ends_with(&all[0]), "{:?}", snapshot.path);
    }
    let held = || Hub::new(setup.settings()).expect("a hub").cached();
    assert_eq!(held()[0].missing, None);
    let folder = held()[0].snapshot.path.clone();
    std::fs::remove_file(folder.join(&all[2])).expect("removed");
    let missing = format!("{} is missing", all[2]);
    refused(fetch_as(&name, setup.offline()), &[&missing]);
    assert_eq!(held()[0].missing.as_ref(), Some(&missing));
}

#[test]
fn a_broken_connection_is_gone_on_from_at_once() {
    // A server that knows no ranges sends everything again.
    for knows_ranges in [true, false] {
        let setup = Setup::new();
        setup.server.cut_after(&[1_500_000]);
        if !knows_ranges {
            setup.server.ignore_ranges();
        }
        let snapshot = setup.fetch(REPO).expect("a model");
        assert_eq!(read(&snapshot.path.join("model.safetensors")), weights());
        let transfers = setup.server.transfers().into_iter();
        let ranges: Vec<_> = transfers.map(|seen| seen.range).collect();
        assert_eq!(ranges, [None, Some("bytes=1500000-".to_owned())]);
    }
}

#[test]
fn an_interrupted_download_goes_on_in_the_next_run() {
    let setup = Setup::new();
    setup.server.cut_after(&[1_000_000, 0, 0, 0, 0, 0]);
    refused(setup.fetch(REPO), &["1000000 of 3000000", "run it again"]);
    assert_eq!(setup.incomplete().len(), 1);
    setup.server.cut_after(&[]);
    let before = setup.server.transfers().len();
    let snapshot = setup.fetch(REPO).expect("a model");
    assert_eq!(read(&snapshot.path.join("model.safetensors")), weights());
    let after: Vec<_> = setup.server.transfers().split_off(before);
    assert_eq!(after.len(), 1);
    assert_eq!(after[0].range.as_deref(), Some("bytes=1000000-"));
    assert!(setup.incomplete().is_empty());
}

/// The first part of one file and the rest of another are no file, whether or not there is a hash that would tell.
#[test]
fn a_file_that_changes_during_its_download_is_refused_and_comes_whole_the_next_time() {
    let changed: Vec<u8> = weights().iter().map(|byte| byte ^ 0x55).collect();
    for hashes in [None, Some(["first", "second"])] {
        let setup = Setup::new();
        let [before, after] = hashes.map_or([None; 2], |hashes| hashes.map(Some));
        if let Some(before) = before {
            setup.server.announce(before);
        }
        setup.server.cut_after(&[1_500_000]);
        let file = (REPO, "model.safetensors");
        setup.server.change_when_cut(file, changed.clone(), after);
        refused(setup.fetch(REPO), &["has just changed, try again"]);
        let snapshot = setup.fetch(REPO).expect("a model");
        let found = read(&snapshot.path.join("model.safetensors"));
        assert!(found == changed, "{hashes:?}");
    }
}

#[test]
fn offline_or_unreachable_the_cache_is_enough_and_nobody_is_asked() {
    let setup = Setup::new();
    let parts = ["http://127.0.0.1:9", "HF_HUB_OFFLINE", "local folder"];
    refused(fetch_as(REPO, setup.unreachable()), &parts);
    let online = setup.fetch(REPO).expect("a model");
    let requested = setup.server.seen().len();
    for settings in [setup.offline(), setup.unreachable()] {
        let snapshot = fetch_as(REPO, settings).expect("a model");
        assert_eq!(snapshot.path, online.path);
        assert_eq!(names(&snapshot), names(&online));
    }
    let other = fetch_as("org/other", setup.offline());
    refused(other, &["org/other", "HF_HUB_OFFLINE", "models pull"]);
    assert_eq!(
        setup.server.seen().len(),
        requested,
        "the network was touched"
    );
}

#[test]
fn wrong_bytes_are_removed() {
    let setup = Setup::new();
    setup.server.announce(&"ab".repeat(32));
    let hash = sha256(&weights());
    let parts = ["model.safetensors", "sha256", &hash, "removed"];
    refused(setup.fetch(REPO), &parts);
    assert!(setup.incomplete().is_empty());
    let blobs = std::fs::read_dir(setup.blobs()).expect("a folder");
    assert_eq!(blobs.count(), 3, "only the small files are left");
}

#[test]
fn the_token_goes_to_the_endpoint_alone() {
    let setup = Setup::new();
    let elsewhere = HubServer::start();
    elsewhere.add(REPO, "model.safetensors", weights());
    setup.server.keep_large_files_at(&elsewhere);
    setup.server.require("hf_secret");
    let settings = setup.with_token("hf_secret", "HF_TOKEN");
    let snapshot = fetch_as(REPO, settings).expect("a model");
    assert_eq!(read(&snapshot.path.join("model.safetensors")), weights());
    assert_eq!(elsewhere.transfers().len(), 1);
    let mut seen = elsewhere.seen().into_iter();
    let leaked = seen.find(|seen| seen.token.is_some());
    assert!(leaked.is_none(), "{leaked:?}");
    assert!(setup.server.seen().iter().all(|seen| seen.token.is_some()));
}

#[test]
fn refusals_say_how_to_give_a_token() {
    let setup = Setup::new();
    setup.server.require("hf_secret");
    let parts = ["401", "HF_TOKEN", "hf auth login", REPO];
    refused(setup.fetch(REPO), &parts);
    let with = |token: &str, origin: &str, parts: &[&str]| {
        let reported = refused(fetch_as(REPO, setup.with_token(token, origin)), parts);
        assert!(!reported.contains(token), "{reported}");
        reported
    };
    // One that the hub does not know is another matter than one that may not see the model.
    let parts = ["401", "the token from /home/me/token is not valid"];
    let unknown = with("hf_wrong", "/home/me/token", &parts);
    assert!(!unknown.contains("licence"), "{unknown}");
    setup.server.gate();
    let parts = ["403", "the token from HF_TOKEN has no access", "licence"];
    with("hf_secret", "HF_TOKEN", &parts);
}

#[test]
fn a_hub_that_has_moved_is_said_to_be_elsewhere() {
    let setup = Setup::new();
    let elsewhere = HubServer::start();
    setup.server.move_to(&elsewhere.url);
    let moved = fetch_as(REPO, setup.with_token("hf_secret", "HF_TOKEN"));
    let advice = format!("HF_ENDPOINT={}", elsewhere.url);
    refused(moved, &[&setup.server.url, "another server", &advice]);
    // Nobody there was asked, with the token or without.
    assert!(elsewhere.seen().is_empty());
}

#[test]
fn what_is_missing_is_named() {
    let setup = Setup::new();
    setup.server.add("org/gguf", "m.gguf", "GGUF");
    setup.server.add("org/torch", "config.json", "{}");
    setup.server.add("org/torch", "pytorch_model.bin", "x");
    for (model, parts) in [
        ("org/other", ["no model org/other", ""]),
        ("org/tiny@v9", ["no revision v9", ""]),
        ("org/gguf", ["config.json", ":m.gguf"]),
        ("org/torch", ["model.safetensors", "PyTorch"]),
    ] {
        refused(setup.fetch(model), &parts);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_named_and_nothing_is_left() {
    let setup = Setup::new();
    // A device that is always full stands where the file would grow.
    let file = format!("{}.incomplete", sha256(&weights()));
    std::fs::create_dir_all(setup.blobs()).expect("made");
    let path = setup.blobs().join(file);
    std::os::unix::fs::symlink("/dev/full", &path).expect("made");
    let parts = ["no space", "model.safetensors", "3000000", "HF_HUB_CACHE"];
    refused(setup.fetch(REPO), &parts);
    assert!(setup.incomplete().is_empty() && !path.is_symlink());
}

#[test]
fn two_at_once_download_once() {
    let setup = Setup::new();
    std::thread::scope(|scope| {
        let fetches = [(); 2].map(|()| scope.spawn(|| setup.fetch(REPO).expect("a model")));
        for fetch in fetches {
            let snapshot = fetch.join().expect("no panic");
            assert_eq!(read(&snapshot.path.join("model.safetensors")), weights());
        }
    });
    assert_eq!(setup.server.transfers().len(), 1);
}
