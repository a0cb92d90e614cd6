//! One file from the hub into the cache: resumed where it stopped, and checked.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

use ureq::http::StatusCode;

use super::http::{Ask, Http, LINKED_ETAG, redirect, text};
use super::integrity::{damage, is_sha256};
use super::{HubError, cache::Blob};

/// Attempts in a row that bring nothing before a download is given up.
const MAX_FRUITLESS: u32 = 4;
/// Pause before the first of them; doubled for each further one.
const PAUSE: Duration = Duration::from_millis(200);
const BUFFER_BYTES: usize = 256 << 10;

/// What the hub says of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileMetadata {
    /// What tells its contents from others: their SHA-256 where they are kept as a large file.
    pub(super) etag: String,
    /// Its size in bytes.
    pub(super) size: u64,
    /// Where its bytes are.
    location: String,
}

/// Asks the hub about the file at `url`; `what` and `missing` are for messages.
///
/// # Errors
/// If the hub refuses, or says too little.
pub(super) fn metadata(
    http: &Http,
    url: &str,
    what: &str,
    missing: impl FnOnce() -> HubError,
) -> Result<FileMetadata, HubError> {
    let response = http.ask(url, Ask::Head)?;
    http.check(what, url, &response, missing)?;
    let location = redirect(url, &response)?;
    let headers = response.headers();
    let number = |headers, name| text(headers, name).and_then(|size| size.parse().ok());
    let etag = text(headers, LINKED_ETAG).or_else(|| text(headers, "etag"));
    let etag = match (etag, &location) {
        (Some(etag), _) => etag,
        (None, Some(elsewhere)) => return Err(HubError::elsewhere(url, elsewhere)),
        (None, None) => return Err(HubError::answer(url, "the answer has no ETag")),
    };
    let etag = etag.trim_start_matches("W/").trim_matches('"');
    // It becomes a file name.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if etag.is_empty() || etag.len() > 128 || !etag.bytes().all(is_plain) {
        return Err(HubError::answer(url, format!("the ETag {etag:?} is odd")));
    }
    let size = match (number(headers, "x-linked-size"), &location) {
        (None, None) => number(headers, "content-length"),
        (None, Some(elsewhere)) => {
            let response = http.ask(elsewhere, Ask::Head)?;
            number(response.headers(), "content-length")
        }
        (size, _) => size,
    };
    Ok(FileMetadata {
        etag: etag.to_owned(),
        size: size.ok_or_else(|| HubError::answer(url, "the answer has no size"))?,
        location: location.unwrap_or_else(|| url.to_owned()),
    })
}

/// Brings the file at `url`, of which the hub says `metadata`, into `blob`, which nobody else fills
/// meanwhile. Tells `at` how many bytes are there; all of them once, at the end.
///
/// # Errors
/// If the connection breaks again and again, the disk is full, or the bytes are not those announced.
pub(super) fn download(
    http: &Http,
    url: &str,
    file: &str,
    mut metadata: FileMetadata,
    blob: &Blob,
    at: &dyn Fn(u64),
) -> Result<(), HubError> {
    let mut fruitless = 0;
    loop {
        let before = length(&blob.incomplete);
        let Some(reason) = receive(http, file, &metadata, blob, at)? else {
            break;
        };
        let got = length(&blob.incomplete);
        fruitless = if got > before { 0 } else { fruitless + 1 };
        if fruitless == MAX_FRUITLESS {
            return Err(HubError::Interrupted {
                file: file.to_owned(),
                got,
                size: metadata.size,
                reason,
            });
        }
        std::thread::sleep(PAUSE * (1 << fruitless));
        // Addresses of files elsewhere are valid for a while only. Where the hub does not answer at the
        // moment, the old one may still do.
        let missing = || HubError::answer(url, "the file is gone");
        match self::metadata(http, url, file, missing) {
            Ok(now) if now.etag != metadata.etag => {
                return Err(HubError::answer(
                    url,
                    "the file has just changed, try again",
                ));
            }
            Ok(now) => metadata = now,
            Err(HubError::Unreachable { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    at(metadata.size);
    check(file, &metadata, blob)?;
    fs::rename(&blob.incomplete, &blob.path).map_err(HubError::io(&blob.path))
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// Receives what is missing of the file. Returns why the connection broke, or `None` if all is there.
fn receive(
    http: &Http,
    file: &str,
    metadata: &FileMetadata,
    blob: &Blob,
    at: &dyn Fn(u64),
) -> Result<Option<String>, HubError> {
    let path = &blob.incomplete;
    let opened = OpenOptions::new().create(true).append(true).open(path);
    let mut out = opened.map_err(HubError::io(path))?;
    let mut have = length(path);
    if have > metadata.size {
        out.set_len(0).map_err(HubError::io(path))?;
        have = 0;
    }
    if have == metadata.size {
        return Ok(None);
    }
    let url = &metadata.location;
    let response = match http.ask(url, Ask::GetFrom(have)) {
        Ok(response) => response,
        Err(HubError::Unreachable { reason, .. }) => return Ok(Some(reason)),
        Err(error) => return Err(error),
    };
    let range = text(response.headers(), "content-range");
    match response.status() {
        StatusCode::PARTIAL_CONTENT => {
            let expected = format!("bytes {have}-");
            if range.is_none_or(|range| !range.starts_with(&expected)) {
                let problem = format!("asked from byte {have}, the answer is {range:?}");
                return Err(HubError::answer(url, problem));
            }
        }
        StatusCode::OK if have == 0 => {}
        StatusCode::OK => {
            // The server knows no ranges: it sends everything again.
            out.set_len(0).map_err(HubError::io(path))?;
            have = 0;
        }
        status => return Ok(Some(format!("the answer is {status}"))),
    }
    at(have);
    let mut body = response.into_body().into_reader();
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let read = match body.read(&mut buffer) {
            Ok(0) if have < metadata.size => return Ok(Some("it ended early".to_owned())),
            Ok(0) => return Ok(None),
            Ok(read) => read,
            Err(error) => return Ok(Some(error.to_string())),
        };
        have += read as u64;
        if have > metadata.size {
            drop(out);
            let _gone = fs::remove_file(path);
            let problem = format!("more than the {} bytes announced", metadata.size);
            return Err(HubError::answer(url, problem));
        }
        out.write_all(&buffer[..read])
            .map_err(|error| written(error, file, metadata, blob))?;
        // The end is told once, where all that was received is there.
        if have < metadata.size {
            at(have);
        }
    }
}

/// Returns the error of a failed write. A full disk keeps nothing of the file.
fn written(error: io::Error, file: &str, metadata: &FileMetadata, blob: &Blob) -> HubError {
    if !matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    ) {
        return HubError::io(&blob.incomplete)(error);
    }
    let _gone = fs::remove_file(&blob.incomplete);
    HubError::NoSpace {
        file: file.to_owned(),
        size: metadata.size,
        folder: blob.path.parent().unwrap_or(&blob.path).to_owned(),
    }
}

/// Compares the bytes with their SHA-256, where the hub tells it; removes them if they differ.
fn check(file: &str, metadata: &FileMetadata, blob: &Blob) -> Result<(), HubError> {
    if !is_sha256(&metadata.etag) {
        return Ok(());
    }
    let damage =
        damage(&blob.incomplete, &metadata.etag).map_err(HubError::io(&blob.incomplete))?;
    let Some(problem) = damage else {
        return Ok(());
    };
    fs::remove_file(&blob.incomplete).map_err(HubError::io(&blob.incomplete))?;
    Err(HubError::WrongHash {
        file: file.to_owned(),
        problem,
    })
}
