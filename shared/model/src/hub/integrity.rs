//! Whether the bytes of a file are those that its name in the cache stands for.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use sha1::Sha1;
use sha2::{Digest, Sha256};

use crate::checkpoint::hex;

const BUFFER_BYTES: usize = 256 << 10;

/// Compares the file at `path` with `hash`, by which the hub knows it, and tells what is wrong if its bytes are
/// others. A hash of an unknown kind says nothing.
pub(super) fn damage(path: &Path, hash: &str) -> io::Result<Option<String>> {
    let (kind, found) = if is_sha256(hash) {
        ("sha256", digest::<Sha256>(path, b"")?)
    } else if is_sha1(hash) {
        let found = git_hash(path)?;
        // Mirrors know small files by the hash of their bytes alone.
        if found != hash && digest::<Sha1>(path, b"")?.eq_ignore_ascii_case(hash) {
            return Ok(None);
        }
        ("the hash by which git knows it", found)
    } else {
        return Ok(None);
    };
    let differs = !found.eq_ignore_ascii_case(hash);
    Ok(differs.then(|| format!("{kind} is {found}, expected {hash}")))
}

/// Whether a hash is a SHA-256, rather than the one by which git knows a small file.
pub(super) fn is_sha256(hash: &str) -> bool {
    is_hex(hash, 64)
}

/// Whether a hash is a SHA-1, as those of commits are.
pub(super) fn is_sha1(hash: &str) -> bool {
    is_hex(hash, 40)
}

fn is_hex(hash: &str, digits: usize) -> bool {
    hash.len() == digits && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The hash by which git knows the contents of a file, in hexadecimal.
fn git_hash(path: &Path) -> io::Result<String> {
    let size = path.metadata()?.len();
    digest::<Sha1>(path, format!("blob {size}\0").as_bytes())
}

/// The digest of `before` and the bytes of a file, in hexadecimal.
fn digest<D: Digest>(path: &Path, before: &[u8]) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hash = D::new();
    hash.update(before);
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        hash.update(&buffer[..read]);
    }
    Ok(hex(&hash.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hashes as `sha256sum`, `git hash-object` and `sha1sum` tell them.
    #[test]
    fn each_kind_of_hash_is_that_of_its_program() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        std::fs::write(&path, "hello\n").expect("written");
        for (right, kind) in [
            (
                "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03",
                "sha256",
            ),
            ("ce013625030ba8dba906f756967f9e9ca394464a", "git"),
            ("f572d396fae9206628714fb2ce00f72e94f2258f", "git"),
        ] {
            assert_eq!(damage(&path, right).expect("read"), None, "{kind}");
            let wrong = right.replace('f', "0");
            let found = damage(&path, &wrong).expect("read").expect("damaged");
            assert!(found.contains(kind), "{found}");
        }
        assert_eq!(damage(&path, "an-etag").expect("read"), None);
    }
}
