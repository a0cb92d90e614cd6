//! Configuring a drafter.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use super::{ANY, outrider, says};

#[test]
fn a_cascade_whose_order_is_wrong_is_warned_of() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("outrider.toml");
    let path = file.to_str().expect("UTF-8");
    let reported = |models: &str| {
        std::fs::write(&file, format!("[drafter.cascade]\nmodels = [{models}]")).expect("written");
        let mut child = outrider(&["serve", "drafter", "--config", path, "--listen", ANY])
            // Another test may have the port, of which this process would warn.
            .env("OUTRIDER__ADMIN__LISTEN", "off")
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let lines = lines.map_while(Result::ok);
        let reported: Vec<String> = lines
            .take_while(|line| !line.contains("serving address="))
            .collect();
        child.kill().expect("killed");
        child.wait().expect("ended");
        reported.join("\n")
    };
    let wrong = reported("{ path = \"embedded:small\" }, { path = \"embedded:target\" }");
    says(
        &wrong,
        "WARN | drafter.cascade.models[1] | default-target | default-small",
    );
    assert!(!wrong.contains("models[0]"), "{wrong}");
    let right = reported("{ path = \"embedded:small\" }");
    assert!(!right.contains("WARN"), "{right}");
}
