//! Methods compared, and what is measured beside them.

use serde_json::Value;

use super::{each_refused, number, of_table, program, refused, rows, says, succeeds, words};

#[test]
fn a_benchmark_prints_ratios_for_every_kind() {
    // The default need not draft at all in so few tokens.
    let line = "compare --methods coupled:draft-len=4 --per-kind 1 --max-tokens 16 --json --temperatures 1";
    let rows = rows(&words(line));
    let rounds = of_table(&rows, "rounds");
    assert_eq!(rounds.len(), 1);
    assert!(rounds[0]["verify_forward_ms"].as_f64() > Some(0.0));
    let rows = [of_table(&rows, "by-kind"), of_table(&rows, "all")].concat();
    assert_eq!(rows.len(), 6);
    assert!(
        rows.iter()
            .all(|row| row["ratio"].as_f64().expect("a number") > 0.0)
    );
}

#[test]
fn a_benchmark_names_the_method_it_cannot_read() {
    each_refused(
        &["compare", "--methods"],
        &[
            "coupled,lossy:alhpa=0.5 | --methods | lossy:alhpa=0.5",
            // What is out of range the coordinator says, before anything is measured.
            "lossy:alpha=2 | alpha | below 1",
        ],
    );
}

#[test]
fn methods_with_parameters_are_compared_in_one_run() {
    let line = "compare --methods spec-cascade:rule=chow:alpha=0/1,draft-only --per-kind 1 --max-tokens 16 \
                --temperatures 1 --json";
    let rows = of_table(&rows(&words(line)), "all");
    let deferral: Vec<_> = rows
        .iter()
        .map(|row| row["deferral_rate"].as_f64())
        .collect();
    // At one end every position is the target's, at the other none, and then all drafts stand.
    assert_eq!(deferral, [Some(1.0), Some(0.0), None]);
    assert_eq!(rows[1]["draft_acceptance_rate"], 1.0);
    assert_eq!(rows[2]["target_calls_per_token"], 0.0);
}

#[test]
fn acceptance_alone_is_timed_over_a_small_vocabulary() {
    let rows = rows(&words(
        "verification --vocab 64 --repeats 1 --blocks 1 --json",
    ));
    for (table, count) in [("verification", 100), ("cuts", 5)] {
        let of_table = rows.iter().filter(|row| row["table"] == table);
        assert_eq!(of_table.count(), count, "{table}");
    }
    each_refused(&["verification"], &["--vocab 3 | --vocab: 3"]);
}

#[test]
fn parts_of_a_round_are_timed_on_both_models() {
    let line = "parts --contexts 8 --repeats 1 --hidden 64 --layers 1 --json";
    let rows = rows(&words(line));
    // Two trees and four blocks of positions on a target, five heads on a draft model, and Max-Gram and each
    // translation in two contexts.
    let counts = [
        ("embedded", 6),
        ("random, 64 x 1", 11),
        ("embedded draft", 5),
        ("few tokens often", 2),
        ("a passage repeated", 2),
        ("vocabularies of 4096 and 128256", 2),
        ("vocabularies of 4096 and 152064", 2),
    ];
    for (on, count) in counts {
        assert_eq!(rows.iter().filter(|row| row["on"] == on).count(), count);
    }
    assert_eq!(rows.len(), 30);
    each_refused(&["parts"], &["--contexts 510 | --contexts: 510"]);
}

#[test]
fn a_sweep_goes_from_the_draft_model_to_the_target_and_draws_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let plot = folder.path().join("plot.svg");
    let line = "sweep --prompts 20 --methods target-only,draft-only,spec-cascade:rule=chow:alpha=0/1 --json --svg";
    let (stdout, stderr) = succeeds(program(&words(line)).arg(&plot));
    let quality: Vec<f64> = stdout
        .lines()
        .skip(1)
        .map(|line| serde_json::from_str::<Value>(line).expect("a JSON line"))
        .map(|point| point["quality"].as_f64().expect("a number"))
        .collect();
    // At its ends the cascade is each of the two models.
    assert_eq!(
        (quality[2], quality[3]),
        (quality[0], quality[1]),
        "{stderr}"
    );
    assert!(quality[0] > 0.9, "{quality:?}");
    says(&stderr, "4/4 spec-cascade:rule=chow:alpha=1");
    let drawn = std::fs::read_to_string(plot).expect("drawn");
    assert!(drawn.contains("draft-only") && drawn.contains("spec-cascade:rule=chow"));
}

#[test]
fn a_sweep_measures_the_tasks_of_others_by_several_metrics_and_a_program() {
    let folder = tempfile::tempdir().expect("a folder");
    let task = folder.path().join("sums.jsonl");
    let lines = "{\"question\": \"What is 2 + 3?\", \"answer\": \"2 + 3 = 5\\n#### 5\"}\n\
                 {\"turns\": [\"Where is Rome?\"], \"category\": \"qa\"}\n\
                 {\"task_id\": \"HumanEval/0\", \"prompt\": \"def one():\\n\", \"canonical_solution\": \"    return 1\\n\"}\n";
    std::fs::write(&task, lines).expect("written");
    let task = task.to_str().expect("a path");
    let sweep = [
        "sweep",
        "--task",
        task,
        "--methods",
        "target-only,draft-only",
        "--max-tokens",
        "8",
        "--json",
    ];
    let rows_of = |flags: &[&str]| rows(&[&sweep, flags].concat());
    let metrics = "rouge-l,last-number,likelihood,reference-likelihood";
    let scorer = "sed 's/.*/{\"score\": 0.5}/'";
    let points = rows_of(&["--metric", metrics, "--scorer", scorer]);
    let [target, draft] = &points[..] else {
        panic!("two points: {points:?}");
    };
    for point in [target, draft] {
        // The question of Spec-Bench has no answer.
        assert_eq!(point["outputs"], 2);
        assert_eq!(
            point["metrics"],
            format!("{}, score", metrics.replace(',', ", "))
        );
        assert_eq!(point["quality_score"], 0.5);
        assert!((0.0..=1.0).contains(&number(point, "quality")));
        assert!(number(point, "quality_likelihood") < 0.0);
    }
    let likelihood = |point| number(point, "quality_reference_likelihood");
    assert_eq!(likelihood(target), likelihood(draft));
    // Greedy, the target's own output is likelier than another.
    assert!(number(target, "quality_likelihood") > number(draft, "quality_likelihood"));
    // Without a word about it GSM8K is measured by the last number.
    assert_eq!(rows_of(&["--prompts", "1"])[0]["metrics"], "last-number");
    let all = &[
        "sweep",
        "--methods",
        "target-only",
        "--max-tokens",
        "8",
        "--task",
        task,
    ][..];
    each_refused(
        all,
        &[
            "--metric guess | --metric | rouge-l",
            "--scorer no/such/program | --scorer | no/such/program",
            "--prompt-field text | line 1 | no field 'text'",
        ],
    );
}

#[test]
fn long_prompts_lose_their_beginning_where_that_is_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let prompts = folder.path().join("long.txt");
    let long = "Once upon a time there was a cat. ".repeat(200);
    std::fs::write(&prompts, format!("{long}\nThe end.\n")).expect("written");
    let prompts = prompts.to_str().expect("a path");
    let compare = "compare --methods coupled --temperatures 0 --max-tokens 4 --json --prompts";
    let compare = [&words(compare), &[prompts][..]].concat();
    says(&refused(&compare), "maximum context length");
    for flags in [
        "--max-input 24",
        "--max-input 64 --chat --stop . --top-p 0.9",
    ] {
        let rows = rows(&[&compare, &words(flags)[..]].concat());
        assert_eq!(of_table(&rows, "all")[0]["prompts"], 2, "{flags}");
    }
    says(
        &refused(&[&compare, &words("--max-input 1")[..]].concat()),
        "--max-input",
    );
}
