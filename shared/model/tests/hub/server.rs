//! A hub on loopback: the part of its protocol that downloads use, and faults to order.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use sha1::Sha1;
use sha2::{Digest, Sha256};

/// Commit of every repository here.
pub(crate) const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) range: Option<String>,
    pub(crate) token: Option<String>,
}

#[derive(Default)]
struct State {
    /// Contents by repository and name.
    files: HashMap<(String, String), Vec<u8>>,
    seen: Vec<Seen>,
    /// Bytes after which the next answers break off, the first one first.
    cuts: Vec<usize>,
    /// What becomes of a file once an answer has broken off.
    next: Option<Change>,
    /// HubToken without which everything is refused.
    secret: Option<String>,
    /// Whether who has the token may not see the models.
    gated: bool,
    /// Server that knows all that is asked here.
    moved_to: Option<String>,
    /// Where large files are; this server itself if not given.
    elsewhere: Option<String>,
    /// Hash announced instead of the right one.
    false_hash: Option<String>,
    ignores_ranges: bool,
}

/// Repository and name of a file, its new contents, and the hash announced for it, if not the right one.
type Change = ((String, String), Vec<u8>, Option<String>);

/// A running hub.
#[derive(Clone)]
pub(crate) struct HubServer {
    pub(crate) url: String,
    state: Arc<Mutex<State>>,
}

/// An answer: status line, headers, body.
type Answer = (&'static str, Vec<(&'static str, String)>, Vec<u8>);

impl HubServer {
    /// A hub without models.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let server = Self {
            url,
            state: Arc::default(),
        };
        let serving = server.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = serving.clone();
                thread::spawn(move || server.answer(&stream));
            }
        });
        server
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic")
    }

    pub(crate) fn add(&self, repo: &str, name: &str, contents: impl Into<Vec<u8>>) {
        let key = (repo.to_owned(), name.to_owned());
        self.state().files.insert(key, contents.into());
    }

    pub(crate) fn cut_after(&self, bytes: &[usize]) {
        self.state().cuts = bytes.to_vec();
    }

    /// Once an answer has broken off, the file has other `contents`, for which `hash` is announced, or the right one.
    pub(crate) fn change_when_cut(
        &self,
        (repo, name): (&str, &str),
        contents: Vec<u8>,
        hash: Option<&str>,
    ) {
        let key = (repo.to_owned(), name.to_owned());
        self.state().next = Some((key, contents, hash.map(str::to_owned)));
    }

    pub(crate) fn require(&self, token: &str) {
        self.state().secret = Some(token.to_owned());
    }

    pub(crate) fn gate(&self) {
        self.state().gated = true;
    }

    pub(crate) fn move_to(&self, other: &str) {
        self.state().moved_to = Some(other.to_owned());
    }

    pub(crate) fn keep_large_files_at(&self, other: &HubServer) {
        self.state().elsewhere = Some(other.url.clone());
    }

    pub(crate) fn announce(&self, hash: &str) {
        self.state().false_hash = Some(hash.to_owned());
    }

    pub(crate) fn ignore_ranges(&self) {
        self.state().ignores_ranges = true;
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.state().seen.clone()
    }

    /// Requests for bytes of the large files.
    pub(crate) fn transfers(&self) -> Vec<Seen> {
        let is_one = |seen: &Seen| seen.method == "GET" && seen.path.starts_with("/cdn/");
        self.seen().into_iter().filter(is_one).collect()
    }

    fn answer(&self, stream: &TcpStream) {
        let Some(request) = read(stream) else { return };
        self.state().seen.push(request.clone());
        let (status, headers, mut body) = self.reply(&request);
        let mut head = format!("HTTP/1.1 {status}\r\nConnection: close\r\n");
        for (name, value) in headers {
            let _infallible = write!(head, "{name}: {value}\r\n");
        }
        let _infallible = write!(head, "Content-Length: {}\r\n\r\n", body.len());
        if request.method == "HEAD" {
            body.clear();
        }
        let is_transfer = request.path.starts_with("/cdn/") && !body.is_empty();
        if is_transfer && !self.state().cuts.is_empty() {
            let mut state = self.state();
            body.truncate(state.cuts.remove(0));
            if let Some((key, contents, hash)) = state.next.take() {
                state.files.insert(key, contents);
                state.false_hash = hash;
            }
        }
        let mut stream = stream;
        let _ = stream.write_all(head.as_bytes());
        let _ = stream.write_all(&body);
        let _ = stream.flush();
    }

    fn reply(&self, request: &Seen) -> Answer {
        let error = |status, code: &str| {
            let headers = vec![("X-Error-Code", code.to_owned())];
            (status, headers, Vec::new())
        };
        let state = self.state();
        let parts: Vec<&str> = request.path.trim_start_matches('/').split('/').collect();
        if let ["cdn", repo @ .., name] = parts.as_slice() {
            let key = (repo.join("/"), name.replace("%2F", "/"));
            return match state.files.get(&key) {
                Some(bytes) => part(&state, bytes, request.range.as_deref()),
                None => error("404 Not Found", "EntryNotFound"),
            };
        }
        if let Some(other) = &state.moved_to {
            let headers = vec![("Location", format!("{other}{}", request.path))];
            return ("308 Permanent Redirect", headers, Vec::new());
        }
        if let Some(secret) = &state.secret
            && request.token.as_ref() != Some(&format!("Bearer {secret}"))
        {
            return error("401 Unauthorized", "GatedRepo");
        }
        if state.gated {
            return error("403 Forbidden", "GatedRepo");
        }
        match parts.as_slice() {
            ["api", "models", org, name, "revision", revision] => {
                let repo = format!("{org}/{name}");
                let names = state.files.keys().filter(|(of, _)| *of == repo);
                let names: Vec<String> = names
                    .map(|(_, name)| format!(r#"{{"rfilename":"{name}"}}"#))
                    .collect();
                if names.is_empty() {
                    return error("404 Not Found", "RepoNotFound");
                }
                if *revision != "main" && *revision != COMMIT {
                    return error("404 Not Found", "RevisionNotFound");
                }
                let names = names.join(",");
                let json = format!(r#"{{"sha":"{COMMIT}","siblings":[{names}]}}"#);
                ("200 OK", Vec::new(), json.into_bytes())
            }
            [org, name, "resolve", COMMIT, file @ ..] => {
                let repo = format!("{org}/{name}");
                let file = file.join("/");
                match state.files.get(&(repo.clone(), file.clone())) {
                    None => error("404 Not Found", "EntryNotFound"),
                    Some(bytes) => resolve(&state, &repo, &file, bytes, request),
                }
            }
            _ => error("404 Not Found", "Unknown"),
        }
    }
}

/// The answer to `resolve`: small files at once, large ones by a redirect.
fn resolve(state: &State, repo: &str, file: &str, bytes: &[u8], request: &Seen) -> Answer {
    let commit = ("X-Repo-Commit", COMMIT.to_owned());
    let is_large = [".safetensors", ".gguf"]
        .iter()
        .any(|end| file.ends_with(end));
    if !is_large {
        let etag = format!("\"{}\"", git_hash(bytes));
        let (status, mut headers, body) = part(state, bytes, request.range.as_deref());
        headers.extend([commit, ("ETag", etag)]);
        return (status, headers, body);
    }
    let hash = state.false_hash.clone().unwrap_or_else(|| sha256(bytes));
    let base = state.elsewhere.clone().unwrap_or_default();
    let location = format!("{base}/cdn/{repo}/{}", file.replace('/', "%2F"));
    let headers = vec![
        commit,
        ("X-Linked-Etag", format!("\"{hash}\"")),
        ("X-Linked-Size", bytes.len().to_string()),
        ("ETag", "\"of-the-redirect\"".to_owned()),
        ("Location", location),
    ];
    ("302 Found", headers, Vec::new())
}

/// The part of `bytes` that is asked for.
fn part(state: &State, bytes: &[u8], range: Option<&str>) -> Answer {
    let from = range.and_then(|range| {
        range
            .strip_prefix("bytes=")?
            .split('-')
            .next()?
            .parse()
            .ok()
    });
    match from {
        Some(from) if !state.ignores_ranges => {
            let from: usize = from;
            let all = bytes.len();
            if from >= all {
                return ("416 Range Not Satisfiable", Vec::new(), Vec::new());
            }
            let range = format!("bytes {from}-{}/{all}", all - 1);
            let headers = vec![("Content-Range", range)];
            ("206 Partial Content", headers, bytes[from..].to_vec())
        }
        _ => ("200 OK", Vec::new(), bytes.to_vec()),
    }
}

fn read(stream: &TcpStream) -> Option<Seen> {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let first = lines.next()?;
    let mut words = first.split(' ').map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let headers: HashMap<String, String> = lines
        .take_while(|line| !line.is_empty())
        .filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_ascii_lowercase(), value.trim().to_owned()))
        })
        .collect();
    Some(Seen {
        method,
        path,
        range: headers.get("range").cloned(),
        token: headers.get("authorization").cloned(),
    })
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The hash by which git knows these contents.
fn git_hash(bytes: &[u8]) -> String {
    let mut hash = Sha1::new_with_prefix(format!("blob {}\0", bytes.len()));
    hash.update(bytes);
    hex(&hash.finalize())
}

fn hex(hash: &[u8]) -> String {
    hash.iter().fold(String::new(), |mut hex, byte| {
        let _infallible = write!(hex, "{byte:02x}");
        hex
    })
}
