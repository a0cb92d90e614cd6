//! Models written as GGUF files.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::{each_refused, json, outrider, says, succeeds, words};

fn quantized(folder: &Path, source: &str, format: &str) -> String {
    let path = folder.join(format!("{format}.gguf"));
    let path = path.to_str().expect("a name").to_owned();
    let (stdout, stderr) = succeeds(&mut outrider(&["quantize", source, &path, "--to", format]));
    assert!(
        stdout.contains("tensors") && stdout.contains(format),
        "{stdout}"
    );
    assert!(stderr.contains(" MB, token_embd.weight"), "{stderr}");
    path
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    names
        .map(|name| name.to_string_lossy().into_owned())
        .collect()
}

#[test]
fn a_file_answers_as_the_model_it_was_made_from() {
    let folder = tempfile::tempdir().expect("a folder");
    let target = quantized(folder.path(), "embedded:target", "q8_0");
    let prompt = words("--prompt 'Once upon a time' --max-tokens 24 --seed 5");
    let answer = |model: Option<&str>| -> Value {
        let config = folder.path().join("config.toml");
        let text = model.map(|path| format!("[verifier.model]\npath = {path:?}\n"));
        fs::write(&config, text.unwrap_or_default()).expect("written");
        let config = config.to_str().expect("a name").to_owned();
        json(&[&["--config", &config], &prompt[..]].concat())["text"].clone()
    };
    let (before, after) = (answer(None), answer(Some(&target)));
    assert_eq!(before, after);
    assert!(
        before.as_str().is_some_and(|text| text.len() > 20),
        "{before}"
    );
    // Made from the file, the same format gives the same file.
    let again = folder.path().join("again.gguf");
    succeeds(outrider(&["quantize", "--to", "q8_0", &target]).arg(&again));
    // Before the tensors stand the files' names, which differ.
    let tensors = |path: &Path| {
        let bytes = fs::read(path).expect("a file");
        bytes[bytes.len() - 12_000_000..].to_vec()
    };
    assert!(tensors(&again) == tensors(Path::new(&target)));
}

#[test]
fn nothing_is_overwritten_unless_asked_and_nothing_is_left_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("model.gguf");
    fs::write(&path, "precious").expect("written");
    let place = path.to_str().expect("a name");
    for line in [
        "embedded:draft PLACE | is there already, --force replaces it",
        "embedded:nothing PLACE --force | SRC: path: 'embedded:nothing' is not embedded",
        "PLACE PLACE --force | it does not begin with GGUF",
        "embedded:draft PLACE/no/such.gguf | cannot be written to",
    ] {
        each_refused(
            &["quantize", "--to", "q4_k"],
            &[&line.replace("PLACE", place)],
        );
    }
    assert_eq!(fs::read(&path).expect("still there"), b"precious");
    assert_eq!(names(folder.path()), ["model.gguf"]);
    let made = [
        "quantize",
        "embedded:draft",
        place,
        "--to",
        "q4_k",
        "--force",
    ];
    let (stdout, _) = succeeds(&mut outrider(&made));
    assert!(fs::read(&path).expect("a file").starts_with(b"GGUF"));
    says(
        &stdout,
        "22 matrices in q8_0 because of the length of their rows",
    );
    assert_eq!(names(folder.path()), ["model.gguf"]);
}

/// What stops a process, but for a kill, removes what was begun.
#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_run_leaves_nothing_behind() {
    for (signal, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        if signal == "HUP" && ignores_hang_up() {
            // What was begun under nohup passes that on, and a run does not end by it either.
            continue;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let mut held = Held::start(folder.path());
        assert_eq!(names(folder.path()), [".model.gguf.part"], "it has begun");
        crate::signal(&held.child, signal);
        held.waits_until_it_says("interrupted");
        let status = held.go_on().wait().expect("it ends");
        let left = names(folder.path());
        assert_eq!((status.code(), left), (Some(code), Vec::new()), "{signal}");
    }
}

/// Whether this process, and so what it starts, ignores SIGHUP.
#[cfg(target_os = "linux")]
fn ignores_hang_up() -> bool {
    let status = fs::read_to_string("/proc/self/status").expect("of every process");
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .expect("a mask of signals");
    let mask = u64::from_str_radix(mask.trim(), 16).expect("hexadecimal");
    mask & (1 << (libc::SIGHUP - 1)) != 0
}

/// A run that has begun its file, and waits for its model's configuration, which comes through a pipe.
#[cfg(target_os = "linux")]
struct Held {
    child: std::process::Child,
    /// Keeps the model's files.
    source: tempfile::TempDir,
    config: fs::File,
    said: std::io::Lines<std::io::BufReader<std::process::ChildStderr>>,
}

#[cfg(target_os = "linux")]
impl Held {
    /// A run to model.gguf in `folder`.
    fn start(folder: &Path) -> Self {
        use std::io::BufRead;
        use std::os::unix::fs::OpenOptionsExt;

        let source = tempfile::tempdir().expect("a folder");
        for file in ["target/model.safetensors", "tokenizer/tokenizer.json"] {
            let file = model_file(file);
            let name = file.file_name().expect("a file");
            std::os::unix::fs::symlink(&file, source.path().join(name)).expect("linked");
        }
        let pipe = source.path().join("config.json");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.expect("mkfifo runs").success());
        let mut child = outrider(&["quantize", "--to", "q4_k", "--force"])
            .args([source.path(), &folder.join("model.gguf")])
            .stderr(std::process::Stdio::piped())
            .spawn()
            .expect("the binary runs");
        // Nobody can write to a pipe, if not to wait, before somebody reads from it.
        let mut writing = fs::File::options();
        writing.write(true).custom_flags(libc::O_NONBLOCK);
        let config = loop {
            match writing.open(&pipe) {
                Ok(config) => break config,
                Err(error) => assert_eq!(error.raw_os_error(), Some(libc::ENXIO), "{error}"),
            }
            assert!(
                child.try_wait().expect("a child").is_none(),
                "it ended without its model"
            );
            std::thread::yield_now();
        };
        let said = std::io::BufReader::new(child.stderr.take().expect("piped")).lines();
        Self {
            child,
            source,
            config,
            said,
        }
    }

    fn waits_until_it_says(&mut self, word: &str) {
        let line = self
            .said
            .find(|line| line.as_ref().is_ok_and(|line| line.contains(word)));
        assert!(line.is_some(), "it never said {word:?}");
    }

    /// Hands over the configuration, after which nothing holds it up.
    fn go_on(mut self) -> std::process::Child {
        use std::io::Write;

        let text = fs::read(model_file("target/config.json")).expect("a configuration");
        self.config.write_all(&text).expect("shorter than a pipe");
        drop(self.config);
        // What is not read must not hold it up either, and its files are wanted to the end.
        std::thread::spawn(move || {
            self.said.for_each(drop);
            drop(self.source);
        });
        self.child
    }
}

/// A file of the embedded pair, as it lies in the sources.
#[cfg(target_os = "linux")]
fn model_file(name: &str) -> std::path::PathBuf {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    sources.join("../../models/default").join(name)
}
