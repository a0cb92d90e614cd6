//! Each checkpoint written as GGUF is the same model.

use std::{ops::ControlFlow, path::Path};

use model::gguf_writer::{self, FileFormat};

use super::{Checkpoint, MODELS, WeightFormat, folder, fresh, golden};

fn write(checkpoint: &Checkpoint, format: FileFormat, path: &Path) {
    let mut file = std::fs::File::create(path).unwrap();
    let mut unstopped = |_: model::progress::WorkProgress<'_>| ControlFlow::Continue(());
    gguf_writer::write(checkpoint, "golden", format, &mut file, &mut unstopped).unwrap();
    gguf_writer::verify(checkpoint, path).unwrap();
}

#[test]
fn a_file_written_has_the_same_bits() {
    let scratch = tempfile::tempdir().unwrap();
    for name in MODELS {
        let checkpoint = Checkpoint::open(&folder(name)).unwrap();
        let input = &golden(name)[0].input;
        for (file, format) in [
            (FileFormat::F32, WeightFormat::F32),
            (FileFormat::Q8_0, WeightFormat::Q8_0),
            (FileFormat::Q4K, WeightFormat::Q4_K),
        ] {
            let path = scratch.path().join(format!("{name}-{file}.gguf"));
            write(&checkpoint, file, &path);
            let written = Checkpoint::open(&path).unwrap();
            let of = |checkpoint: &Checkpoint| {
                let mut model = checkpoint.load(format).unwrap();
                fresh(&mut model, input)
            };
            assert!(of(&checkpoint) == of(&written), "{name} in {file}");
        }
    }
}
