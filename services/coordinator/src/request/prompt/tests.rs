use std::sync::Arc;

use speculation::sampling::SamplingParams;
use text::ServedText;
use wire::v1::{PeerDescription, TokenIds, TokenizerPart};

use super::*;

/// Three words, and a start token that plain text begins with.
const TOKENIZER: &str = r#"{"version": "1.0", "added_tokens": [], "normalizer": null,
    "pre_tokenizer": {"type": "WhitespaceSplit"}, "decoder": null, "truncation": null, "padding": null,
    "post_processor": {"type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "S", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"S": {"id": "S", "ids": [0], "tokens": ["S"]}}},
    "model": {"type": "WordLevel", "unk_token": "a", "vocab": {"S": 0, "a": 1, "b": 2}}}"#;

fn served(template: &str) -> Target {
    of_tokenizer(TOKENIZER, template)
}

fn of_tokenizer(tokenizer: &str, template: &str) -> Target {
    let part = TokenizerPart {
        chat_template: template.to_owned(),
        bos_token: "S".to_owned(),
        ..Default::default()
    };
    let text = ServedText::new(tokenizer.as_bytes(), part).expect("a tokenizer");
    let description = PeerDescription {
        context_len: 4,
        vocab_size: 3,
        ..Default::default()
    };
    Target::new(Arc::new(description), Arc::new(text))
}

fn prompt_tokens(
    prompt: Option<Prompt>,
    messages: &[ChatMessage],
    target: &Target,
) -> Result<Vec<TokenId>, BadField> {
    let mut request = v1::GenerateRequest {
        prompt,
        messages: messages.to_vec(),
        ..Default::default()
    };
    let mut calls = Calls::take(&mut request, target, None)?;
    PromptInput::take(&mut request, target, &mut calls)?.tokens(target)
}

fn turn(role: &str, content: &str) -> ChatMessage {
    ChatMessage {
        role: role.to_owned(),
        content: content.to_owned(),
        ..Default::default()
    }
}

#[test]
fn a_conversation_has_the_special_tokens_of_its_template_alone() {
    let text = served("{{ bos_token }} {{ messages[0].content }} {{ messages[1].content }}");
    let messages = [turn("user", "a"), turn("assistant", "b")];
    assert_eq!(prompt_tokens(None, &messages, &text), Ok(vec![0, 1, 2]));
    let plain = Some(Prompt::Text("b".to_owned()));
    assert_eq!(prompt_tokens(plain, &[], &text), Ok(vec![0, 2]));
}

/// Of an empty text there is what a tokenizer adds to any.
#[test]
fn an_empty_text_is_a_prompt_where_the_tokenizer_begins_every_text() {
    let empty = || Some(Prompt::Text(String::new()));
    assert_eq!(prompt_tokens(empty(), &[], &served("")), Ok(vec![0]));
    let adds = TOKENIZER.split_once("\"post_processor\"").expect("one").1;
    let adds = adds.split_once(",\n    \"model\"").expect("a model").0;
    let plain = of_tokenizer(&TOKENIZER.replace(adds, ": null"), "");
    let error = prompt_tokens(empty(), &[], &plain).expect_err("nothing");
    assert_eq!(error.field, "prompt");
    let reported =
        "empty, and the model's tokenizer adds no start token; expected at least one token";
    assert_eq!(error.problem, reported);
}

#[test]
fn bad_conversations_are_named() {
    let text = served("{{ messages[0].content }}");
    let reported = |prompt, messages: &[ChatMessage], text| {
        let error = prompt_tokens(prompt, messages, text).expect_err("refused");
        assert_eq!(error.field, "messages");
        error.to_string()
    };
    let user = [turn("user", "a")];
    for prompt in [
        Prompt::Text("a".to_owned()),
        Prompt::TokenIds(TokenIds { ids: vec![1] }),
    ] {
        assert!(reported(Some(prompt), &user, &text).contains("one of them"));
    }
    let nobody = reported(None, &[turn("user", "a"), turn("", "a")], &text);
    assert!(nobody.contains("turn 1 has no role"), "{nobody}");
    let many = reported(None, &vec![turn("user", "a"); 1025], &text);
    assert!(many.contains("1025") && many.contains("1024"), "{many}");
    let refused = served("\n{{ raise_exception('no') }}");
    assert!(reported(None, &user, &refused).contains("line 2"));
    let broken = served("{% if %}");
    assert!(reported(None, &user, &broken).contains("line 1"));
}

/// A template may write far more than a client has sent.
#[test]
fn a_conversation_laid_out_too_long_is_refused() {
    let text = served("{% for i in range(100000) %}{{ messages[0].content * 1000 }}{% endfor %}");
    let user = [turn("user", "a")];
    let error = prompt_tokens(None, &user, &text).expect_err("too long");
    assert_eq!(error.field, "messages");
    let reported = "the chat template: the prompt has more than 16777216 bytes";
    assert_eq!(error.problem, reported);
}

#[test]
fn of_a_text_longer_than_the_context_it_is_said_so() {
    let long = Some(Prompt::Text("a ".repeat(500)));
    let error = prompt_tokens(long, &[], &served("")).expect_err("too long");
    let reported = "This model's maximum context length is 4 tokens; more tokens are in the prompt alone: shorten it";
    assert_eq!((&error.field[..], &error.problem[..]), ("prompt", reported));
}

#[test]
fn what_cannot_fit_is_refused_at_sight() {
    assert!(check_bytes(512 * 256, 512).is_ok());
    let error = check_bytes(512 * 256 + 1, 512).expect_err("too long");
    assert_eq!(error.field, "prompt");
    assert_eq!(error.reason, Some(wire::status::CONTEXT_LENGTH_EXCEEDED));
}

fn with_calls(role: &str, ids: &[&str], answers: &str) -> ChatMessage {
    let call = |id: &&str| v1::ToolCall {
        id: (*id).to_owned(),
        name: "f".to_owned(),
        arguments: "{}".to_owned(),
    };
    ChatMessage {
        tool_calls: ids.iter().map(call).collect(),
        tool_call_id: answers.to_owned(),
        ..turn(role, "a")
    }
}

#[test]
fn calls_and_answers_that_do_not_belong_together_are_refused_by_their_turn() {
    let called = || with_calls("assistant", &["1", "2"], "");
    let text = served("{# tools <tool_call> #}{{ messages[1].name }}");
    let answered = prompt_tokens(None, &[called(), with_calls("tool", &[], "2")], &text);
    // The name is the tool's: `f` is no word of this tokenizer, and `a` stands for all that are none.
    assert_eq!(answered, Ok(vec![1]));
    // Some clients give none.
    let named = ChatMessage {
        name: "a".to_owned(),
        ..turn("user", "a")
    };
    let without_ids = [with_calls("assistant", &["", ""], ""), named];
    assert_eq!(prompt_tokens(None, &without_ids, &text), Ok(vec![1]));
    for (messages, words) in [
        (
            vec![with_calls("tool", &[], "1"), called()],
            "turn 0 answers the call '1'",
        ),
        (
            vec![called(), with_calls("tool", &[], "3")],
            "turn 1 answers the call '3'",
        ),
        (
            vec![with_calls("assistant", &["1", "1"], "")],
            "turn 0 has two calls with the id '1'",
        ),
        (
            vec![with_calls("user", &["1"], "")],
            "turn 0 has calls, which only an assistant makes",
        ),
    ] {
        let refused = prompt_tokens(None, &messages, &text).expect_err(words);
        assert_eq!(refused.field, "messages");
        assert!(refused.problem.contains(words), "{}", refused.problem);
    }
}

#[test]
fn tools_are_told_as_the_template_takes_them() {
    let tool = v1::Tool {
        name: "f".to_owned(),
        ..Default::default()
    };
    let asked = |template: &str| {
        let target = served(template);
        let mut request = v1::GenerateRequest {
            messages: vec![turn("user", "a")],
            tools: vec![tool.clone()],
            ..Default::default()
        };
        let mut calls = Calls::take(&mut request, &target, None).expect("in order");
        let prompt = PromptInput::take(&mut request, &target, &mut calls).expect("a prompt");
        (
            prompt.text().expect("a text").to_owned(),
            calls.warnings.len(),
        )
    };
    let (prompt, warnings) =
        asked("<tool_call>{{ tools[0].function.name }}{{ messages | length }}");
    assert_eq!((&*prompt, warnings), ("<tool_call>f1", 0));
    // A template that knows none has them in the system message.
    let (prompt, warnings) = asked("{{ messages[0].role }} {{ messages[0].content }}");
    assert!(
        prompt.starts_with("system You can call") && prompt.contains("\"name\":\"f\""),
        "{prompt}"
    );
    assert_eq!(warnings, 1);
}

#[test]
fn where_the_engine_follows_no_grammar_calls_are_free_or_refused() {
    let mut target = served("{{ messages[0].content }}");
    let mut description = PeerDescription::clone(&target.description);
    description.rows_are_parts = true;
    target.description = Arc::new(description);
    let constrained = |choice| {
        let mut request = v1::GenerateRequest {
            messages: vec![turn("user", "a")],
            tools: vec![v1::Tool {
                name: "f".to_owned(),
                ..Default::default()
            }],
            ..Default::default()
        };
        request.set_tool_choice(choice);
        let mut calls = Calls::take(&mut request, &target, None).expect("in order");
        let mut params = SamplingParams::default();
        let constrained = calls.constrain(&mut params, false, &target);
        constrained.map(|()| (params.grammar.is_none(), calls.warnings.len()))
    };
    assert_eq!(constrained(v1::ToolChoice::Auto), Ok((true, 2)));
    let refused = constrained(v1::ToolChoice::Required).expect_err("a call cannot be required");
    assert_eq!(refused.field, "sampling.grammar");
}
