//! Where and when something is measured.

use serde_json::{Value, json};
use speculation::simd::Level;

/// Of this program; a build that is slower for its checks says so.
pub(super) const VERSION: &str = if cfg!(debug_assertions) {
    concat!(env!("CARGO_PKG_VERSION"), " with debug assertions")
} else {
    env!("CARGO_PKG_VERSION")
};

/// The machine as it is when a command begins. What it does not tell is left out.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    /// UTC, year first.
    pub(super) date: String,
    cpu: Option<String>,
    cores: usize,
    instructions: &'static str,
    memory_gib: Option<f64>,
    /// Mean of the last minute.
    load: Option<f64>,
}

impl Machine {
    /// This one, now.
    pub(super) fn here() -> Self {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let mut date = jiff::Timestamp::now().to_string();
        date.truncate("2026-11-23".len());
        Self {
            date,
            cpu: field(&read("/proc/cpuinfo"), "model name"),
            cores: std::thread::available_parallelism().map_or(1, Into::into),
            instructions: instructions(),
            memory_gib: gib(&read("/proc/meminfo")),
            load: load(&read("/proc/loadavg")),
        }
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "cpu": self.cpu,
            "cores": self.cores,
            "instructions": self.instructions,
            "memory_gib": self.memory_gib,
            "load": self.load,
        })
    }

    /// In words.
    pub(super) fn words(&self) -> String {
        let cores = match self.cores {
            1 => "1 core".to_owned(),
            cores => format!("{cores} cores"),
        };
        let memory = self.memory_gib.map(|gib| format!("{gib:.1} GiB"));
        let load = self.load.map(|load| format!("load {load:.1}"));
        let known = [Some(cores), Some(self.instructions.to_owned())];
        let parts = [self.cpu.clone()].into_iter().chain(known);
        let parts: Vec<String> = parts.chain([memory, load]).flatten().collect();
        parts.join(", ")
    }
}

/// The instructions that kernels use here.
fn instructions() -> &'static str {
    match Level::detect() {
        #[cfg(target_arch = "x86_64")]
        Level::Avx512Vnni { .. } => "AVX-512 with VNNI",
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 { .. } => "AVX2",
        Level::Baseline => std::env::consts::ARCH,
    }
}

/// What stands behind the first `name` and its colon.
fn field(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn gib(meminfo: &str) -> Option<f64> {
    let total = field(meminfo, "MemTotal")?;
    let kib: f64 = total.strip_suffix(" kB")?.parse().ok()?;
    Some(kib / f64::from(1 << 20))
}

fn load(loadavg: &str) -> Option<f64> {
    loadavg.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_told_as_far_as_it_tells() {
        let cpuinfo = "processor\t: 0\nmodel name\t: Some CPU @ 2.50GHz\nmodel name\t: Another\n";
        let machine = Machine {
            date: "2026-11-23".to_owned(),
            cpu: field(cpuinfo, "model name"),
            cores: 2,
            instructions: "AVX2",
            memory_gib: gib("MemTotal:        8388608 kB\nMemFree: 1 kB\n"),
            load: load("1.26 0.90 0.80 1/300 4000\n"),
        };
        let words = "Some CPU @ 2.50GHz, 2 cores, AVX2, 8.0 GiB, load 1.3";
        assert_eq!(machine.words(), words);
        let silent = Machine {
            cpu: field("", "model name"),
            cores: 1,
            memory_gib: gib("MemTotal: much"),
            load: load(""),
            ..machine
        };
        assert_eq!(silent.words(), "1 core, AVX2");
        let here = Machine::here();
        assert!(here.cores > 0 && here.date.starts_with("20"), "{here:?}");
    }
}
