//! Grammars of calls: whatever they allow is read as calls that are in order, in every form.

use std::fmt::Debug;
use std::sync::Arc;

use calls::{
    CallForm, CallGrammar, FORMS, GENERIC, OutputPiece, OutputReader, OutputReading,
    ReasoningMarks, Tools,
};
use wire::v1;

use super::*;

/// The built-in pair's tokenizer with the marks of `form` and of reasoning as special tokens behind its own.
struct Model {
    text: Arc<ServedText>,
    grammars: Grammars,
    special: Vec<(&'static str, u32)>,
    vocab_size: u32,
}

/// Marks that no model has a token for.
const NEVER_TOKENS: [&str; 2] = ["<function=", "functools"];

fn thinking() -> Option<ReasoningMarks> {
    ReasoningMarks::of_template("<think>")
}

impl Model {
    fn new(form: &'static CallForm, with_tokens: bool) -> Self {
        let mut json: Value = serde_json::from_slice(TOKENIZER).expect("JSON");
        let marks = OutputReading::marks(Some(form), thinking());
        let marks: Vec<_> = marks
            .filter(|mark| with_tokens && !NEVER_TOKENS.contains(mark))
            .collect();
        let added = json["added_tokens"].as_array_mut().expect("a list");
        for (at, mark) in marks.iter().enumerate() {
            added.push(json!({
                "id": VOCAB_SIZE as usize + at, "content": mark, "single_word": false, "lstrip": false,
                "rstrip": false, "normalized": false, "special": true,
            }));
        }
        let vocab_size = VOCAB_SIZE + marks.len() as u32;
        let text = ServedText::new(json.to_string().as_bytes(), TokenizerPart::default());
        let text = Arc::new(text.expect("a tokenizer"));
        let of_grammars = Arc::clone(&text);
        Self {
            special: text.special_among(marks.into_iter()),
            grammars: Grammars::new(move || Ok(Arc::clone(&of_grammars)), vocab_size, vec![END]),
            text,
            vocab_size,
        }
    }

    fn allowed(&self, state: &dyn Constraint) -> Vec<TokenId> {
        let words = state.allowed().expect("known").expect("something is said");
        let is_set = |token: &TokenId| words[*token as usize / 32] >> (token % 32) & 1 == 1;
        (0..self.vocab_size).filter(is_set).collect()
    }

    /// Follows `spec` by `begin`, and then by tokens chosen of those allowed, to the end.
    fn walk(&self, spec: &GrammarSpec, begin: &str, seed: u64) -> Vec<TokenId> {
        let grammar = self.grammars.compile(spec);
        let grammar = grammar.unwrap_or_else(|error| panic!("{error}: {spec:?}"));
        let mut state = grammar.start();
        let mut tokens = self.text.tokens(begin, false, usize::MAX).expect("tokens");
        for &token in &tokens {
            assert_eq!(state.fitting(&[token]), 1, "{begin:?} in {spec:?}");
            state.push(token);
        }
        let mut choose = some(seed);
        loop {
            let may = self.allowed(&*state);
            assert!(!may.is_empty(), "{tokens:?}");
            let token = if may.contains(&END) && choose(3) == 0 {
                END
            } else {
                may[choose(may.len())]
            };
            state.push(token);
            if token == END {
                return tokens;
            }
            tokens.push(token);
            assert!(tokens.len() < 3_000, "{:?}", self.text.text_of(&tokens));
        }
    }

    /// Reads an output.
    fn read(&self, reading: &OutputReading, tokens: &[TokenId]) -> Read {
        let mut reader = OutputReader::new(reading.clone());
        let mut read = Read::default();
        let mut pending: Vec<TokenId> = Vec::new();
        for &token in tokens {
            let name = self.text.token_bytes(token);
            let mark = std::str::from_utf8(&name)
                .ok()
                .and_then(|name| reader.mark(name));
            if let Some(mark) = mark.filter(|_| self.text.is_special(token)) {
                read.add(reader.text(&self.text.text_of(&std::mem::take(&mut pending))));
                read.add(reader.special(mark));
            } else {
                pending.push(token);
            }
        }
        read.add(reader.text(&self.text.text_of(&pending)));
        read.add(reader.finish());
        read
    }
}

#[derive(Debug, Default)]
struct Read {
    content: String,
    reasoning: String,
    calls: Vec<(String, String)>,
}

impl Read {
    fn add(&mut self, pieces: Vec<OutputPiece>) {
        for piece in pieces {
            match piece {
                OutputPiece::Content(text) => self.content += &text,
                OutputPiece::Reasoning(text) => self.reasoning += &text,
                OutputPiece::Call(name) => self.calls.push((name, String::new())),
                OutputPiece::Arguments(json) => self.calls.last_mut().expect("a call").1 += &json,
            }
        }
    }

    /// Checks that each call is of one of the tools, with arguments of its schema.
    fn check(&self) {
        for (name, arguments) in &self.calls {
            let arguments: Value =
                serde_json::from_str(arguments).unwrap_or_else(|_| panic!("{self:?}"));
            match name.as_str() {
                "weather" => {
                    let city = arguments["city"]
                        .as_str()
                        .unwrap_or_else(|| panic!("{self:?}"));
                    assert!(["Paris", "Zürich \"x\""].contains(&city), "{self:?}");
                    let days = &arguments["days"];
                    assert!(days.is_null() || (1..=9).contains(&days.as_i64().expect("whole")));
                }
                "now" => assert_eq!(arguments, json!({}), "{self:?}"),
                other => panic!("{other}: {self:?}"),
            }
        }
    }
}

fn tools(change: impl FnOnce(&mut v1::GenerateRequest)) -> Tools {
    let weather = json!({
        "type": "object",
        "properties": {
            "city": {"$ref": "#/$defs/City"},
            "days": {"type": "integer", "minimum": 1, "maximum": 9},
        },
        "required": ["city"],
        "additionalProperties": false,
        "$defs": {"City": {"type": "string", "enum": ["Paris", "Zürich \"x\""]}},
    });
    let now = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let tool = |name: &str, schema: &Value| v1::Tool {
        name: name.to_owned(),
        parameters: schema.to_string(),
        ..Default::default()
    };
    let mut request = v1::GenerateRequest {
        tools: vec![tool("weather", &weather), tool("now", &now)],
        ..Default::default()
    };
    change(&mut request);
    Tools::take(&mut request).expect("tools")
}

fn all_forms() -> impl Iterator<Item = (&'static CallForm, Model)> {
    let forms = FORMS.iter().chain([&GENERIC]);
    let models = forms.flat_map(|form| [false, true].map(|with_tokens| (form, with_tokens)));
    // The marks of channels are tokens in every model that has them.
    let models = models.filter(|(form, with_tokens)| *with_tokens || !form.is_in_channels());
    models.map(|(form, with_tokens)| (form, Model::new(form, with_tokens)))
}

fn grammar<'a>(
    form: &'static CallForm,
    model: &'a Model,
    tools: &'a Tools,
    otherwise: Option<&'a GrammarSpec>,
) -> CallGrammar<'a> {
    CallGrammar {
        form,
        tools,
        reasoning: (!form.is_in_channels()).then(thinking).flatten(),
        begins_in_reasoning: false,
        otherwise,
        special: &model.special,
    }
}

fn reading(of: &CallGrammar<'_>) -> OutputReading {
    OutputReading {
        form: Some(of.form),
        reasoning: of.reasoning,
        begins_in_reasoning: of.begins_in_reasoning,
        tools: Arc::new(of.tools.clone()),
        special_marks: of.special.iter().map(|(mark, _)| *mark).collect(),
        is_held: true,
    }
}

/// What stands before a call in each form, from the output's beginning on.
fn opening(form: &CallForm) -> &'static str {
    match form.name {
        "gpt-oss" => "<|channel|>commentary to=functions.",
        "deepseek" => "Hm.<｜tool▁calls▁begin｜>",
        "mistral" | "mistral-args" => "Hm.[TOOL_CALLS]",
        "granite" | "phi-4" => "Hm.<|tool_call|>",
        "llama-3" => "{",
        _ => "Hm.<tool_call>",
    }
}

#[test]
fn calls_that_must_come_are_read_as_calls_in_order() {
    for (form, model) in all_forms() {
        let required = tools(|request| request.set_tool_choice(v1::ToolChoice::Required));
        let named = tools(|request| request.called_tool = "now".to_owned());
        let one = tools(|request| {
            request.set_tool_choice(v1::ToolChoice::Required);
            request.parallel_tool_calls = Some(false);
        });
        for (tools, most) in [(required, usize::MAX), (named, 1), (one, 1)] {
            let grammar = grammar(form, &model, &tools, None);
            // What is thought may be long, so it is left out here.
            let grammar = CallGrammar {
                reasoning: None,
                ..grammar
            };
            for seed in 0..12 {
                let begin = if form.is_in_channels() {
                    "<|channel|>commentary to"
                } else {
                    ""
                };
                let tokens = model.walk(&grammar.lark(), begin, seed);
                let read = model.read(&reading(&grammar), &tokens);
                assert!(
                    (1..=most).contains(&read.calls.len()),
                    "{}: {read:?}",
                    form.name
                );
                assert_eq!(read.content, "", "{}", form.name);
                read.check();
            }
        }
    }
}

#[test]
fn a_call_once_begun_is_held_to_its_tool() {
    for (form, model) in all_forms() {
        let tools = tools(|request| request.parallel_tool_calls = Some(false));
        let grammar = grammar(form, &model, &tools, None);
        for seed in 0..8 {
            let tokens = model.walk(&grammar.lark(), opening(form), seed);
            let read = model.read(&reading(&grammar), &tokens);
            assert_eq!(read.calls.len(), 1, "{}: {read:?}", form.name);
            read.check();
        }
    }
}

/// Returns whether `text` may be the whole output.
fn is_allowed(model: &Model, spec: &GrammarSpec, text: &str) -> bool {
    let grammar = model.grammars.compile(spec);
    let mut state = grammar
        .unwrap_or_else(|error| panic!("{error}: {spec:?}"))
        .start();
    let tokens = model.text.tokens(text, false, usize::MAX).expect("tokens");
    for &token in &tokens {
        if state.fitting(&[token]) == 0 {
            return false;
        }
        state.push(token);
    }
    model.allowed(&*state).contains(&END)
}

#[test]
fn text_is_free_where_no_call_must_come() {
    for (form, model) in all_forms() {
        let tools = tools(|_| {});
        let spec = grammar(form, &model, &tools, None).lark();
        let allowed = |text: &str| is_allowed(&model, &spec, text);
        if form.is_in_channels() {
            assert!(allowed(
                "<|channel|>analysis<|message|>Hm <tool_call>.<|end|><|start|>assistant<|channel|>final<|message|>Yes."
            ));
            assert!(!allowed(
                "<|channel|>commentary to=functions.other <|constrain|>json<|message|>{}"
            ));
            continue;
        }
        for text in [
            "Hello, 1 < 2 é日本.\n\n<tool",
            "",
            " ",
            "<think>I may <tool_call> [TOOL_CALLS] {</think>\n\nYes.",
        ] {
            // A mark that is a token cannot stand in a text.
            if form.name == "llama-3" || !text.contains("TOOL") || model.special.is_empty() {
                assert!(allowed(text), "{}: {text:?}: {spec:?}", form.name);
            }
        }
        let other = opening(form).to_owned() + "\n{\"name\": \"other\", \"arguments\": {}}";
        assert!(!allowed(&other), "{}", form.name);
    }
}

#[test]
fn what_else_the_output_follows_comes_after_reasoning_or_in_place_of_a_call() {
    let none = Tools::default();
    let some = tools(|_| {});
    for spec in [
        GrammarSpec::JsonSchema(json!({"enum": ["yes/no"]}).to_string()),
        GrammarSpec::Regex("\"yes/no\"".to_owned()),
        GrammarSpec::Choice(vec!["\"yes/no\"".to_owned()]),
        GrammarSpec::Lark("start: \"\\\"yes/no\\\"\"".to_owned()),
    ] {
        for (form, model) in all_forms() {
            let of = |tools| grammar(form, &model, tools, Some(&spec)).lark();
            let (without, with) = (of(&none), of(&some));
            let think = |text: &str| {
                if form.is_in_channels() {
                    format!(
                        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>{text}"
                    )
                } else {
                    format!("<think>Hm.</think>\n{text}")
                }
            };
            for grammar in [&without, &with] {
                let allowed = |text: &str| is_allowed(&model, grammar, text);
                assert!(allowed(&think("\"yes/no\"")), "{}: {grammar:?}", form.name);
                assert!(!allowed(&think("no")), "{}", form.name);
                if !form.is_in_channels() {
                    assert!(allowed("\"yes/no\""), "{}: {grammar:?}", form.name);
                    assert!(!allowed("yes"), "{}", form.name);
                }
            }
        }
    }
}
