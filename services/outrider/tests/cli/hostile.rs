//! Runs the short form of `tests/hostile/run`: hostile clients beside an honest one, for seconds each.

use std::path::Path;
use std::process::Command;

/// Whether a Python is installed that can run it.
fn has_python() -> bool {
    let asked = "import sys; sys.exit(sys.version_info < (3, 9))";
    let told = Command::new("python3").args(["-c", asked]).status();
    told.is_ok_and(|status| status.success())
}

#[test]
fn an_honest_client_is_served_beside_hostile_ones() {
    if !has_python() {
        println!("skipped: no python3 of 3.9 or later");
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/hostile/run");
    let ran = Command::new("python3")
        .arg(script)
        .args(["--short", "--binary", env!("CARGO_BIN_EXE_outrider")])
        .output()
        .expect("python3 runs");
    let table = String::from_utf8_lossy(&ran.stdout);
    let problem = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{table}{problem}");
}
