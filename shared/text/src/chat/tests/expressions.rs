//! Small templates, one construct each, against what Python's Jinja2 made of them.

use super::*;

/// Where the template engine gives something else than Python, and what it gives; `None` if it refuses.
const DIFFERENCES: [(&str, Option<&str>); 20] = [
    // Views and ranges have the text of lists.
    ("{{ {'a': 1}.items() }}", Some("[('a', 1)]")),
    (
        "{{ {'a': 1}.keys() }} {{ {'a': 1}.values() }}",
        Some("['a'] [1]"),
    ),
    ("{{ range(3) }}", Some("[0, 1, 2]")),
    // The length of a text that is looped over is not known beforehand.
    (
        "{% for x in 'abc' %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.first }}{{ loop.last }}{{ loop.length }} {% endfor %}",
        Some("10TrueFalse 21FalseFalse 32FalseFalse "),
    ),
    // A method is no value.
    ("{{ 'a'.upper is callable }}", Some("False")),
    (
        "{{ joiner is callable }} {{ cycler('a') is callable }}",
        Some("True True"),
    ),
    ("{{ {'a': 1}|attr('a') is undefined }}", Some("False")),
    ("{{ self is defined }}", Some("False")),
    ("{{ lipsum is defined }}", Some("False")),
    ("{{ '\\N{BULLET}' }}", Some("\\N{BULLET}")),
    (
        "{{ {'x': 1.5, 'y': 1e100, 'z': -0.0} }}",
        Some("{'x': 1.5, 'y': 1e100, 'z': -0.0}"),
    ),
    // Not there.
    ("{{ 'a\\tb'.expandtabs(4) }}", None),
    ("{{ '%r' % 'x' }}", None),
    ("{{ 'a b c'|wordcount }}", None),
    ("{{ 'hello world'|truncate(8) }}", None),
    ("{{ {'a': 1}|xmlattr }}", None),
    (
        "{% macro f(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, 2, x=3) }}",
        None,
    ),
    ("{{ 'abc'.encode('utf-8') }}", None),
    ("{{ 5.bit_length() }}", None),
    ("{{ (2.0).is_integer() }}", None),
];

#[test]
fn each_construct_gives_what_python_gives() {
    let cases: Vec<Json> =
        serde_json::from_str(include_str!("../golden/expressions.json")).expect("JSON");
    assert_eq!(cases.len(), 353);
    let messages = [
        message("system", "Be brief."),
        message("user", "hi there"),
        message("assistant", "<think>x</think>\n\nyes"),
    ];
    let is_case = |template: &str| cases.iter().any(|case| case["template"] == template);
    for (template, _) in DIFFERENCES {
        assert!(is_case(template), "{template}");
    }
    let mut wrong = Vec::new();
    for case in &cases {
        let source = case["template"].as_str().expect("a template");
        let rendered = template(source)
            .and_then(|template| template.render(&Conversation::of(&messages), MOST));
        let python = case["text"].as_str();
        let known = DIFFERENCES.iter().find(|(template, _)| *template == source);
        let expected = known.map_or(python, |(_, ours)| *ours);
        assert!(
            known.is_none() || expected != python,
            "no difference: {source}"
        );
        if rendered.as_deref().ok() != expected {
            wrong.push(format!(
                "{source}\n  expected {expected:?}\n  rendered {rendered:?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
