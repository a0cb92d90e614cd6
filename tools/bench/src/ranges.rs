//! Ranges that flags of several commands have in common.

use anyhow::ensure;

/// Checks numbers of things, each by the name of its flag.
///
/// # Errors
/// Names the flag whose number is 0.
pub(crate) fn at_least_one<const FLAGS: usize>(
    counts: [(&str, usize); FLAGS],
) -> anyhow::Result<()> {
    for (flag, count) in counts {
        ensure!(
            count > 0,
            "--{flag}: 0 is out of range, expected at least 1"
        );
    }
    Ok(())
}

/// Checks `--temperatures`.
///
/// # Errors
/// Names one that is out of range.
pub(crate) fn temperatures(temperatures: &[f32]) -> anyhow::Result<()> {
    for temperature in temperatures {
        ensure!(
            (0.0..=100.0).contains(temperature),
            "--temperatures: {temperature} is out of range, expected 0 to 100"
        );
    }
    Ok(())
}

/// Checks `--acceptance`, for which the synthetic pair is made.
///
/// # Errors
/// If it is no share of the draft tokens, or all or none of them.
pub(crate) fn acceptance(acceptance: f64) -> anyhow::Result<()> {
    ensure!(
        acceptance > 0.0 && acceptance < 1.0,
        "--acceptance: {acceptance} is out of range, expected a share between 0 and 1"
    );
    Ok(())
}
