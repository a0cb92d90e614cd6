//! What grammars allow, how they are followed, and what is refused.

use super::*;
use serde_json::{Value, json};
use speculation::constraint::Constraint;

/// The built-in pair's vocabulary.
const TOKENIZER: &[u8] = include_bytes!("../../../models/default/tokenizer/tokenizer.json");
const VOCAB_SIZE: u32 = 4096;
const END: TokenId = 2;

fn text() -> Arc<ServedText> {
    let text = ServedText::new(TOKENIZER, TokenizerPart::default());
    Arc::new(text.expect("a tokenizer"))
}

fn grammars() -> Grammars {
    Grammars::new(|| Ok(text()), VOCAB_SIZE, vec![END])
}

fn schema(schema: &Value) -> GrammarSpec {
    GrammarSpec::JsonSchema(schema.to_string())
}

fn allowed(state: &dyn Constraint) -> Vec<TokenId> {
    let words = state.allowed().expect("known").expect("something is said");
    let is_set = |token: &TokenId| words[*token as usize / 32] >> (token % 32) & 1 == 1;
    (0..VOCAB_SIZE).filter(is_set).collect()
}

/// Follows the grammar by tokens that `choose` takes of those allowed, to the end; returns the text.
fn walked(spec: &GrammarSpec, mut choose: impl FnMut(usize) -> usize) -> String {
    let grammars = grammars();
    let mut state = grammars.compile(spec).expect("a grammar").start();
    let mut tokens = Vec::new();
    loop {
        let may = allowed(&*state);
        assert!(!may.is_empty(), "{tokens:?}");
        let token = may[choose(may.len()) % may.len()];
        assert_eq!(state.fitting(&[token]), 1);
        let forced = state.forced();
        assert_eq!(state.fitting(&forced), forced.len());
        assert_eq!(allowed(&*state), may, "what is forced changes nothing");
        state.push(token);
        if token == END {
            assert_eq!(state.allowed(), Ok(None));
            return text().text_of(&tokens);
        }
        tokens.push(token);
        assert!(tokens.len() < 4_000, "{:?}", text().text_of(&tokens));
    }
}

/// Numbers that look random.
fn some(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    move |most| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % most as u64) as usize
    }
}

#[test]
fn whatever_is_chosen_of_what_may_come_is_of_the_grammar() {
    let pet = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 8},
            "age": {"type": "integer", "minimum": 0, "maximum": 30},
            "kind": {"enum": ["cat", "dog"]},
            "tags": {"type": "array", "items": {"type": "boolean"}, "maxItems": 3},
        },
        "required": ["name", "age", "kind"],
        "additionalProperties": false,
    });
    for seed in 0..40 {
        let text = walked(&schema(&pet), some(seed));
        let value: Value = serde_json::from_str(&text).expect(&text);
        let name = value["name"].as_str().expect("a name");
        assert!(name.chars().count() <= 8, "{text}");
        assert!(
            (0..=30).contains(&value["age"].as_i64().expect("a number")),
            "{text}"
        );
        assert!(
            ["cat", "dog"].contains(&value["kind"].as_str().expect("a kind")),
            "{text}"
        );
        let known = ["name", "age", "kind", "tags"];
        let fields = value.as_object().expect("an object");
        assert!(
            fields.keys().all(|key| known.contains(&key.as_str())),
            "{text}"
        );
    }
    for seed in 0..20 {
        let text = walked(
            &GrammarSpec::Regex("[a-c]{2,4}-\\d+x".to_owned()),
            some(seed),
        );
        let (letters, digits) = text.split_once('-').expect("a line");
        assert!(
            (2..=4).contains(&letters.len()) && digits.ends_with('x'),
            "{text}"
        );
        let texts = ["yes (1+1)", "no", "none"];
        let choice = GrammarSpec::Choice(texts.map(str::to_owned).to_vec());
        assert!(texts.contains(&walked(&choice, some(seed)).as_str()));
        let lark = GrammarSpec::Lark("start: \"(\" start \")\" | \"o\"".to_owned());
        let text = walked(&lark, some(seed));
        assert_eq!(
            text.matches('(').count(),
            text.matches(')').count(),
            "{text}"
        );
    }
}

#[test]
fn going_back_is_as_if_it_had_not_gone_there() {
    let grammar = grammars();
    let spec = schema(&json!({"type": "array", "items": {"type": "integer"}}));
    let grammar = grammar.compile(&spec).expect("a grammar");
    let mut choose = some(3);
    let mut state = grammar.start();
    let mut path: Vec<(TokenId, Vec<TokenId>)> = Vec::new();
    for step in 0..300 {
        let may = allowed(&*state);
        if step % 3 == 2 && !path.is_empty() {
            // Tokens that do not fit, and what follows them, go too.
            let refused = choose(3);
            let unfit = (0..VOCAB_SIZE)
                .find(|token| !may.contains(token))
                .expect("some");
            for _ in 0..refused {
                state.push(unfit);
                assert_eq!((state.allowed(), state.fitting(&[unfit])), (Ok(None), 0));
                assert!(state.forced().is_empty());
            }
            let back = choose(path.len()).min(4) + 1;
            state.pop(refused + back);
            let (_, before) = path.split_off(path.len() - back).remove(0);
            assert_eq!(allowed(&*state), before);
            assert_eq!(allowed(&*state.boxed()), before);
            continue;
        }
        let token = may[choose(may.len())];
        if choose(2) == 0 {
            state.forced();
        }
        state.push(token);
        if token == END {
            state.pop(1);
            assert_eq!(allowed(&*state), may);
            continue;
        }
        path.push((token, may));
    }
}

#[test]
fn a_fault_of_the_library_does_not_set_the_output_free() {
    let fault = "fault".parse::<u8>().expect_err("no number");
    let mut state = Grammar::new(llguidance::Matcher::new(Err(fault.into()))).start();
    state.push(7);
    assert!(state.allowed().is_err(), "{state:?}");
    assert_eq!((state.fitting(&[7]), state.forced().len()), (0, 0));
}

#[test]
fn a_grammar_is_compiled_once_while_it_is_kept() {
    let grammars = grammars();
    let spec = |at: usize| GrammarSpec::Regex(format!("x{at}"));
    let one = grammars.compile(&spec(0)).expect("a grammar");
    let again = grammars.compile(&spec(0)).expect("a grammar");
    assert!(one.is(&again));
    assert!(!one.is(&grammars.compile(&spec(1)).expect("a grammar")));
    // Many small ones are held within bounds too.
    for at in 2..1_000 {
        grammars.compile(&spec(at)).expect("a grammar");
    }
    assert!(grammars.kept.weight() <= KEPT_BYTES);
    assert!(grammars.kept.len() < 400, "{}", grammars.kept.len());
}

#[test]
fn forced_tokens_are_the_tokenizers_own_and_may_come() {
    let grammars = grammars();
    let spec = schema(&json!({
        "type": "object",
        "properties": {"the answer is": {"const": "once upon a time"}},
        "required": ["the answer is"],
        "additionalProperties": false,
    }));
    let state = grammars.compile(&spec).expect("a grammar").start();
    let forced = state.forced();
    assert_eq!(state.fitting(&forced), forced.len());
    let text = text().text_of(&forced);
    assert!(
        text.starts_with("{\"the answer is\": \"once upon a"),
        "{text}"
    );
    let own = self::text().tokens(&text, false, usize::MAX);
    let own = own.expect("tokens");
    assert_eq!(forced, own);
}

#[test]
fn what_cannot_be_followed_is_refused_with_a_reason() {
    let grammars = grammars();
    let refused = |spec: &GrammarSpec| grammars.compile(spec).expect_err("refused").to_string();
    let cases = [
        (schema(&json!({"type": "nonsense"})), "nonsense"),
        (
            schema(&json!({"$ref": "https://example.com/x.json"})),
            "ref",
        ),
        (
            schema(&json!({"type": "string", "pattern": "a(?=b)"})),
            "look",
        ),
        (
            schema(&json!({"unevaluatedProperties": false})),
            "unevaluatedProperties",
        ),
        (schema(&json!(false)), ""),
        (
            schema(&json!({"type": "integer", "minimum": 3, "maximum": 2})),
            "",
        ),
        (GrammarSpec::JsonSchema("{".to_owned()), "no JSON"),
        (GrammarSpec::Regex("(".to_owned()), "regex"),
        (GrammarSpec::Regex("(?=a)".to_owned()), "look"),
        (GrammarSpec::Choice(Vec::new()), "no text to choose"),
        (
            GrammarSpec::Choice(vec![String::new()]),
            "no text to choose",
        ),
        (GrammarSpec::Lark("start: nothing".to_owned()), "nothing"),
    ];
    for (spec, expected) in cases {
        let said = refused(&spec);
        assert!(said.contains(expected), "{spec:?}: {said}");
        assert!(
            !said.is_empty() && said.lines().count() == 1 && said.len() < 400,
            "{said}"
        );
    }
}

/// Each is refused, or followed as far as it goes: no fault of the library is more than a reason.
#[test]
fn hostile_grammars_are_refused_or_followed() {
    let grammars = grammars();
    let regex = |text: &str| GrammarSpec::Regex(text.to_owned());
    let lark = |text: &str| GrammarSpec::Lark(text.to_owned());
    let nested = (0..2_000).fold(
        json!({"type": "integer"}),
        |inner, _| json!({"type": "array", "items": inner}),
    );
    let doubled = (0..8).fold(json!({"type": "integer"}), |inner, _| {
        let any = |other: Value| json!({"anyOf": [inner, other]});
        json!({"allOf": [any(json!({"type": "null"})), any(json!({"type": "string"}))]})
    });
    let ring = json!({"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"});
    for spec in [
        regex("(((a{1,100}){1,100}){1,100}){1,100}"),
        regex(&"(a*)*(b*)*(c*)*".repeat(200)),
        regex(&vec!["[a-z]{1,30}x"; 300].join("|")),
        regex("(.*a.{20}|.*b.{20}){3}"),
        lark("start: start start | \"a\" | "),
        lark("start: a a a a a a a a\na: start | \"b\""),
        schema(&json!({"type": "string", "minLength": 100_000})),
        schema(&json!({"type": "array", "minItems": 1_000_000})),
        schema(&json!({"enum": (0..2_000).collect::<Vec<_>>()})),
        schema(&json!({"type": "integer", "multipleOf": 999_999_937})),
        schema(&nested),
        schema(&doubled),
        schema(&ring),
    ] {
        let mut state = match grammars.compile(&spec) {
            Ok(grammar) => grammar.start(),
            Err(error) => {
                let said = error.to_string();
                assert!(!said.is_empty() && said.lines().count() == 1, "{said}");
                continue;
            }
        };
        let mut last = None;
        for _ in 0..20 {
            match state.allowed() {
                Ok(Some(_)) => {
                    last = allowed(&*state).pop();
                    state.push(last.expect("a token"));
                }
                Ok(None) => {
                    assert_eq!(last, Some(END), "{spec:?} is followed to its end");
                    break;
                }
                Err(said) => {
                    assert!(!said.is_empty() && said.lines().count() == 1, "{said}");
                    break;
                }
            }
        }
    }
}

mod of_calls;
