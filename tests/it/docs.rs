//! What the documentation names exists: files and headings that links lead to, and paths of the repository.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders with documentation; those in them are looked through too. Of the root its own pages count.
const FOLDERS: [&str; 3] = ["docs", "deploy", "helm/outrider"];

/// What a path of the repository begins with.
const PLACES: &str = "services/ shared/ tests/ tools/ proto/ deploy/ helm/ docs/ models/ .ci/";

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// Adds the pages in `folder` to `pages`, and those of the folders in it if `deep`.
fn collect(folder: &Path, deep: bool, pages: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            if deep {
                collect(&path, true, pages);
            }
        } else if path.extension().is_some_and(|it| it == "md") {
            pages.push(path);
        }
    }
}

fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    collect(&root(), false, &mut pages);
    for folder in FOLDERS {
        collect(&root().join(folder), true, &mut pages);
    }
    assert!(pages.len() > 20, "{} pages", pages.len());
    pages
}

/// The lines of a page outside of code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut in_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        if is_fence {
            in_code = !in_code;
        }
        !is_fence && !in_code
    })
}

/// What links call a heading: in lower case, without punctuation, with hyphens for spaces.
fn anchor(heading: &str) -> String {
    let lower = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = lower
        .chars()
        .filter(|&it| it.is_alphanumeric() || it == ' ' || it == '-' || it == '_');
    kept.map(|it| if it == ' ' { '-' } else { it }).collect()
}

/// The headings of a page, as links call them.
fn anchors(page: &Path) -> BTreeSet<String> {
    let text = read(page);
    let headings = prose(&text).filter(|line| line.starts_with('#'));
    headings.map(anchor).collect()
}

/// Where the links and images of a line lead.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    let links = line.split("](").skip(1);
    links.filter_map(|rest| Some(rest.split_once(')')?.0))
}

/// Whether a link of `page` leads to a file that exists, and to a heading of it if it names one.
fn leads_somewhere(page: &Path, target: &str) -> bool {
    let (path, heading) = target.split_once('#').unwrap_or((target, ""));
    let file = if path.is_empty() {
        page.to_owned()
    } else {
        page.with_file_name("").join(path)
    };
    let is_page = file.extension().is_some_and(|it| it == "md");
    file.exists() && (heading.is_empty() || !is_page || anchors(&file).contains(heading))
}

/// Whether what stands in backticks is a path of the repository, and no pattern of one.
fn is_path(word: &str) -> bool {
    PLACES.split(' ').any(|place| word.starts_with(place))
        && !word.contains([' ', '*', '{', '<', '…'])
}

#[test]
fn every_link_leads_somewhere() {
    let mut broken = Vec::new();
    for page in pages() {
        for target in prose(&read(&page)).flat_map(targets) {
            let is_outside = target.contains("://") || target.starts_with("mailto:");
            if !is_outside && !leads_somewhere(&page, target) {
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_path_that_is_named_exists() {
    let mut named = 0;
    let mut missing = Vec::new();
    for page in pages() {
        let text = read(&page);
        let words = prose(&text).flat_map(|line| line.split('`').skip(1).step_by(2));
        for word in words.filter(|word| is_path(word)) {
            named += 1;
            if !root().join(word).exists() {
                missing.push(format!("{}: {word}", page.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    assert!(named > 50, "{named} paths are named");
}
