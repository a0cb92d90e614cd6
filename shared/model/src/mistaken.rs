//! Files that are not what their names say.

/// Returns what `bytes` are instead of a model's file, with what to do about it; none if they may be one.
pub(crate) fn instead(bytes: &[u8]) -> Option<&'static str> {
    if bytes.is_empty() {
        return Some("it is empty");
    }
    if bytes.starts_with(b"version https://git-lfs.github.com/") {
        return Some(
            "it is a pointer of Git LFS in place of the file: `git lfs pull` in its folder fetches that",
        );
    }
    let begin = bytes.trim_ascii_start();
    let begin = begin[..begin.len().min(14)].to_ascii_lowercase();
    (begin.starts_with(b"<!doctype html") || begin.starts_with(b"<html"))
        .then_some("it is an HTML page, which a server has sent in place of the file")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_is_instead_is_said() {
        for (bytes, part) in [
            (&b""[..], "empty"),
            (
                b"version https://git-lfs.github.com/spec/v1\noid sha256:0",
                "git lfs pull",
            ),
            (b"\n <!DOCTYPE html><html>", "HTML"),
            (b"<HTML lang=en>", "HTML"),
        ] {
            let said = instead(bytes).expect(part);
            assert!(said.contains(part), "{said}");
        }
        for bytes in [
            &b"{}"[..],
            b"GGUF\x03",
            b"<",
            b"version 1",
            b"{{ '<html>' }}",
        ] {
            assert_eq!(instead(bytes), None);
        }
    }
}
