//! Which way modules import: the order of ARCHITECTURE.md, and no circles with every folder as one, checked on the sources.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The rooms of the coordinator, from where a request comes in to what all of them know. Each imports only from
/// those behind it.
const COORDINATOR: [&str; 12] = [
    "service",
    "front",
    "request",
    "driver",
    "limits",
    "peer",
    "proposers",
    "observe",
    "events",
    "admitted",
    "config",
    "error",
];

/// A module's path within its crate; empty for the root.
type Module = Vec<String>;

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "tests") {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs")
            && !path.ends_with("tests.rs")
        {
            found.push(path);
        }
    }
}

fn module_of(file: &Path) -> Module {
    let path = file.with_extension("");
    let mut module: Module = path
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    module.pop_if(|last| ["mod", "lib", "main"].contains(&last.as_str()));
    module
}

/// The code of a file without its comments and without the tests at its end.
fn code(file: &Path) -> String {
    let text = std::fs::read_to_string(file).expect("a source");
    let all: Vec<&str> = text.lines().collect();
    let opens_tests = |pair: &[&str]| {
        pair[0].starts_with("#[cfg(")
            && pair[0].contains("test")
            && pair[1].contains("mod ")
            && pair[1].ends_with('{')
    };
    let end = all.windows(2).position(opens_tests).unwrap_or(all.len());
    let lines = all[..end]
        .iter()
        .map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

fn path(text: &str) -> Vec<String> {
    let parts = text.trim().split("::").filter(|part| !part.is_empty());
    parts.map(str::to_owned).collect()
}

/// The paths of a group that `rest` begins with, behind its brace, each with `head` before it.
fn expand(head: &[String], rest: &mut std::str::Chars<'_>, found: &mut Vec<Vec<String>>) {
    let mut name = String::new();
    while let Some(c) = rest.next() {
        match c {
            '{' => {
                expand(&[head, &path(&name)].concat(), rest, found);
                name.clear();
            }
            ',' | '}' => {
                if !name.trim().is_empty() {
                    found.push([head, &path(&name)].concat());
                }
                name.clear();
            }
            c => name.push(c),
        }
        if c == '}' {
            return;
        }
    }
}

/// The paths that begin with `crate::` or `super::`, one for each name of a group.
fn imports(code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for start in ["crate::", "super::"] {
        for (at, _) in code.match_indices(start) {
            let is_start =
                !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
            if !is_start {
                continue;
            }
            let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
            let end = code[at..]
                .find(|c| !is_path(c))
                .map_or(code.len(), |len| at + len);
            let head = path(&code[at..end]);
            match code[end..].strip_prefix('{') {
                Some(group) => expand(&head, &mut group.chars(), &mut found),
                None => found.push(head),
            }
        }
    }
    found
}

/// What each module of the crate at `root` imports of the others, parents and children apart.
fn graph(root: &Path) -> BTreeMap<Module, BTreeSet<Module>> {
    let mut files = Vec::new();
    sources(root, &mut files);
    let modules: BTreeMap<Module, PathBuf> = files
        .into_iter()
        .map(|file| (module_of(file.strip_prefix(root).expect("within")), file))
        .collect();
    let resolve = |from: &Module, import: &[String]| {
        let mut path = if import[0] == "crate" {
            Module::new()
        } else {
            from.clone()
        };
        for part in import {
            match part.as_str() {
                "crate" => {}
                "super" => _ = path.pop(),
                name => path.push(name.to_owned()),
            }
        }
        while !modules.contains_key(&path) && !path.is_empty() {
            path.pop();
        }
        path
    };
    let edges = modules.iter().map(|(module, file)| {
        let targets = imports(&code(file))
            .into_iter()
            .map(|import| resolve(module, &import));
        let others = targets.filter(|to| !to.starts_with(module) && !module.starts_with(to));
        (module.clone(), others.collect())
    });
    edges.collect()
}

/// The same with every folder as one: an import joins the children of the folder that both of its ends are in.
fn folded(graph: &BTreeMap<Module, BTreeSet<Module>>) -> BTreeMap<Module, BTreeSet<Module>> {
    let mut rooms: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    let edges = graph
        .iter()
        .flat_map(|(from, to)| to.iter().map(move |to| (from, to)));
    for (from, to) in edges {
        let shared = from.iter().zip(to).take_while(|(a, b)| a == b).count();
        let room = from[..=shared].to_vec();
        rooms
            .entry(room)
            .or_default()
            .insert(to[..=shared].to_vec());
    }
    rooms
}

/// Modules that can be reached from themselves.
fn in_circles(graph: &BTreeMap<Module, BTreeSet<Module>>) -> Vec<String> {
    let reaches_itself = |start: &&Module| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![*start]);
        while let Some(module) = next.pop() {
            for to in graph.get(module).into_iter().flatten() {
                if to == *start {
                    return true;
                }
                if seen.insert(to) {
                    next.push(to);
                }
            }
        }
        false
    };
    let circular = graph.keys().filter(reaches_itself);
    circular.map(|module| module.join("::")).collect()
}

/// Imports of a room from one before it.
fn backwards(graph: &BTreeMap<Module, BTreeSet<Module>>, order: &[&str]) -> Vec<String> {
    let place = |module: &Module| {
        let room = module.first()?;
        let place = order.iter().position(|other| other == room);
        Some(place.unwrap_or_else(|| panic!("{room} has no place in the order")))
    };
    let edges = graph
        .iter()
        .flat_map(|(from, to)| to.iter().map(move |to| (from, to)));
    let back = edges.filter(|(from, to)| {
        place(from)
            .zip(place(to))
            .is_some_and(|(from, to)| to < from)
    });
    back.map(|(from, to)| format!("{} imports {}", from.join("::"), to.join("::")))
        .collect()
}

/// The root of the repository.
fn root() -> &'static Path {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("tests/ is in the root")
}

fn coordinator() -> BTreeMap<Module, BTreeSet<Module>> {
    graph(&root().join("services/coordinator/src"))
}

#[test]
fn no_crate_has_a_circle_of_modules() {
    let mut crates = 0;
    let mut circles = Vec::new();
    for folder in ["services", "shared", "tools"] {
        for entry in std::fs::read_dir(root().join(folder)).expect("a folder of crates") {
            let of = entry.expect("an entry").path();
            if of.join("src").is_dir() {
                crates += 1;
                let name = of
                    .file_name()
                    .expect("a name")
                    .to_string_lossy()
                    .into_owned();
                let found = in_circles(&folded(&graph(&of.join("src"))));
                circles.extend(found.iter().map(|module| format!("{name}: {module}")));
            }
        }
    }
    assert!(crates >= 10, "{crates} crates were found");
    assert_eq!(circles, Vec::<String>::new());
}

#[test]
fn a_request_goes_one_way_through_the_coordinator() {
    let graph = coordinator();
    assert!(graph.len() > 40, "{} modules were found", graph.len());
    assert_eq!(backwards(&graph, &COORDINATOR), Vec::<String>::new());
}

/// Whoever watches knows the events and what is in them, and no other part of the coordinator.
#[test]
fn observation_depends_on_nothing_but_the_events() {
    for (module, imports) in coordinator() {
        if module.first().is_some_and(|room| room == "observe") {
            let allowed = ["observe", "events", "admitted"];
            let strangers: Vec<_> = imports
                .iter()
                .filter(|to| {
                    to.first()
                        .is_none_or(|room| !allowed.contains(&room.as_str()))
                })
                .collect();
            assert!(strangers.is_empty(), "{module:?} imports {strangers:?}");
        }
    }
}

#[test]
fn a_circle_and_a_step_back_are_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, text).expect("written");
    };
    write("lib.rs", "mod a; mod b;");
    write("a.rs", "use crate::b::c::Thing;\n");
    write("b.rs", "mod c; mod d;\n");
    write(
        "b/c.rs",
        "fn f() { super::super::Thing } // super::d::Thing\n",
    );
    write("b/d.rs", "use super::c::Thing;\nuse super::Other;\n");
    let circles = || in_circles(&folded(&graph(folder.path())));
    assert_eq!(circles(), Vec::<String>::new());
    assert_eq!(
        backwards(&graph(folder.path()), &["b", "a"]),
        ["a imports b::c"]
    );
    // Not a circle of files, but of a file and a folder.
    write("b/d.rs", "fn f() { super::super::a::g() }\n");
    assert_eq!(in_circles(&graph(folder.path())), Vec::<String>::new());
    assert_eq!(circles(), ["a", "b"]);
    // A circle within a folder.
    write("b/c.rs", "use crate::b::{d::Thing};\n");
    write("b/d.rs", "use super::c::Thing;\n");
    assert_eq!(circles(), ["b::c", "b::d"]);
}
