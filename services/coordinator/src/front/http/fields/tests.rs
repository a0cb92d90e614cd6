use serde_json::json;

use super::*;

/// The fields of `value`, whose JSON is kept for as long as the test runs.
fn fields(value: &Value) -> JsonFields<'static> {
    let body = value.to_string().into_bytes().leak();
    JsonFields::of_body(body).expect("an object")
}

#[test]
fn fields_are_read_once_and_the_rest_is_refused_by_name() {
    let mut read = fields(&json!({ "n": 2, "stop": null, "options": { "deep": 1 }, "x": [] }));
    assert_eq!(read.take::<u32>("n"), Ok(Some(2)));
    assert_eq!(read.take::<String>("stop"), Ok(None));
    assert_eq!(read.take::<String>("absent"), Ok(None));
    let options = read.take_object("options").expect("an object");
    let refused = options.expect("is there").finish().expect_err("deep");
    assert_eq!(refused.field, "options.deep");
    assert_eq!(read.finish().expect_err("x").field, "x");
    let mut read = fields(&json!({ "max_tokns": 2 }));
    assert_eq!(read.take::<u32>("max_tokens"), Ok(None));
    let refused = read.finish().expect_err("misspelt").to_string();
    assert!(refused.contains("did you mean `max_tokens`?"), "{refused}");
}

#[test]
fn errors_name_field_and_type() {
    let mut read = fields(&json!({ "n": "two", "options": 3, "tools": [1], "format": "text" }));
    let wrong = read.take::<u32>("n").expect_err("a string").to_string();
    assert!(
        wrong.starts_with("n: ") && wrong.contains("\"two\""),
        "{wrong}"
    );
    assert!(read.take_object("options").is_err());
    assert_eq!(read.only("format", &[json!("text")]), Ok(()));
    let tools = read.only("tools", &[]).expect_err("tools");
    assert_eq!(tools.field, "tools");
    for body in ["", "[]", "3", "{", "{\"a\":1} x", "\u{0}"] {
        let refused = JsonFields::of_body(body.as_bytes());
        assert_eq!(refused.err().map(|bad| bad.field), Some("body".to_owned()));
    }
    let deep = "[".repeat(100_000);
    assert!(JsonFields::of_body(format!("{{\"a\":{deep}").as_bytes()).is_err());
}

#[test]
fn names_and_values_of_any_length_are_quoted_in_a_few_bytes() {
    let long = "x".repeat(4 << 20);
    let unknown = fields(&json!({ &long: 1 })).finish().expect_err("unknown");
    assert!(
        unknown.to_string().len() < 300,
        "{}",
        unknown.to_string().len()
    );
    let wrong = fields(&json!({ "n": long })).take::<u32>("n");
    let wrong = wrong.expect_err("a string").to_string();
    assert!(
        wrong.len() < 300 && wrong.ends_with("expected a whole number from 0 to 4294967295"),
        "{wrong}"
    );
    let neutral = fields(&json!({ "store": vec![0; 1 << 20] })).only("store", &[json!(false)]);
    assert!(neutral.expect_err("a list").to_string().len() < 300);
    let broken = format!("{{\"a\": \"{}", "ü".repeat(1 << 20));
    let refused = JsonFields::of_body(broken.as_bytes())
        .err()
        .expect("cut off");
    assert!(refused.to_string().len() < 300);
}

#[test]
fn an_object_has_a_number_of_fields_at_most_and_the_last_of_one_name_counts() {
    let named = |count: usize| {
        let fields = (0..count).map(|at| format!("\"f{at}\":0"));
        format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
    };
    assert!(JsonFields::of_body(named(MAX_FIELDS).as_bytes()).is_ok());
    let one_more = named(MAX_FIELDS + 1);
    let refused = JsonFields::of_body(one_more.as_bytes());
    let refused = refused.err().expect("one more").to_string();
    assert!(refused.contains("more than 128 fields"), "{refused}");
    let again = format!("{{{}\"a\":2}}", "\"a\":1,".repeat(1_000));
    let mut read = JsonFields::of_body(again.as_bytes()).expect("one field");
    assert_eq!(read.take::<u32>("a"), Ok(Some(2)));
}

/// Whoever reads an error knows JSON, and need not know what this server is written in.
#[test]
fn errors_say_in_words_what_is_expected() {
    let found = json!({ "n": [], "seed": {}, "top_k": "8", "top_p": "x", "ids": 3, "id": [-1], "stream": 1, "stop": 5,
        "name": [], "bias": [], "kind": {} });
    let mut read = fields(&found);
    let refused = [
        read.take::<u32>("n").err(),
        read.take::<Seed>("seed").err(),
        read.take::<i64>("top_k").err(),
        read.take::<f32>("top_p").err(),
        read.take::<Vec<u32>>("ids").err(),
        read.take::<Vec<u32>>("id").err(),
        read.take::<bool>("stream").err(),
        read.take_by("stop", |json| TextOrList::of_json(json, 2))
            .err(),
        read.take::<String>("name").err(),
        read.take_by("bias", |json| object(json, 2)).err(),
        read.take_by("kind", |json| list::<String>(json, 2)).err(),
    ];
    let said = refused.map(|bad| bad.expect("refused").to_string());
    assert_eq!(
        said,
        [
            "n: invalid type: list, expected a whole number from 0 to 4294967295",
            "seed: invalid type: object, expected a whole number from -9223372036854775808 to 18446744073709551615",
            "top_k: invalid type: string \"8\", expected a whole number from -9223372036854775808 to 9223372036854775807",
            "top_p: invalid type: string \"x\", expected a number",
            "ids: invalid type: integer `3`, expected a list",
            "id: invalid value: integer `-1`, expected a whole number from 0 to 4294967295",
            "stream: invalid type: integer `1`, expected a boolean",
            "stop: invalid type: integer `5`, expected a text or a list",
            "name: invalid type: list, expected a string",
            "bias: invalid type: list, expected an object",
            "kind: invalid type: object, expected a list",
        ]
    );
}
