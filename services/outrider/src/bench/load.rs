//! How busy the machine was while something was measured, and with what.

use std::time::Instant;

use serde::Serialize;
use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System};

/// The share of all processors that other processes may take before it is warned of.
const QUIET: f64 = 0.05;

/// The machine while something is measured.
pub(super) struct Watched {
    system: System,
    began: Instant,
    own_ms: Option<u64>,
}

/// What was used of the machine; nothing where the system does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Load {
    processors: usize,
    /// Processors that other processes took, on average.
    #[serde(rename = "used_by_others")]
    others: Option<f64>,
    /// Processes that ran or waited at the end, mean of the last minute.
    average: f64,
}

impl Watched {
    pub(super) fn begin() -> Self {
        let mut system = System::new();
        system.refresh_cpu_usage();
        let own_ms = own_ms(&mut system);
        Self {
            system,
            began: Instant::now(),
            own_ms,
        }
    }

    /// Returns what was used since the beginning.
    pub(super) fn end(mut self) -> Load {
        // What it tells is since the call before.
        self.system.refresh_cpu_usage();
        let processors = self.system.cpus().len();
        let all = f64::from(self.system.global_cpu_usage()) / 100.0 * processors as f64;
        let elapsed_ms = self.began.elapsed().as_secs_f64() * 1e3;
        let own = (own_ms(&mut self.system).zip(self.own_ms))
            .map(|(now, before)| now.saturating_sub(before) as f64 / elapsed_ms.max(1.0));
        Load {
            processors,
            others: own.map(|own| (all - own).max(0.0)),
            average: System::load_average().one,
        }
    }
}

/// Returns the time that this process has had a processor.
fn own_ms(system: &mut System) -> Option<u64> {
    let own = Pid::from_u32(std::process::id());
    let what = ProcessRefreshKind::nothing().with_cpu();
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[own]), false, what);
    Some(system.process(own)?.accumulated_cpu_time())
}

impl Load {
    /// Returns what is told to people; `is_here` says whether the services ran in this process.
    pub(super) fn lines(&self, is_here: bool) -> Vec<String> {
        let Self {
            processors,
            others,
            average,
        } = *self;
        let Some(others) = others else {
            return vec![format!("load average {average:.1}")];
        };
        let mut lines = vec![format!(
            "other processes took {others:.1} of {processors} processors meanwhile, load average {average:.1}"
        )];
        if is_here && others > QUIET * processors as f64 {
            lines.push(
                "warning: other processes took processors from what was measured; measure again when the machine is \
                 quiet"
                    .to_owned(),
            );
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_that_others_took_are_warned_of() {
        let load = |others| Load {
            processors: 4,
            others,
            average: 2.0,
        };
        let is_warned = |others, is_here| {
            let lines = load(others).lines(is_here);
            lines.iter().any(|line| line.starts_with("warning: "))
        };
        assert!(is_warned(Some(0.3), true));
        assert!(!is_warned(Some(0.1), true));
        // A coordinator elsewhere, or beside this process, is one of the others.
        assert!(!is_warned(Some(3.0), false));
        assert!(!is_warned(None, true));
    }
}
