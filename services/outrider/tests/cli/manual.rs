//! Completions and manual pages.

use super::{outrider, refused, says, succeeds};

fn stdout(args: &[&str]) -> String {
    succeeds(&mut outrider(args)).0
}

#[test]
fn every_shell_has_completions_of_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = stdout(&["completions", shell]);
        says(&script, "quantize | coordinator | draft-len");
    }
    assert!(refused(&["completions", "tcsh"]).contains("elvish"));
}

/// A shell that is installed takes its script, and completes with it.
#[cfg(unix)]
#[test]
fn bash_completes_commands_and_flags() {
    bash_completes(
        r#"
        COMP_WORDS=(outrider serve v) COMP_CWORD=2 COMP_LINE='outrider serve v' COMP_POINT=16
        _outrider outrider v serve
        echo "${COMPREPLY[@]}"
        COMP_WORDS=(outrider generate --draft-l) COMP_CWORD=2
        _outrider outrider --draft-l generate
        echo "${COMPREPLY[@]}"
        "#,
        "verifier\n--draft-len\n",
    );
}

/// Has bash complete what `ask` says, by the functions of the script, and checks what it prints; where there is no bash,
/// nothing.
#[track_caller]
pub(crate) fn bash_completes(ask: &str, printed: &str) {
    let script = stdout(&["completions", "bash"]);
    let bash = std::process::Command::new("bash")
        .args(["--norc", "-c", &format!("{script}\n{ask}")])
        .output();
    let Ok(bash) = bash else {
        eprintln!("no bash, nothing to try");
        return;
    };
    let stderr = String::from_utf8_lossy(&bash.stderr);
    assert!(bash.status.success(), "{stderr}");
    assert_eq!(String::from_utf8_lossy(&bash.stdout), printed);
}

#[test]
fn a_manual_page_tells_what_the_help_tells() {
    let page = stdout(&["man", "serve", "verifier"]);
    assert!(page.starts_with(".ie") || page.contains(".TH outrider-serve-verifier 1"));
    says(
        &page,
        "outrider-serve-verifier | \\-\\-listen | target model",
    );
    assert!(stdout(&["man"]).contains("outrider\\-quantize(1)"));
    let said = refused(&["man", "serve", "nobody"]);
    says(&said, "'nobody' | drafter");
}

#[test]
fn all_pages_are_written_one_a_command() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("man1");
    let written = outrider(&["man", "--out"]).arg(&out).status();
    assert!(written.expect("the binary runs").success());
    let pages = std::fs::read_dir(&out).expect("the folder is there");
    let name = |page: std::io::Result<std::fs::DirEntry>| page.expect("a page").file_name();
    let names: Vec<_> = pages
        .map(|page| name(page).into_string().expect("text"))
        .collect();
    for name in ["outrider", "outrider-serve-verifier", "outrider-man"] {
        let page = format!("{name}.1");
        assert!(names.contains(&page), "no {page} in {names:?}");
    }
    assert!(!names.iter().any(|name| name.contains("help")), "{names:?}");
    // What groff complains of are lines it takes for requests it does not know.
    for name in &names {
        let mut groff = std::process::Command::new("groff");
        groff.args(["-man", "-Tutf8", "-ww", "-Wbreak", "-rLL=90n"]);
        match groff.arg(out.join(name)).output() {
            Ok(rendered) => {
                let said = String::from_utf8_lossy(&rendered.stderr);
                assert!(said.is_empty(), "{name}: {said}");
            }
            Err(_) => eprintln!("no groff, nothing to try"),
        }
    }
    // A file stands where the folder would be.
    let taken = out.join("outrider.1");
    let said = refused(&["man", "--out", taken.to_str().expect("text")]);
    assert!(said.contains("outrider.1"), "{said}");
}
