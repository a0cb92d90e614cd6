//! A report as people and programs read it.

use serde_json::json;

use super::*;

fn report(args: ReportArgs) -> BenchReport {
    let mut report = BenchReport {
        title: "Some figures".to_owned(),
        ..BenchReport::new(args)
    };
    for (method, share, calls) in [("coupled", Some(0.314), 0.5), ("a|b", None, 12.25)] {
        let row = vec![
            text("method", method),
            percent("accepted", share, 0),
            number("calls", calls, 2)
                .called("calls/token")
                .missed(calls > 1.0),
            only_json("forwards", 7),
        ];
        report.row("methods", row).expect("nothing is printed");
    }
    report
}

/// The lines of tables.
fn lines(report: &BenchReport) -> Vec<String> {
    let text = report.text();
    let lines = text.lines().filter(|line| line.starts_with('|'));
    lines.map(str::to_owned).collect()
}

fn args(tables: &[&str], columns: &[&str]) -> ReportArgs {
    let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    ReportArgs {
        tables: owned(tables),
        columns: owned(columns),
        json: false,
    }
}

#[test]
fn people_read_a_table_with_a_head_that_says_where_and_when() {
    let mut report = report(ReportArgs::default());
    report.note("* above its goal");
    assert_eq!(
        lines(&report),
        [
            "| method  | accepted | calls/token |",
            "| ------- | -------: | ----------: |",
            "| coupled |      31% |        0.50 |",
            "| a\\|b    |        - |      12.25* |",
        ]
    );
    let text = report.text().replace('\n', " ");
    assert!(text.starts_with("Some figures: `outrider-bench"), "{text}");
    for part in [
        machine::VERSION,
        &report.machine.date,
        &report.machine.words(),
        " * above its goal ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(
        report
            .text()
            .lines()
            .all(|line| line.chars().count() <= 120)
    );
}

#[test]
fn programs_read_every_field_by_its_name() {
    let report = report(ReportArgs::default());
    let expected = json!({
        "table": "methods", "method": "coupled", "accepted": 0.314, "calls": 0.5, "forwards": 7,
    });
    assert_eq!(report.objects("methods")[0], expected);
    assert_eq!(report.objects("methods")[1]["accepted"], Value::Null);
    let head = report.head();
    let reported = &head["report"];
    assert_eq!(reported["title"], "Some figures");
    assert!(reported["machine"]["cores"].as_u64() > Some(0), "{head}");
}

#[test]
fn tables_and_columns_are_chosen_by_name() {
    let report = report(args(&["methods"], &["forwards", "method"]));
    let expected = ["| forwards | method  |", "| -------: | ------- |"];
    assert_eq!(lines(&report)[..2], expected);
    assert_eq!(report.unknown(), None);
    for (args, words) in [
        (
            args(&["method"], &[]),
            "--tables: there is no 'method', expected one of methods",
        ),
        (
            args(&[], &["call"]),
            "--columns: there is no 'call', expected one of accepted, calls",
        ),
    ] {
        let unknown = self::report(args).unknown().expect("unknown");
        assert!(unknown.starts_with(words), "{unknown}");
    }
}

#[test]
fn rows_are_gathered_under_what_stands_across() {
    let mut report = BenchReport::quiet();
    for (target, form, ratio) in [
        ("exact", "dense", 1.0),
        ("exact", "sparse", 2.0),
        ("lossy", "sparse", 3.0),
    ] {
        let row = vec![
            text("target", target),
            text("verification", "block").across(),
            text("form", form).across(),
            number("ratio", ratio, 1).cell(),
        ];
        report.row("verification", row).expect("nothing is printed");
    }
    let other = vec![text("a", 0.2_f32), text("b", 3)];
    report.row("other", other).expect("nothing is printed");
    assert_eq!(
        lines(&report),
        [
            "| target | block, dense | block, sparse |",
            "| ------ | -----------: | ------------: |",
            "| exact  |          1.0 |           2.0 |",
            "| lossy  |            - |           3.0 |",
            "|   a |   b |",
            "| --: | --: |",
            "| 0.2 |   3 |",
        ]
    );
    assert!(report.text().contains("\nTable `other`:\n"));
    // Programs get them one by one.
    assert_eq!(report.objects("verification").len(), 3);
}
