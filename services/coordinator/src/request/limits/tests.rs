use std::sync::Arc;

use speculation::methods::Asked;
use tokenizers::Tokenizer;
use wire::v1::{PeerDescription, TokenIds};

use crate::text::ChatTemplate;

use super::*;

/// Three words, and a start token that plain text begins with.
const TOKENIZER: &str = r#"{"version": "1.0", "added_tokens": [], "normalizer": null,
    "pre_tokenizer": {"type": "WhitespaceSplit"}, "decoder": null, "truncation": null, "padding": null,
    "post_processor": {"type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "S", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"S": {"id": "S", "ids": [0], "tokens": ["S"]}}},
    "model": {"type": "WordLevel", "unk_token": "a", "vocab": {"S": 0, "a": 1, "b": 2}}}"#;

fn served(template: &str) -> ServedText {
    let chat = ChatTemplate::new(template.to_owned(), "S".to_owned(), String::new());
    ServedText {
        tokenizer: Tokenizer::from_bytes(TOKENIZER).expect("a tokenizer"),
        target: Arc::new(PeerDescription {
            context_len: 4,
            vocab_size: 3,
            ..Default::default()
        }),
        chat: chat.map_err(|error| error.to_string()),
    }
}

fn turn(role: &str, content: &str) -> ChatMessage {
    ChatMessage {
        role: role.to_owned(),
        content: content.to_owned(),
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

#[test]
fn bad_conversations_are_named() {
    let text = served("{{ messages[0].content }}");
    let told = |prompt, messages: &[ChatMessage], text| {
        let error = prompt_tokens(prompt, messages, text).expect_err("refused");
        assert_eq!(error.field, "messages");
        error.to_string()
    };
    let user = [turn("user", "a")];
    for prompt in [
        Prompt::Text("a".to_owned()),
        Prompt::TokenIds(TokenIds { ids: vec![1] }),
    ] {
        assert!(told(Some(prompt), &user, &text).contains("one of them"));
    }
    let nobody = told(None, &[turn("user", "a"), turn("", "a")], &text);
    assert!(nobody.contains("turn 1 has no role"), "{nobody}");
    let many = told(None, &vec![turn("user", "a"); 1025], &text);
    assert!(many.contains("1025") && many.contains("1024"), "{many}");
    let refused = served("\n{{ raise_exception('no') }}");
    assert!(told(None, &user, &refused).contains("line 2"));
    let broken = served("{% if %}");
    assert!(told(None, &user, &broken).contains("line 1"));
}

#[test]
fn max_tokens_must_fit_the_context() {
    let peer = |context_len| v1::PeerDescription {
        context_len,
        ..Default::default()
    };
    let max_tokens = |asked, prompt, context| max_tokens(asked, prompt, &peer(context));
    assert_eq!(max_tokens(None, 12, 512), Ok(256));
    assert_eq!(max_tokens(None, 500, 512), Ok(12));
    assert_eq!(max_tokens(Some(500), 12, 512), Ok(500));
    let error = max_tokens(Some(501), 12, 512)
        .expect_err("too many")
        .to_string();
    assert!(
        error.contains("501") && error.contains("1 to 500"),
        "{error}"
    );
    assert_eq!(
        max_tokens(Some(0), 12, 512).expect_err("none").field,
        "max_tokens"
    );
    let error = max_tokens(None, 512, 512).expect_err("no room");
    assert_eq!(error.field, "prompt");
    assert!(error.to_string().contains("512"), "{error}");
}

#[test]
fn a_prompt_for_an_encoder_takes_no_place_of_the_output() {
    let peer = v1::PeerDescription {
        context_len: 512,
        decoder_start_token_id: Some(0),
        ..Default::default()
    };
    assert_eq!(max_tokens(None, 512, &peer), Ok(256));
    assert_eq!(max_tokens(Some(511), 512, &peer), Ok(511));
    for (asked, prompt, field) in [
        (Some(512), 5, "max_tokens"),
        (Some(0), 5, "max_tokens"),
        (None, 513, "prompt"),
    ] {
        let error = max_tokens(asked, prompt, &peer).expect_err(field);
        assert_eq!(error.field, field);
    }
}

#[test]
fn a_tree_is_for_a_verifier_that_understands_it() {
    let method = |tree| {
        let asked = Asked {
            tree: Some(tree),
            ..Default::default()
        };
        Choice::resolve(&asked, 1.0, false).expect("a method")
    };
    let (chain, comb) = (method(TreeShape::Chain), method(TreeShape::Comb(4)));
    let peer = |trees| v1::PeerDescription {
        model: "x".to_owned(),
        trees,
        ..Default::default()
    };
    assert_eq!(check_trees(&chain, &peer(false)), Ok(()));
    assert_eq!(check_trees(&comb, &peer(true)), Ok(()));
    let bad = check_trees(&comb, &peer(false)).expect_err("of chains");
    assert!(bad.field == "tree" && bad.problem.contains("'x'"), "{bad}");
}

#[test]
fn what_cannot_fit_is_refused_at_sight() {
    assert!(check_bytes(512 * 256, 512).is_ok());
    assert_eq!(
        check_bytes(512 * 256 + 1, 512).expect_err("too long").field,
        "prompt"
    );
}

#[test]
fn laws_that_fit_no_message_are_refused() {
    let method = |proposal| {
        let asked = Asked {
            method: "rejection",
            proposal: Some(proposal),
            ..Default::default()
        };
        Choice::resolve(&asked, 1.0, false).expect("a method")
    };
    let dense = method(ProposalForm::Dense { half: false });
    let half = method(ProposalForm::Dense { half: true });
    let sparse = method(ProposalForm::Sparse { top: 32 });
    assert!(check_rows(&dense, 64, 152_000, false).is_ok());
    let error = check_rows(&dense, 64, 300_000, false).expect_err("74 MiB");
    assert_eq!(error.field, "proposal_form");
    assert!(check_rows(&half, 64, 300_000, false).is_ok());
    assert!(check_rows(&sparse, 64, 300_000, false).is_ok());
    let error = check_rows(&dense, 64, 152_000, true).expect_err("113 MiB");
    assert_eq!(error.field, "report_laws");
    assert!(check_rows(&dense, 4, 152_000, true).is_ok());
}

#[test]
fn stops_are_bounded() {
    assert!(check_stops(&["a".to_owned()]).is_ok());
    assert!(check_stops(&vec!["a".to_owned(); 17]).is_err());
    assert!(check_stops(&[String::new()]).is_err());
    assert!(check_stops(&["a".repeat(257)]).is_err());
}
