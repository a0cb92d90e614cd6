//! Recording distributions of the built-in pair, and replaying methods on them.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use super::{each_refused, number, program, refused, rows, says, signal, succeeds, words};

/// A recording in a folder of its own.
struct Recorded {
    folder: TempDir,
    file: String,
}

impl Recorded {
    fn new(args: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("distributions.rec");
        let file = file.to_str().expect("a path in UTF-8").to_owned();
        let mut all = vec!["record", "--out", &file, "--per-kind", "1"];
        all.extend(args);
        let (_, reported) = succeeds(&mut program(&all));
        assert!(reported.contains("blocks"), "{reported}");
        Self { folder, file }
    }

    fn at(&self, name: &str) -> String {
        let path = self.folder.path().join(name);
        path.to_str().expect("a path in UTF-8").to_owned()
    }

    /// What the recording says of itself, and the rows.
    fn replay(&self, args: &[&str]) -> (Value, Vec<Value>) {
        let mut rows = rows(&[&["replay", &self.file, "--json"], args].concat());
        let recording = rows.remove(0);
        assert_eq!(recording["table"], "recording");
        (recording, rows)
    }
}

/// The generation's accepted lengths are draws from the distributions of length that replay computes, given
/// the same draft tokens: their mean differs by more than five standard errors once in two million
/// runs, and the run is seeded. The cut has no part in it, since a draft token's own probabilities
/// are kept.
#[test]
fn the_generation_behaved_as_its_recorded_distributions_say() {
    for sampling in [
        &["--temperature", "1"][..],
        &["--temperature", "0.7"],
        &["--temperature", "1.2", "--top-k", "40", "--top-p", "0.9"],
    ] {
        let recorded = Recorded::new(&[sampling, &["--max-tokens", "64", "--top", "64"]].concat());
        let (recording, rows) = recorded.replay(&["--method", "rejection"]);
        let measured = number(&recording, "measured_block_efficiency");
        let expected = number(&recording, "expected_block_efficiency");
        let error = number(&recording, "expected_block_efficiency_error");
        assert!((measured - expected).abs() < 5.0 * error, "{recording}");
        assert!(error > 0.0 && error < 0.2, "{recording}");
        let row = &rows[0];
        assert_eq!(number(row, "tv_from_target"), 0.0);
        assert_eq!(number(row, "block_efficiency"), expected);
        // Tested positions are what the weights of positions stand for. A test's own probability
        // lies around the acceptance with a deviation of at most a half; 200 of them, within three
        // standard errors.
        let tested = 1.0 - number(row, "rejection_rate");
        assert!((number(row, "acceptance") - tested).abs() < 0.1, "{row}");
    }
}

#[test]
fn at_temperature_0_there_is_nothing_left_to_chance() {
    let recorded = Recorded::new(&["--temperature", "0", "--max-tokens", "48"]);
    let (recording, rows) = recorded.replay(&[]);
    let measured = number(&recording, "measured_block_efficiency");
    assert_eq!(number(&recording, "expected_block_efficiency_error"), 0.0);
    assert_eq!(number(&recording["draft_mass_left_out"], "most"), 0.0);
    let exact: Vec<&Value> = rows.iter().filter(|row| row["method"] == "exact").collect();
    assert_eq!(exact.len(), 4);
    for row in exact {
        assert_eq!(number(row, "block_efficiency"), measured, "{row}");
        assert!((number(row, "acceptance") + number(row, "tv_draft_target") - 1.0).abs() < 1e-12);
    }
    // Lemma 8: at temperature 0 the two rules aim at the same tokens.
    let of = |args: &[&str]| recorded.replay(args).1.remove(0);
    let same = ["--verification", "token", "--alpha", "0.2"];
    let diff = of(&[&["--target", "diff"], &same[..]].concat());
    let opt = of(&[&["--target", "opt"], &same[..]].concat());
    assert_eq!(diff["tv_from_target"], opt["tv_from_target"]);
    assert!(number(&diff, "tv_from_target") > 0.0);
}

#[test]
fn without_a_method_every_target_stands_under_every_verification() {
    let recorded = Recorded::new(&["--max-tokens", "48"]);
    let (recording, rows) = recorded.replay(&[]);
    assert_eq!(rows.len(), 12 * 4);
    let left_out = &recording["draft_mass_left_out"];
    assert!(number(left_out, "most") > number(left_out, "mean"));
    assert!(number(left_out, "mean") > 0.0);
    let efficiency = |row: &Value| number(row, "block_efficiency");
    for rows in rows.chunks(4) {
        // Of every single block, coupling keeps no more than token verification.
        assert!(efficiency(&rows[0]) <= efficiency(&rows[1]), "{rows:?}");
        assert!(number(&rows[0], "acceptance") < number(&rows[1], "acceptance"));
        let is_exact = rows[0]["method"] == "exact";
        assert_eq!(number(&rows[0], "tv_from_target") == 0.0, is_exact);
        let defers = !matches!(rows[0]["method"].as_str(), Some("exact" | "lossy"));
        assert_eq!(rows[0]["deferral_rate"].is_number(), defers);
    }
    // Of the others the order holds on average only: over all targets, and plainly where much is
    // refused.
    let mean = |by: usize| rows.iter().skip(by).step_by(4).map(efficiency).sum::<f64>() / 12.0;
    let means = [0, 1, 2, 3].map(mean);
    assert!(means.is_sorted(), "coupled to block-greedy: {means:?}");
    assert!(
        rows[..4].is_sorted_by(|a, b| efficiency(a) < efficiency(b)),
        "{:?}",
        &rows[..4]
    );
    // By kind the blocks are shared out, and the rows of all prompts stay.
    let (_, by_kind) = recorded.replay(&["--by-kind"]);
    assert_eq!(by_kind.len(), 6 * rows.len());
    let blocks = |row: &Value| row["blocks"].as_u64().expect("a count");
    let kinds: u64 = by_kind[..5].iter().map(blocks).sum();
    assert_eq!((kinds, &by_kind[5]), (blocks(&rows[0]), &rows[0]));
    let (table, _) = succeeds(&mut program(&["replay", &recorded.file]));
    let lines = table.lines().filter(|line| line.starts_with('|'));
    assert_eq!(lines.count(), 3 + 2 + rows.len(), "{table}");
    assert!(
        table.replace('\n', " ").contains("left out of q"),
        "{table}"
    );
}

#[test]
fn lists_are_evaluated_in_every_combination_and_a_larger_alpha_defers_less() {
    let recorded = Recorded::new(&["--max-tokens", "48", "--top", "0"]);
    let (recording, rows) = recorded.replay(&[
        "--method",
        "spec-cascade",
        "--rule",
        "chow,diff,opt,token-v2,token-v3",
        "--alpha",
        "0.05,0.2,0.4,0.6,0.8",
    ]);
    assert!(number(&recording["target_mass_left_out"], "most") < 1e-5);
    assert_eq!(rows.len(), 25);
    for rows in rows.chunks(5) {
        let rates: Vec<f64> = rows
            .iter()
            .map(|row| number(row, "deferral_rate"))
            .collect();
        assert!(rates.is_sorted_by(|a, b| a >= b), "{rates:?}");
        assert!(rates[0] > rates[4], "{rates:?}");
    }
    // A shorter draft length accepts less of every block.
    let efficiency = |args: &[&str]| number(&recorded.replay(args).1[0], "block_efficiency");
    let lengths =
        ["1", "2", "3", "4"].map(|len| efficiency(&["--method", "block", "--draft-len", len]));
    assert!(lengths.is_sorted() && lengths[0] < 2.0, "{lengths:?}");
    // Cascades without blocks.
    let sweep = ["--rule", "chow,chow-log", "--alpha", "0.3,0.7"];
    let cascade = |method| {
        recorded
            .replay(&[&["--method", method], &sweep[..]].concat())
            .1
    };
    let oracle = cascade("oracle-cascade");
    for (row, oracle) in cascade("token-cascade").iter().zip(&oracle) {
        assert_eq!(row["deferral_rate"], oracle["deferral_rate"]);
        assert_eq!(row["tv_from_target"], oracle["tv_from_target"]);
        assert_eq!(row["deferral_rate"], row["target_calls_per_token"]);
        assert!(row["block_efficiency"].is_null() && row["acceptance"].is_null());
    }
    assert_eq!(number(&oracle[0], "target_calls_per_token"), 1.0);
    assert!(number(&oracle[0], "deferral_rate") > number(&oracle[1], "deferral_rate"));
}

#[test]
fn what_cannot_be_replayed_says_why() {
    let recorded = Recorded::new(&["--max-tokens", "8"]);
    let file = recorded.file.as_str();
    each_refused(
        &["replay", file],
        &[
            "--method spec-cascade --alpha 2 | alpha: 2",
            "--method lossy --alpha 1 | 0 to below 1",
            "--method lossy --beta 0.1 | beta: 0.1",
            "--method lossy --rule chow | rule: ",
            "--method lossy --kl-budget 0.1 --alpha 0.2 | alpha: | with kl_budget",
            "--alpha 0.5 | --method",
            "--method bild | 'bild' cannot be evaluated",
            "--method sequence-cascade | cannot be evaluated",
            "--method draft-only | nothing to evaluate",
            "--method nonsense | expected one of coupled",
            "--draft-len 5 | recorded with 4 draft tokens",
        ],
    );

    let bytes = std::fs::read(file).expect("a recording");
    let broken = |name: &str, bytes: &[u8]| {
        let path = recorded.at(name);
        std::fs::write(&path, bytes).expect("written");
        let said = refused(&["replay", &path]);
        assert!(said.contains(name), "{said}");
        said
    };
    assert!(broken("other", b"{\"prompt\": \"a\"}\n").contains("not a recording"));
    assert!(broken("empty", b"").contains("not a recording"));
    let header = 2 + usize::from(bytes[1]);
    let short = broken("short", &bytes[..header + 9]);
    says(&short, "cut short | byte");
    assert!(broken("header", &bytes[..header]).contains("holds no blocks"));
    assert!(refused(&["replay", &recorded.at("none")]).contains("none"));
}

#[test]
fn what_cannot_be_recorded_is_refused_by_its_flag() {
    each_refused(
        &["record", "--out", "no/such"],
        &[
            "--drafting max-gram | --drafting: max-gram cannot be recorded, expected model",
            "--tree comb:2 | --tree: comb:2 cannot be recorded, expected chain",
        ],
    );
}

/// Whoever recorded was killed within a block: what is whole is used, and it is said.
#[test]
fn a_recording_cut_short_is_used_up_to_there() {
    let recorded = Recorded::new(&["--max-tokens", "8"]);
    let bytes = std::fs::read(&recorded.file).expect("a recording");
    let short = recorded.at("short.rec");
    std::fs::write(&short, &bytes[..bytes.len() - 1]).expect("written");
    let replay = |file: &str| {
        let line = words("replay --method rejection --json");
        succeeds(program(&line).arg(file))
    };
    let (whole, _) = replay(&recorded.file);
    let (part, reported) = replay(&short);
    says(&reported, "cut short | byte");
    assert_ne!(part, whole);
}

#[test]
fn a_recording_is_not_overwritten_and_a_refused_one_leaves_nothing() {
    let recorded = Recorded::new(&["--max-tokens", "8"]);
    let before = std::fs::read(&recorded.file).expect("a recording");
    let said = refused(&["record", "--out", &recorded.file, "--per-kind", "1"]);
    assert!(said.contains("distributions.rec"), "{said}");
    assert_eq!(std::fs::read(&recorded.file).expect("it is there"), before);
    let other = recorded.at("other.rec");
    let said = refused(&["record", "--out", &other, "--temperature", "-1"]);
    assert!(said.contains("temperature"), "{said}");
    assert!(!Path::new(&other).exists());
}

/// The same prompts and seeds give the same file, byte for byte.
#[test]
fn a_recording_repeats_itself() {
    let args = ["--max-tokens", "24", "--seed", "7"];
    let bytes = || std::fs::read(Recorded::new(&args).file).expect("a recording");
    assert_eq!(bytes(), bytes());
}

#[test]
fn interrupted_it_leaves_what_was_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("distributions.rec");
    let file = path.to_str().expect("UTF-8");
    let child = program(&["record", "--out", file, "--max-tokens", "200"])
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let size = || std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
    let began = std::time::Instant::now();
    while size() < 100_000 {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "nothing is written"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    signal(&child, "INT");
    let output = child.wait_with_output().expect("it ends");
    let reported = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.code() == Some(130) && reported.contains("interrupted"),
        "{reported}"
    );
    let (table, _) = succeeds(&mut program(&["replay", file, "--method", "block"]));
    // Of so many prompts.
    assert!(table.contains("| 100 |"), "{table}");
}
