//! Pages whose sections commands print.

use std::fs;

use super::{program, refused, says, succeeds};

const LAWS: &str =
    "verification --vocab 64 --repeats 1 --blocks 1 --columns target,verification,proposal,ratio";

fn page(command: &str) -> String {
    format!(
        "# Distributions\n\nBy hand.\n\n<!-- outrider-bench {command}; takes 1 s -->\nold\n<!-- end -->\n\n\
         <!-- outrider-bench replay no-such.rec; needs file no-such.rec -->\nkept\n<!-- end -->\n"
    )
}

#[test]
fn a_page_holds_what_its_commands_print_and_keeps_the_rest() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("page.md");
    fs::write(&file, page(LAWS)).expect("written");
    let path = file.to_str().expect("UTF-8");
    let (listed, _) = succeeds(&mut program(&["results", "--file", path, "--list"]));
    assert_eq!(listed.lines().count(), 2, "{listed}");
    assert!(listed.contains("takes about 1 s"), "{listed}");
    assert_eq!(fs::read_to_string(&file).expect("a page"), page(LAWS));

    let (_, reported) = succeeds(&mut program(&["results", "--file", path]));
    says(&reported, "left as it is | no no-such.rec");
    let text = fs::read_to_string(&file).expect("a page");
    let (before, rest) = text
        .split_once("-->\n\n")
        .expect("a marker and what was printed");
    let (printed, after) = rest.split_once("\n<!-- end -->\n").expect("an end");
    let whole = page(LAWS);
    assert!(
        whole.starts_with(before) && whole.ends_with(after),
        "{text}"
    );
    assert!(!printed.contains("old") && after.contains("kept"), "{text}");
    let said = printed.replace('\n', " ");
    assert!(said.contains(LAWS) && said.contains("version"), "{printed}");
    assert!(printed.contains("\n| token-v3"), "{printed}");
}

#[test]
fn a_page_with_a_wrong_command_or_one_that_fails_stays_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("page.md");
    for (command, words) in [
        (
            "verification --vcoab 64",
            "line 5: verification --vcoab 64: unexpected argument '--vcoab'",
        ),
        ("verification --vocab 3", "verification --vocab 3 failed"),
    ] {
        fs::write(&file, page(command)).expect("written");
        let said = refused(&["results", "--file", file.to_str().expect("UTF-8")]);
        assert!(said.contains(words), "{said}");
        assert_eq!(fs::read_to_string(&file).expect("a page"), page(command));
    }
    assert!(refused(&["results", "--file", "no-such.md"]).contains("no-such.md"));
    let path = file.to_str().expect("UTF-8");
    fs::write(&file, page(LAWS)).expect("written");
    assert!(refused(&["results", "--file", path, "--only", "kernels"]).contains("--only"));
}
