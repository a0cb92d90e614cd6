//! `outrider-bench results`: the commands that a page names are run, and what they print stands in it.

mod needs;
mod page;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anstream::{eprintln, println};
use anyhow::{Context, bail, ensure};
use clap::Args;

use page::{ResultsPage, Section};

/// Arguments of `outrider-bench results`.
#[derive(Debug, Args)]
pub(crate) struct ResultsArgs {
    /// The pages.
    #[arg(
        long,
        value_name = "FILES",
        value_delimiter = ',',
        default_value = "docs/results.md"
    )]
    file: Vec<PathBuf>,
    /// Runs the sections whose command begins so, and no others: `kernels`, `sweep --temperature 1`.
    #[arg(long, value_name = "SECTION")]
    only: Option<String>,
    /// Lists the sections, how long each takes and what it needs, and runs nothing.
    #[arg(long)]
    list: bool,
}

/// Whether the line of a command is that of a measurement, or what is wrong with it.
type Check = fn(&[&str]) -> Result<bool, String>;

/// Runs or lists what the pages name. Everything in all pages is looked at before anything runs.
///
/// # Errors
/// Names the page and the line that is wrong, or the command that failed; sections before it are written.
pub(crate) fn run(args: &ResultsArgs, check: Check) -> anyhow::Result<()> {
    let is_asked = |section: &Section| {
        let only = args.only.as_deref();
        only.is_none_or(|only| section.command.starts_with(only))
    };
    let mut pages = Vec::new();
    for file in &args.file {
        let page = open(file, check)?;
        pages.push((file, page));
    }
    let mut sections = pages.iter().flat_map(|(_, page)| &page.sections);
    ensure!(
        sections.any(is_asked),
        "--only: no section's command begins so, see --list"
    );
    for (file, page) in pages {
        for (index, section) in page.sections.iter().enumerate() {
            if !is_asked(section) {
                continue;
            }
            if args.list {
                println!("{}, {section}", file.display());
            } else if let Some(missing) = section.missing() {
                eprintln!("left as it is: {section}: {missing}");
            } else {
                eprintln!("{section}");
                let printed = measured(section)?;
                replace(file, (index, section), &printed)?;
            }
        }
    }
    Ok(())
}

/// Reads a page whose commands all can be run.
fn open(file: &Path, check: Check) -> anyhow::Result<ResultsPage> {
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("--file: {} cannot be read", file.display()))?;
    let page = ResultsPage::parse(&text).with_context(|| file.display().to_string())?;
    for section in &page.sections {
        let words: Vec<&str> = ["outrider-bench"]
            .into_iter()
            .chain(section.words())
            .collect();
        let problem = match check(&words) {
            Ok(true) => continue,
            Ok(false) => "prints no report".to_owned(),
            Err(problem) => problem,
        };
        let (file, line) = (file.display(), section.line);
        bail!("{file}, line {line}: {}: {problem}", section.command);
    }
    Ok(page)
}

/// What the section's command prints, in a process of its own.
fn measured(section: &Section) -> anyhow::Result<String> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(section.words()).stderr(Stdio::inherit());
    let output = command.output()?;
    let failed = || format!("{} failed, the page is as it was", section.command);
    ensure!(output.status.success(), failed());
    String::from_utf8(output.stdout).with_context(failed)
}

/// Puts what was printed into the page as it is now: others may have changed it while the command ran.
fn replace(file: &Path, section: (usize, &Section), printed: &str) -> anyhow::Result<()> {
    let reported = || file.display().to_string();
    let text = std::fs::read_to_string(file).with_context(reported)?;
    let page = ResultsPage::parse(&text).with_context(reported)?;
    let (index, Section { command, .. }) = section;
    let now = page.sections.get(index);
    let now = now.filter(|now| now.command == *command);
    let now = now.with_context(|| format!("{}: {command} is there no more", reported()))?;
    std::fs::write(file, page.with(now, printed)).with_context(reported)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::is_measurement;

    #[test]
    fn every_command_of_the_page_can_be_run() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results.md");
        let page = open(Path::new(file), is_measurement).expect("sections that can be run");
        assert!(page.sections.len() >= 10, "{page:?}");
        for section in &page.sections {
            assert!(section.takes.is_some(), "line {}", section.line);
        }
    }

    #[test]
    fn what_cannot_be_run_is_named_with_its_line() {
        for (command, words) in [
            (
                "verification --repaets 3",
                "line 3: verification --repaets 3: unexpected argument '--repaets'",
            ),
            ("nonsense", "line 3: nonsense: unrecognized subcommand"),
            ("bigram build --text a --out b", "prints no report"),
            ("results --list", "prints no report"),
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            let file = folder.path().join("page.md");
            let text = format!("# A page\n\n<!-- outrider-bench {command} -->\n<!-- end -->\n");
            std::fs::write(&file, text).expect("written");
            let error = open(&file, is_measurement)
                .expect_err("refused")
                .to_string();
            assert!(
                error.contains("page.md") && error.contains(words),
                "{error}"
            );
        }
    }
}
