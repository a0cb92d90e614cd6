//! One JSON object of a file of prompts, recognised by its fields.

use serde_json::Value;

use super::conversation::first_turn;
use super::example::{Example, Form};
use super::fields::{Fields, described};

/// Forms of objects, as a refusal names them.
const KNOWN: &str = "prompt [kind, answer]; question, answer (GSM8K); turns [category, reference] (Spec-Bench); task_id, \
    prompt, canonical_solution (HumanEval); conversations (ShareGPT); messages; body (a batch of the OpenAI API)";

/// The names of fields that are read whatever the form, for objects of other names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldNames {
    /// The field that holds the prompt.
    pub prompt: Option<String>,
    /// The field that holds the known answer, or a list of them.
    pub reference: Option<String>,
}

impl FieldNames {
    /// Returns the example that `value` holds; none of a conversation in which no user speaks.
    ///
    /// # Errors
    /// Says what is wrong with its fields, or which forms are known.
    pub(super) fn example(&self, value: &Value) -> Result<Option<Example>, String> {
        let Value::Object(object) = value else {
            let found = described(value);
            return Err(format!("{found}, expected an object with a prompt"));
        };
        let fields = Fields(object);
        let read = match &self.prompt {
            Some(name) => own(fields, Form::Named, name).map(Some),
            None => recognised(fields),
        };
        let mut read = read?;
        if let (Some(name), Some(example)) = (&self.reference, &mut read) {
            if !object.contains_key(name) {
                return Err(format!("there is no field '{name}' (--reference-field)"));
            }
            example.references = fields.texts(name)?;
        }
        Ok(read)
    }
}

fn recognised(fields: Fields<'_>) -> Result<Option<Example>, String> {
    if fields.has("conversations") {
        let turns = fields.objects("conversations")?;
        let id = fields.label("id")?;
        return conversation(Form::ShareGpt, id, &turns, ("from", "value"));
    }
    if let Some(body) = fields.value("body").and_then(Value::as_object) {
        return batch(fields, Fields(body));
    }
    if fields.has("messages") {
        let turns = fields.objects("messages")?;
        let id = fields.label("id")?;
        return conversation(Form::Messages, id, &turns, ("role", "content"));
    }
    if fields.has("turns") {
        return spec_bench(fields).map(Some);
    }
    if fields.has("prompt") {
        return prompt(fields).map(Some);
    }
    if fields.has("question") && fields.has("answer") {
        return question(fields).map(Some);
    }
    Err(format!(
        "its fields are {}, and no form is known with these; known are {KNOWN}. outrider-bench reads the fields that \
         --prompt-field and --reference-field name",
        fields.names()
    ))
}

/// `{"kind", "prompt", "answer"}`, and with a solution HumanEval's.
fn prompt(fields: Fields<'_>) -> Result<Example, String> {
    if !fields.has("task_id") || !fields.has("canonical_solution") {
        return own(fields, Form::Own, "prompt");
    }
    Ok(Example {
        id: fields.label("task_id")?,
        kind: Form::HumanEval.kind().to_owned(),
        text: fields.text("prompt")?,
        references: fields.texts("canonical_solution")?,
        form: Form::HumanEval,
    })
}

fn own(fields: Fields<'_>, form: Form, prompt: &str) -> Result<Example, String> {
    Ok(Example {
        id: fields.label("id")?,
        kind: fields.label("kind")?.unwrap_or_default(),
        text: fields.text(prompt)?,
        references: fields.texts("answer")?,
        form,
    })
}

/// A question and its answer; GSM8K's where the answer ends with `#### N`. The reference is the whole answer.
fn question(fields: Fields<'_>) -> Result<Example, String> {
    let example = own(fields, Form::Own, "question")?;
    let is_gsm8k = |answer: &String| answer.contains("#### ");
    if !example.references.iter().any(is_gsm8k) {
        return Ok(example);
    }
    Ok(Example {
        kind: Form::Gsm8k.kind().to_owned(),
        form: Form::Gsm8k,
        ..example
    })
}

/// The first turn; `reference` holds one answer for each turn.
fn spec_bench(fields: Fields<'_>) -> Result<Example, String> {
    let mut turns = fields.texts("turns")?.into_iter();
    let references = fields.texts("reference")?.into_iter();
    let first = references.take(1).filter(|answer| !answer.is_empty());
    Ok(Example {
        id: fields.label("question_id")?,
        kind: fields.label("category")?.unwrap_or_default(),
        text: turns.next().ok_or("'turns' is empty")?,
        references: first.collect(),
        form: Form::SpecBench,
    })
}

/// A request of a batch, of which everything but the prompt is left out.
fn batch(fields: Fields<'_>, body: Fields<'_>) -> Result<Option<Example>, String> {
    let id = fields.label("custom_id")?;
    if body.has("messages") {
        let turns = body.objects("messages")?;
        return conversation(Form::Batch, id, &turns, ("role", "content"));
    }
    if !body.has("prompt") {
        let names = body.names();
        return Err(format!(
            "the fields of 'body' are {names}, expected messages or prompt"
        ));
    }
    Ok(Some(Example {
        id,
        kind: Form::Batch.kind().to_owned(),
        text: body.text("prompt")?,
        references: Vec::new(),
        form: Form::Batch,
    }))
}

fn conversation(
    form: Form,
    id: Option<String>,
    turns: &[Fields<'_>],
    names: (&str, &str),
) -> Result<Option<Example>, String> {
    let first = first_turn(turns, names)?;
    Ok(first.map(|first| Example {
        id,
        kind: form.kind().to_owned(),
        text: first.prompt,
        references: first.answer.into_iter().collect(),
        form,
    }))
}

#[cfg(test)]
mod tests {
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
}
