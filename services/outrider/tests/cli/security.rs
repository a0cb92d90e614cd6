//! Services and commands with certificates and tokens, as processes.

// The authority of the tests in `ops`, which makes more kinds of certificates than are needed here.
#[allow(dead_code)]
#[path = "../../../../shared/ops/tests/security/authority.rs"]
pub(crate) mod authority;
mod connecting;
mod deployment;

use authority::write;

use crate::{ANY, Server, fails, outrider, refused, says, words};

/// Exposed to other machines, on a free port.
const EVERYWHERE: &str = "0.0.0.0:0";

#[test]
fn what_other_machines_can_reach_is_not_served_in_clear_unless_asked_for() {
    for role in ["drafter", "verifier", "coordinator"] {
        let said = refused(&["serve", role, "--listen", EVERYWHERE]);
        says(&said, &format!("{role}.listen: {EVERYWHERE}"));
        says(&said, "tls.mode | insecure = true | --insecure");
    }
    for setting in ["drafter", "verifier", "coordinator"] {
        let variable = format!("OUTRIDER__{}__LISTEN", setting.to_uppercase());
        let mut serving = outrider(&["serve", "all"]);
        serving.env("OUTRIDER__COORDINATOR__LISTEN", ANY);
        let said = fails(serving.env(variable, EVERYWHERE));
        says(&said, &format!("{setting}.listen"));
    }
    let server = Server::start(&["verifier", "--insecure", "--listen", EVERYWHERE]);
    assert!(server.url.starts_with("http://0.0.0.0:"), "{}", server.url);
    // As a container is told.
    let folder = tempfile::tempdir().expect("a folder");
    let file = write(folder.path(), "outrider.toml", "insecure = true\n");
    let file = file.to_str().expect("UTF-8");
    Server::start(&["drafter", "--config", file, "--listen", EVERYWHERE]);
}

#[test]
fn certificates_and_tokens_that_cannot_be_used_are_named_before_anything_is_loaded() {
    for line in [
        "verifier TLS__MODE server | tls.cert_file is not set",
        "drafter AUTH__PEER_TOKEN_FILE no/such | auth.peer_token_file",
        "coordinator AUTH__CLIENT_TOKENS_FILE no/such | auth.client_tokens_file",
    ] {
        let (setting, parts) = line.split_once(" | ").expect("what must be said");
        let [role, variable, value] = words(setting)[..] else {
            panic!("{line}");
        };
        let mut serving = outrider(&["serve", role, "--listen", ANY]);
        serving.env(format!("OUTRIDER__{variable}"), value);
        says(&fails(&mut serving), parts);
    }
}
