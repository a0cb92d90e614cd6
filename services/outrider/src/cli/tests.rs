use std::path::{Path, PathBuf};

use super::*;

#[test]
fn the_flags_are_consistent() {
    Cli::command().debug_assert();
}

/// Adds the Rust sources beneath a folder, but for tests.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && !path.ends_with("tests") && !path.ends_with("target") {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn messages_name_commands_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for folder in ["services", "shared", "tools"] {
        sources(&root.join(folder), &mut files);
    }
    let command = Cli::command();
    let shown = command.get_subcommands().filter(|it| !it.is_hide_set());
    let known: Vec<_> = shown.map(clap::Command::get_name).collect();
    let mut found = 0;
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a source");
        for rest in text.split("`outrider ").skip(1) {
            let is_of_name = |c: char| c.is_ascii_lowercase() || c == '-';
            let name = rest.split(|c| !is_of_name(c)).next().unwrap_or_default();
            if name.is_empty() || name.starts_with('-') {
                continue;
            }
            found += 1;
            assert!(
                known.contains(&name),
                "{}: `outrider {name}`",
                file.display()
            );
        }
    }
    assert!(found > 20, "{found} commands are named");
}
