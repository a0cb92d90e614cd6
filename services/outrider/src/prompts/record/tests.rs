//! What is read of each form.

use serde_json::json;

use super::*;

fn read(value: &Value) -> Option<Example> {
    let read = FieldNames::default().example(value);
    read.expect("an example")
}

fn refused(value: &Value) -> String {
    let read = FieldNames::default().example(value);
    read.expect_err("refused")
}

/// Checks the form, the id, the kind, the prompt and the references of an object.
#[track_caller]
fn holds(value: &Value, form: Form, [id, kind, text]: [&str; 3], references: &[&str]) {
    let example = read(value).expect("an example");
    assert_eq!(example.form, form);
    assert_eq!(example.id.as_deref().unwrap_or_default(), id);
    assert_eq!((&example.kind[..], &example.text[..]), (kind, text));
    assert_eq!(example.references, references);
}

#[test]
fn our_own_form_needs_a_prompt_alone() {
    holds(&json!({"prompt": "a"}), Form::Own, ["", "", "a"], &[]);
    let whole = json!({"id": 7, "kind": "story", "prompt": "a", "answer": "b", "more": [1]});
    holds(&whole, Form::Own, ["7", "story", "a"], &["b"]);
    let several = json!({"prompt": "a", "answer": ["b", 3], "kind": null});
    holds(&several, Form::Own, ["", "", "a"], &["b", "3"]);
}

#[test]
fn a_question_of_gsm8k_has_its_whole_answer_as_the_reference() {
    let sum = json!({"question": "2 + 2?", "answer": "It is <<2+2=4>>4.\n#### 4"});
    let answer = "It is <<2+2=4>>4.\n#### 4";
    holds(&sum, Form::Gsm8k, ["", "gsm8k", "2 + 2?"], &[answer]);
    let other = json!({"question": "Capital of Italy?", "answer": ["Rome", "Roma"]});
    holds(
        &other,
        Form::Own,
        ["", "", "Capital of Italy?"],
        &["Rome", "Roma"],
    );
}

#[test]
fn a_question_of_spec_bench_is_its_first_turn() {
    let two = json!({"question_id": 81, "category": "writing", "turns": ["Write.", "Again."], "reference": ["Done.", ""]});
    holds(
        &two,
        Form::SpecBench,
        ["81", "writing", "Write."],
        &["Done."],
    );
    // As its questions with retrieved passages have them.
    let several = json!({"question_id": 411, "category": "rag", "turns": ["Who?"], "reference": [["Ann", "Anne"]]});
    let said = ["411", "rag", "Who?"];
    holds(&several, Form::SpecBench, said, &["Ann", "Anne"]);
    let none = json!({"question_id": 5, "category": "qa", "turns": ["Who?"]});
    holds(&none, Form::SpecBench, ["5", "qa", "Who?"], &[]);
    assert_eq!(refused(&json!({"turns": []})), "'turns' is empty");
}

#[test]
fn a_task_of_humaneval_has_its_solution_as_the_reference() {
    let task = json!({
        "task_id": "HumanEval/9", "prompt": "def one():\n", "entry_point": "one",
        "canonical_solution": "    return 1\n", "test": "def check(one):\n    assert one() == 1\n",
    });
    let said = ["HumanEval/9", "humaneval", "def one():\n"];
    holds(&task, Form::HumanEval, said, &["    return 1\n"]);
}

#[test]
fn a_conversation_is_its_first_question_and_the_answer_to_it() {
    let turn = |from: &str, value: &str| json!({"from": from, "value": value});
    let said = ["c1", "sharegpt", "Hello?"];
    let turns = [
        turn("gpt", "I wait."),
        turn("human", "Hello?"),
        turn("gpt", "Yes."),
        turn("human", "So?"),
    ];
    let whole = json!({"id": "c1", "conversations": turns});
    holds(&whole, Form::ShareGpt, said, &["Yes."]);
    let told = json!({"id": "c1", "conversations": [turn("system", "Be short."), turn("human", "Hello?")]});
    let said = ["c1", "sharegpt", "Be short.\n\nHello?"];
    holds(&told, Form::ShareGpt, said, &[]);
    assert_eq!(
        read(&json!({"conversations": [turn("gpt", "Alone.")]})),
        None
    );
    let messages = json!({"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]});
    holds(&messages, Form::Messages, ["", "messages", "Hi"], &["Ho"]);
}

#[test]
fn a_line_of_a_batch_is_its_messages_or_its_prompt() {
    let parts = json!([{"type": "text", "text": "Hi "}, {"type": "text", "text": "there"}]);
    let chat = json!({"custom_id": "r1", "method": "POST", "url": "/v1/chat/completions",
        "body": {"model": "m", "messages": [{"role": "user", "content": parts}], "max_tokens": 5}});
    holds(&chat, Form::Batch, ["r1", "batch", "Hi there"], &[]);
    let text = json!({"custom_id": "r2", "body": {"prompt": "Once"}});
    holds(&text, Form::Batch, ["r2", "batch", "Once"], &[]);
    let said = refused(&json!({"custom_id": "r3", "body": {"input": "x"}}));
    assert_eq!(
        said,
        "the fields of 'body' are 'input', expected messages or prompt"
    );
    let image = json!([{"type": "image_url", "image_url": {"url": "x"}}]);
    let said = refused(&json!({"body": {"messages": [{"role": "user", "content": image}]}}));
    assert_eq!(said, "'content' has a part without a text");
}

#[test]
fn an_unknown_form_is_refused_with_its_fields_and_the_known_ones() {
    let said = refused(&json!({"instruction": "Do.", "output": "Done."}));
    for part in [
        "'instruction', 'output'",
        "question, answer (GSM8K)",
        "--prompt-field",
    ] {
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(
        refused(&json!({"prompt": 5})),
        "'prompt' is a number, expected a text"
    );
    assert_eq!(
        refused(&json!(["a"])),
        "a list, expected an object with a prompt"
    );
    let said = refused(&json!({"prompt": "a", "answer": {"text": "b"}}));
    assert_eq!(said, "'answer' holds an object, expected a text");
}

#[test]
fn named_fields_are_read_whatever_the_form() {
    let names = FieldNames {
        prompt: Some("instruction".to_owned()),
        reference: Some("output".to_owned()),
    };
    let value = json!({"instruction": "Do.", "output": "Done.", "prompt": "no", "kind": "k"});
    let example = names.example(&value).expect("read").expect("an example");
    assert_eq!((&example.text[..], &example.kind[..]), ("Do.", "k"));
    assert_eq!(
        (example.references, example.form),
        (vec!["Done.".to_owned()], Form::Named)
    );
    let said = names
        .example(&json!({"instruction": "Do."}))
        .expect_err("refused");
    assert_eq!(said, "there is no field 'output' (--reference-field)");
    let said = names
        .example(&json!({"output": "Done."}))
        .expect_err("refused");
    assert_eq!(said, "there is no field 'instruction'");
    let reference = FieldNames {
        reference: Some("gold".to_owned()),
        ..FieldNames::default()
    };
    let value = json!({"prompt": "a", "answer": "b", "gold": null});
    let example = reference
        .example(&value)
        .expect("read")
        .expect("an example");
    assert_eq!(example.references, Vec::<String>::new());
}
