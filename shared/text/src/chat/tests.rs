//! Templates as models have them, against what Python's Jinja2 made of them.

use serde_json::Value as Json;

use super::*;

mod expressions;
mod tools;

/// More bytes than any prompt here has.
const MOST: usize = 1 << 20;

fn template(source: &str) -> Result<ChatTemplate, String> {
    ChatTemplate::new(source.to_owned(), "<s>".to_owned(), String::new())
}

fn message(role: &str, content: &str) -> ChatMessage {
    ChatMessage {
        role: role.to_owned(),
        content: content.to_owned(),
        ..Default::default()
    }
}

#[test]
fn a_name_stands_in_a_turn_that_has_one() {
    let source = "{% for m in messages %}{{ m.name if m.name is defined else '-' }}:{{ m.content }} {% endfor %}";
    let named = ChatMessage {
        name: "bob".to_owned(),
        ..message("user", "x")
    };
    let rendered = template(source)
        .expect("a template")
        .render(&Conversation::of(&[named, message("user", "y")]), MOST);
    assert_eq!(rendered, Ok("bob:x -:y ".to_owned()));
}

#[test]
fn a_developer_is_the_system_where_the_template_knows_none() {
    let source = "{% for m in messages %}{% if m.role == 'system' %}[{{ m.content }}]{% else %}{{ m.role }}{% endif %}{% endfor %}";
    let messages = [message("developer", "x"), message("user", "y")];
    let render = |source: &str| {
        template(source)
            .expect("a template")
            .render(&Conversation::of(&messages), MOST)
    };
    assert_eq!(render(source), Ok("[x]user".to_owned()));
    let knows = source.to_owned() + "{# or developer #}";
    assert_eq!(render(&knows), Ok("developeruser".to_owned()));
}

fn refused(source: &str) -> String {
    let rendered = template(source)
        .and_then(|template| template.render(&Conversation::of(&[message("user", "x")]), MOST));
    rendered.expect_err(source)
}

#[test]
fn templates_give_what_python_gives() {
    let source = |name: &str| match name {
        "chatml" => include_str!("golden/chatml.jinja"),
        "llama3" => include_str!("golden/llama3.jinja"),
        "mistral" => include_str!("golden/mistral.jinja"),
        "gemma" => include_str!("golden/gemma.jinja"),
        "features" => include_str!("golden/features.jinja"),
        other => panic!("no template {other}"),
    };
    let cases: Vec<Json> = serde_json::from_str(include_str!("golden/cases.json")).expect("JSON");
    assert_eq!(cases.len(), 30);
    for case in cases {
        let text = |key: &str| case[key].as_str().expect("text").to_owned();
        let (name, conversation) = (text("template"), text("conversation"));
        let template = ChatTemplate::new(
            source(&name).to_owned(),
            text("bos_token"),
            text("eos_token"),
        );
        let messages: Vec<ChatMessage> = case["messages"]
            .as_array()
            .expect("messages")
            .iter()
            .map(|turn| {
                let text = |key: &str| turn[key].as_str().expect("text");
                message(text("role"), text("content"))
            })
            .collect();
        let rendered = template
            .expect("a template")
            .render(&Conversation::of(&messages), MOST);
        match case["refused"].as_str() {
            Some(problem) => {
                let error = rendered.expect_err("refused");
                let (place, found) = error.split_once("`: ").expect("a place");
                assert_eq!(found, problem, "{name}, {conversation}");
                assert!(place.contains("raise_exception"), "{error}");
            }
            None => assert_eq!(rendered, Ok(text("text")), "{name}, {conversation}"),
        }
    }
}

#[test]
fn errors_show_the_line_of_the_template() {
    let syntax = refused("a\nb {% if %} c\nd");
    assert!(
        syntax.contains("line 2 `b {% if %} c`") && syntax.contains("syntax error"),
        "{syntax}"
    );
    let missing = refused("\n\n{{ messages[0].content.nonsense() }}");
    assert!(
        missing.contains("line 3 `{{ messages[0].content.nonsense() }}`")
            && missing.contains("nonsense"),
        "{missing}"
    );
    let raised = refused("{# - #}\n{{ raise_exception('no ' ~ messages[0].role) }}");
    assert!(
        raised.contains("line 2") && raised.ends_with(": no user"),
        "{raised}"
    );
}

#[test]
fn of_a_long_line_the_place_is_shown() {
    let before = "{% if true %}a{% endif %}".repeat(40);
    let reported = refused(&format!(
        "{before}{{{{ raise_exception('here') }}}}{before}"
    ));
    assert!(reported.contains("raise_exception('here')"), "{reported}");
    assert!(reported.chars().count() < 260, "{reported}");
}

#[test]
fn a_template_without_end_is_stopped() {
    let endless = "{% for a in range(9999) %}{% for b in range(9999) %}{% if a * b %}{% endif %}{% endfor %}{% endfor %}";
    assert!(refused(endless).contains("fuel"), "{}", refused(endless));
}

/// Loops within a template's steps could write gigabytes.
#[test]
fn a_prompt_longer_than_its_bound_is_written_no_further() {
    let long = "{% for a in range(100000) %}{{ messages[0].content * 100000 }}{% endfor %}";
    let reported = refused(long);
    let expected = "the chat template: the prompt has more than 1048576 bytes";
    assert_eq!(reported, expected);
    let template = template("{{ messages[0].content }}!").expect("a template");
    let messages = [message("user", "xyz")];
    assert_eq!(
        template.render(&Conversation::of(&messages), 4),
        Ok("xyz!".to_owned())
    );
    assert!(template.render(&Conversation::of(&messages), 3).is_err());
}

/// A list of one list twice, of one list twice, and so on is small, and its text is not.
#[test]
fn json_longer_than_a_prompt_is_written_no_further() {
    let doubled = "{% set ns = namespace(a=[1]) %}{% for _ in range(24) %}{% set ns.a = [ns.a, ns.a] %}{% endfor %}";
    let reported = refused(&format!("{doubled}{{{{ ns.a | tojson }}}}"));
    assert!(
        reported.contains("longer than 16777216 bytes"),
        "{reported}"
    );
    let wide = refused("{{ '%999999999999s' % 'x' }}");
    assert!(wide.contains("fuel") || wide.contains("large"), "{wide}");
}

#[test]
fn the_time_is_told() {
    let template = template("{{ strftime_now('%Y-%m-%d') }}").expect("a template");
    let date = template
        .render(&Conversation::default(), MOST)
        .expect("a date");
    let parts: Vec<u32> = date
        .split('-')
        .map(|part| part.parse().expect("a number"))
        .collect();
    assert!(
        parts.len() == 3 && parts[0] >= 2026 && parts[1] <= 12,
        "{date}"
    );
}
