//! Errors with what lies beneath them.

use std::error::Error;

/// `error` and its causes in one line, without those that are quoted already.
pub fn in_one_line(error: &(dyn Error + 'static)) -> String {
    let mut line = error.to_string();
    for cause in beneath(error) {
        let cause = cause.to_string();
        if !line.contains(&cause) {
            line = format!("{line}: {cause}");
        }
    }
    line
}

/// Returns what lies beneath `error`, the nearest first.
pub(crate) fn beneath<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(error.source(), |&cause| cause.source())
}
