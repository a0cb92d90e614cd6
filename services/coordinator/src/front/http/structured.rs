//! Structured output: the fields by which clients of OpenAI and of vLLM say what the output must follow.

use serde_json::value::RawValue;
use wire::status::BadField;
use wire::v1;

use super::fields::{JsonFields, list, quoted};

/// Most texts to choose from.
const MAX_CHOICES: usize = 1_024;

/// Where OpenAI's clients say what the output follows.
pub(super) const RESPONSE_FORMAT: &str = "response_format";

/// Any JSON object.
const OBJECT: &str = r#"{"type": "object"}"#;

/// A grammar, and the field of the request that gave it.
pub(super) type NamedGrammar = (&'static str, v1::Grammar);

/// Reads vLLM's fields, and puts the grammar that they or `format` give into `request`. Returns the name of the field that
/// gave one, or the usual one.
///
/// # Errors
/// Names a field of the wrong type, or the second field that gives a grammar.
pub(super) fn read(
    fields: &mut JsonFields<'_>,
    format: Option<NamedGrammar>,
    request: &mut v1::GenerateRequest,
) -> Result<&'static str, BadField> {
    let schema = fields.take_raw("guided_json");
    let regex = fields.take("guided_regex")?;
    let choice = fields.take_by("guided_choice", |json| list(json, MAX_CHOICES))?;
    let lark = fields.take("guided_grammar")?;
    let mut given = vec![
        ("guided_json", schema.map(by_schema)),
        ("guided_regex", regex.map(by_regex)),
        ("guided_choice", choice.map(by_choice)),
        ("guided_grammar", lark.map(by_lark)),
    ];
    if let Some(mut structured) = fields.take_object("structured_outputs")? {
        let schema = structured.take_raw("json").map(by_schema);
        let is_object = structured.take("json_object")?.unwrap_or(false);
        let regex = structured.take("regex")?.map(by_regex);
        let choice = structured.take_by("choice", |json| list(json, MAX_CHOICES))?;
        let lark = structured.take("grammar")?.map(by_lark);
        structured.finish()?;
        let object = is_object.then(|| of_schema(OBJECT));
        let all = [schema, object, regex, choice.map(by_choice), lark];
        given.extend(all.map(|grammar| ("structured_outputs", grammar)));
    }
    let given = given.into_iter().filter_map(|(name, it)| Some((name, it?)));
    let mut given = given.chain(format);
    let first = given.next();
    if let Some((second, _)) = given.next() {
        let problem = "another field says already what the output follows; leave one of them out";
        return Err(BadField::new(second, problem));
    }
    let Some((name, grammar)) = first else {
        return Ok(RESPONSE_FORMAT);
    };
    request.sampling.get_or_insert_default().grammar = Some(grammar);
    Ok(name)
}

/// Reads OpenAI's `response_format`, or the `format` of a response's text, which has the schema beside its type. Errors of
/// what it gives call it `called`.
///
/// # Errors
/// Names what of it is not what it must be.
pub(super) fn format(
    fields: &mut JsonFields<'_>,
    name: &'static str,
    called: &'static str,
) -> Result<Option<NamedGrammar>, BadField> {
    let Some(mut format) = fields.take_object(name)? else {
        return Ok(None);
    };
    let kind: Option<String> = format.take("type")?;
    let grammar = match kind.as_deref() {
        Some("text") => None,
        Some("json_object") => Some(of_schema(OBJECT)),
        Some("json_schema") => match format.take_object("json_schema")? {
            Some(nested) => Some(described(nested)?),
            None => return Ok(Some((called, described(format)?))),
        },
        other => {
            let other = quoted(other.unwrap_or("nothing"));
            let problem =
                format!("{other} is not supported, expected text, json_object or json_schema");
            return Err(format.error("type", problem));
        }
    };
    format.finish()?;
    Ok(grammar.map(|grammar| (called, grammar)))
}

/// Reads a named schema: `name`, `description`, `strict` and `schema`. The schema is enforced whatever `strict` says.
fn described(mut fields: JsonFields<'_>) -> Result<v1::Grammar, BadField> {
    for name in ["name", "description", "strict"] {
        fields.has(name);
    }
    let schema = fields.take_raw("schema");
    let schema = schema.ok_or_else(|| fields.error("schema", "missing"))?;
    fields.finish()?;
    Ok(by_schema(schema))
}

/// Returns the grammar of any JSON object.
pub(super) fn any_object() -> v1::Grammar {
    of_schema(OBJECT)
}

/// Returns the grammar of a schema. Some clients send the schema as a string that holds its JSON.
pub(super) fn by_schema(json: &RawValue) -> v1::Grammar {
    let within = serde_json::from_str::<String>(json.get());
    of_schema(within.as_deref().unwrap_or_else(|_| json.get()))
}

fn of_schema(schema: &str) -> v1::Grammar {
    v1::Grammar {
        json_schema: schema.to_owned(),
        ..Default::default()
    }
}

fn by_regex(regex: String) -> v1::Grammar {
    v1::Grammar {
        regex,
        ..Default::default()
    }
}

fn by_choice(choice: Vec<String>) -> v1::Grammar {
    v1::Grammar {
        choice,
        ..Default::default()
    }
}

fn by_lark(lark: String) -> v1::Grammar {
    v1::Grammar {
        lark,
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read_json(value: &Value) -> Result<Option<v1::Grammar>, BadField> {
        let body = value.to_string();
        let mut fields = JsonFields::of_body(body.as_bytes())?;
        let mut request = v1::GenerateRequest::default();
        let format = format(&mut fields, RESPONSE_FORMAT, RESPONSE_FORMAT)?;
        read(&mut fields, format, &mut request)?;
        fields.finish()?;
        Ok(request.sampling.and_then(|sampling| sampling.grammar))
    }

    #[test]
    fn every_way_of_saying_it_is_read() {
        let schema = json!({"type": "integer"});
        let by_schema = Some(of_schema(&schema.to_string()));
        let nested = json!({"name": "x", "strict": true, "schema": schema});
        let flat = json!({"type": "json_schema", "name": "x", "schema": schema});
        for (value, expected) in [
            (json!({}), None),
            (json!({"response_format": null}), None),
            (json!({"response_format": {"type": "text"}}), None),
            (
                json!({"response_format": {"type": "json_object"}}),
                Some(of_schema(OBJECT)),
            ),
            (
                json!({"response_format": {"type": "json_schema", "json_schema": nested}}),
                by_schema.clone(),
            ),
            (json!({"response_format": flat}), by_schema.clone()),
            (json!({"guided_json": schema}), by_schema.clone()),
            (
                json!({"guided_json": schema.to_string()}),
                by_schema.clone(),
            ),
            (
                json!({"guided_regex": "a+"}),
                Some(by_regex("a+".to_owned())),
            ),
            (
                json!({"guided_choice": ["a", "b"]}),
                Some(by_choice(vec!["a".to_owned(), "b".to_owned()])),
            ),
            (
                json!({"guided_grammar": "g"}),
                Some(by_lark("g".to_owned())),
            ),
            (json!({"structured_outputs": {"json": schema}}), by_schema),
            (
                json!({"structured_outputs": {"json_object": true}}),
                Some(of_schema(OBJECT)),
            ),
            (
                json!({"structured_outputs": {"regex": "a+"}}),
                Some(by_regex("a+".to_owned())),
            ),
        ] {
            assert_eq!(read_json(&value).expect("in order"), expected, "{value}");
        }
    }

    #[test]
    fn what_is_not_taken_is_named() {
        for (value, expected) in [
            (
                json!({"response_format": {"type": "xml"}}),
                "response_format.type: xml",
            ),
            (
                json!({"response_format": {}}),
                "response_format.type: nothing",
            ),
            (
                json!({"response_format": {"type": "json_schema"}}),
                "response_format.schema: missing",
            ),
            (
                json!({"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}}),
                "response_format.json_schema.schema: missing",
            ),
            (
                json!({"guided_regex": "a", "response_format": {"type": "json_object"}}),
                "response_format: another field",
            ),
            (
                json!({"structured_outputs": {"regex": "a", "choice": ["b"]}}),
                "structured_outputs: another field",
            ),
            (json!({"guided_choice": "a"}), "guided_choice"),
        ] {
            let bad = read_json(&value).expect_err("refused").to_string();
            assert!(bad.starts_with(expected), "{value}: {bad}");
        }
    }
}
