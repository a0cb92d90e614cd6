//! Whether a GPU computes what the CPU does.

use model::ComputeDevice;

use super::report::Findings;

/// Compares the device `requested` with the CPU, if one is, and returns what is found.
pub(super) fn findings(requested: Option<ComputeDevice>) -> Findings {
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
