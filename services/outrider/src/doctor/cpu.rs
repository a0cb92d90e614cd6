//! The processor: instruction sets, and how many cores may be used.

use speculation::simd::Level;

use super::report::Findings;

/// Returns what the kernels run on. No result depends on it, only how long it takes.
pub(super) fn findings() -> Findings {
    let mut findings = Findings::of("cpu");
    match Level::detect() {
        #[cfg(target_arch = "x86_64")]
        Level::Avx512Vnni { .. } => findings.ok("AVX-512 with VNNI: the fastest kernels"),
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 { .. } => findings.info(format!(
            "AVX2 without {}: the same results, more slowly where prompts or many sequences are computed",
            lacking_of_avx512()
        )),
        Level::Baseline if cfg!(target_arch = "x86_64") => findings.warning(
            "neither AVX-512 with VNNI nor AVX2 with FMA and F16C: the same results, several times more slowly",
            "run on a newer CPU; in a virtual machine, pass the host's CPU on",
        ),
        Level::Baseline => findings.info("portable kernels: there are none for the vectors of this architecture"),
    }
    let allowed = std::thread::available_parallelism().map_or(1, usize::from);
    match machine_cores() {
        Some(all) if all > allowed => findings.info(format!(
            "{allowed} of {all} cores may be used, by affinity or the quota of the control group"
        )),
        _ => findings.ok(format!("{allowed} cores may be used")),
    }
    findings
}

/// Returns the instructions of the fastest kernels that the CPU does not have.
#[cfg(target_arch = "x86_64")]
fn lacking_of_avx512() -> String {
    let has = [
        ("AVX-512 F", is_x86_feature_detected!("avx512f")),
        ("AVX-512 BW", is_x86_feature_detected!("avx512bw")),
        ("AVX-512 VL", is_x86_feature_detected!("avx512vl")),
        ("AVX-512 DQ", is_x86_feature_detected!("avx512dq")),
        ("AVX-512 VNNI", is_x86_feature_detected!("avx512vnni")),
    ];
    let lacking = has.iter().filter(|(_, has)| !has).map(|(name, _)| *name);
    lacking.collect::<Vec<_>>().join(", ")
}

/// Cores of the machine, whoever may use them.
#[cfg(target_os = "linux")]
fn machine_cores() -> Option<usize> {
    let online = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let cores = online.lines().filter(|line| line.starts_with("processor"));
    Some(cores.count())
}

#[cfg(not(target_os = "linux"))]
fn machine_cores() -> Option<usize> {
    None
}
