//! The processors: instruction sets of the CPU, how many cores may be used, and whether a GPU computes what the CPU does.

use model::ComputeDevice;
use speculation::simd::Level;
use sysinfo::System;

use super::report::Findings;

/// Returns what the kernels run on. No result depends on it, only how long it takes.
pub(super) fn cpu() -> Findings {
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
        all if all > allowed => findings.info(format!(
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
fn machine_cores() -> usize {
    let mut system = System::new();
    system.refresh_cpu_usage();
    system.cpus().len()
}

/// Compares the device `requested` with the CPU, if one is, and returns what is found.
pub(super) fn gpu(requested: Option<ComputeDevice>) -> Findings {
    let mut findings = Findings::of("gpu");
    match requested {
        None if cfg!(feature = "cuda") => {
            findings.info("this build has GPU support; --device cuda compares a GPU with the CPU");
        }
        None => findings.info("this build has no GPU support, and models are computed on the CPU"),
        Some(ComputeDevice::Cpu) => {
            findings.info("the CPU is what a GPU is compared with: give --device cuda");
        }
        Some(place) => compare(&mut findings, place),
    }
    findings
}

#[cfg(feature = "cuda")]
fn compare(findings: &mut Findings, place: ComputeDevice) {
    let remedy = "see what nvidia-smi lists and docs/gpu.md; until then use device cpu";
    let outcomes = match model::device_check::self_check(place) {
        Ok(outcomes) => outcomes,
        Err(error) => return findings.error(error, remedy),
    };
    for outcome in outcomes {
        if outcome.is_near() {
            findings.ok(format!("{place}: {outcome}"));
        } else {
            findings.error(format!("{place}: {outcome}"), remedy);
        }
    }
}

#[cfg(not(feature = "cuda"))]
fn compare(findings: &mut Findings, place: ComputeDevice) {
    findings.error(
        format!("this build has no GPU support and cannot use {place}"),
        "build with `cargo build --release --features cuda` where the CUDA compiler is installed (docs/gpu.md)",
    );
}
