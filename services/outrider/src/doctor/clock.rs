//! Whether the clock is right: beside those of others that answered, and beside this program's own file.

use std::time::{Duration, SystemTime};

use super::report::Findings;

/// How many seconds two clocks may differ: answers tell whole seconds, and take a moment to come.
const TOLERANCE: i64 = 5;

const SET: &str = "set the clocks by NTP: certificates and traces depend on them";

/// Returns what is found of the clock; `skews` says how many seconds the clock of whoever is at a URL is ahead of this
/// one.
pub(super) fn findings(skews: &[(String, i64)]) -> Findings {
    let now = SystemTime::now();
    let program = std::env::current_exe().and_then(|path| path.metadata()?.modified());
    let mut findings = Findings::of("clock");
    judge(&mut findings, skews, now, program.ok());
    findings
}

fn judge(
    findings: &mut Findings,
    skews: &[(String, i64)],
    now: SystemTime,
    program: Option<SystemTime>,
) {
    let behind = program.and_then(|made| made.duration_since(now).ok());
    if let Some(behind) = behind.filter(|behind| *behind > Duration::from_secs(TOLERANCE as u64)) {
        let hours = behind.as_secs_f64() / 3600.0;
        findings.error(
            format!("it is {hours:.1} hours before this program was written"),
            SET,
        );
    }
    for (url, ahead) in skews.iter().filter(|(_, ahead)| ahead.abs() > TOLERANCE) {
        let direction = if *ahead > 0 { "ahead of" } else { "behind" };
        findings.warning(
            format!("that of {url} is {} s {direction} this one", ahead.abs()),
            SET,
        );
    }
    if findings.is_empty() {
        findings.ok(match skews.len() {
            0 => "it is after this program was written; nobody answered to compare it with"
                .to_owned(),
            others => format!("it agrees within {TOLERANCE} s with all that answered ({others})"),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::FindingLevel;
    use super::*;

    #[test]
    fn clocks_that_differ_are_told() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let levels = |skew: i64, program: u64| {
            let program = SystemTime::UNIX_EPOCH + Duration::from_secs(program);
            let mut findings = Findings::of("clock");
            judge(
                &mut findings,
                &[("http://v:1".to_owned(), skew)],
                now,
                Some(program),
            );
            let levels = findings.found.iter().map(|found| found.level);
            levels.collect::<Vec<_>>()
        };
        assert_eq!(levels(5, 1_000_000), [FindingLevel::Ok]);
        assert_eq!(levels(-6, 1_000_000), [FindingLevel::Warning]);
        assert_eq!(
            levels(60, 1_000_006),
            [FindingLevel::Error, FindingLevel::Warning]
        );
    }
}
