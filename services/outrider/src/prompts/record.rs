//! One JSON object of a file of prompts, recognised by its fields.

#[cfg(test)]
mod tests;

use serde_json::Value;

use super::conversation::first_turn;
use super::example::{Example, Form};
use super::fields::{Fields, described, texts};

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

/// The first turn; `reference` holds for each turn an answer, or a list of them.
fn spec_bench(fields: Fields<'_>) -> Result<Example, String> {
    let mut turns = fields.texts("turns")?.into_iter();
    let first = match fields.value("reference") {
        Some(Value::Array(of_turns)) => of_turns.first().filter(|it| !it.is_null()),
        other => other,
    };
    let references = first.map_or_else(|| Ok(Vec::new()), |first| texts("reference", first))?;
    let known = references.into_iter().filter(|answer| !answer.is_empty());
    Ok(Example {
        id: fields.label("question_id")?,
        kind: fields.label("category")?.unwrap_or_default(),
        text: turns.next().ok_or("'turns' is empty")?,
        references: known.collect(),
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
