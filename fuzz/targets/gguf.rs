//! Any bytes as a GGUF file: it is refused, or loads and has a tokenizer that can be asked.

#![no_main]

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use model::{Checkpoint, WeightFormat};
use tempfile::TempDir;

/// In memory where there is such a folder.
static FOLDER: LazyLock<TempDir> = LazyLock::new(|| {
    let shared = Path::new("/dev/shm");
    let folder = if shared.is_dir() {
        tempfile::tempdir_in(shared)
    } else {
        tempfile::tempdir()
    };
    folder.expect("a folder")
});

fuzz_target!(|bytes: &[u8]| {
    let path = FOLDER.path().join("model.gguf");
    // A new file each time, as the one before may be mapped still.
    let _ = fs::remove_file(&path);
    fs::write(&path, bytes).expect("a file");
    let Ok(checkpoint) = Checkpoint::open(&path) else {
        return;
    };
    if let Ok(tokenizer) = checkpoint.tokenizer() {
        let _ = tokenizer.encode("Once upon a time", true);
    }
    let _ = checkpoint.load(WeightFormat::Q8_0);
});
