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
    let check = |&each| temperature("temperatures", each);
    temperatures.iter().try_for_each(check)
}

/// Checks the temperature of a flag.
///
/// # Errors
/// Names the flag if it is out of range.
pub(crate) fn temperature(flag: &str, temperature: f32) -> anyhow::Result<()> {
    ensure!(
        (0.0..=100.0).contains(&temperature),
        "--{flag}: {temperature} is out of range, expected 0 to 100"
    );
    Ok(())
}

/// Checks `--clients`.
///
/// # Errors
/// Names a number that is out of range, or that there is none.
pub(crate) fn clients(numbers: &[usize]) -> anyhow::Result<()> {
    at_least_one([("clients", numbers.len())])?;
    for clients in numbers {
        ensure!(
            (1..=512).contains(clients),
            "--clients: {clients} is out of range, expected 1 to 512"
        );
    }
    Ok(())
}

/// Checks times in seconds, each by the name of its flag.
///
/// # Errors
/// Names the flag that is out of range.
pub(crate) fn seconds<const FLAGS: usize>(times: [(&str, f64); FLAGS]) -> anyhow::Result<()> {
    for (flag, seconds) in times {
        ensure!(
            (0.01..=600.0).contains(&seconds),
            "--{flag}: {seconds} is out of range, expected 0.01 to 600"
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
