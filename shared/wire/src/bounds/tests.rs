use tonic::Code;

use super::*;
use crate::status::names_field;
use crate::v1::{ChatMessage, GenerateRequest, Grammar, LogitBias, SamplingParams};

/// A request with `count` items in one list, or a text of as many bytes; a list has the name of its field and of its items.
fn with(field: &str, items: &str, count: usize) -> GenerateRequest {
    let of = |name: &str, what: &str| {
        if (name, what) == (field, items) {
            count
        } else {
            0
        }
    };
    // A text of over 16,383 bytes stands behind its tag and its length in three bytes.
    let text = |name: &str| (of(name, "bytes") > 0).then(|| "x".repeat(count - 4));
    let grammar = text(grammar::FIELD).map(|lark| Grammar {
        lark,
        ..Default::default()
    });
    let sampling = SamplingParams {
        grammar,
        logit_bias: vec![LogitBias::default(); of("logit_bias", "entries")],
        // Of one byte, and of three.
        banned_token_ids: vec![7; of("banned_token_ids", "entries")],
        allowed_token_ids: vec![100_000; of("allowed_token_ids", "entries")],
        ..Default::default()
    };
    let mut messages = vec![ChatMessage::default(); of("messages", "turns")];
    let calls = of("messages", "calls");
    messages.extend((calls > 0).then(|| ChatMessage {
        tool_calls: vec![v1::ToolCall::default(); calls],
        ..Default::default()
    }));
    let mut tools = vec![v1::Tool::default(); of("tools", "tools")];
    tools.extend(text("tools").map(|description| v1::Tool {
        description,
        ..Default::default()
    }));
    GenerateRequest {
        messages,
        tools,
        stop: vec![String::new(); of("stop", "texts")],
        stop_token_ids: vec![1; of("stop_token_ids", "tokens")],
        sampling: Some(sampling),
        ..Default::default()
    }
}

fn checked(message: &[u8]) -> Result<(), Status> {
    check(message, of_type::<GenerateRequest>())
}

#[test]
fn a_list_may_be_as_long_as_its_limit_and_no_longer() {
    let lists = OF_GENERATE_REQUEST.iter();
    let objects = ["settings", "template_arguments"];
    for bound in lists.filter(|bound| !objects.contains(&bound.field)) {
        let (field, most, items) = (bound.field, bound.most, bound.items);
        checked(&with(field, items, most).encode_to_vec()).expect(field);
        let refused = checked(&with(field, items, most + 1).encode_to_vec()).expect_err(field);
        assert_eq!(refused.code(), Code::InvalidArgument);
        assert!(names_field(&refused, field));
        let found = most + 1;
        let said = format!("{field}: {found} {items}, expected at most {most}");
        assert_eq!(refused.message(), said);
    }
}

#[test]
fn objects_are_counted_and_weighed() {
    let of = |field: &str, count: usize, text: usize| {
        let value = prost_types::Value {
            kind: Some(prost_types::value::Kind::StringValue("x".repeat(text))),
        };
        let fields = (0..count).map(|at| (at.to_string(), value.clone()));
        let object = Some(prost_types::Struct {
            fields: fields.collect(),
        });
        let mut request = GenerateRequest::default();
        match field {
            "settings" => request.settings = object,
            _ => request.template_arguments = object,
        }
        checked(&request.encode_to_vec())
    };
    for field in ["settings", "template_arguments"] {
        of(field, 64, 1).expect("as many as there may be");
        for (refused, said) in [
            (of(field, 65, 1), "65 entries, expected at most 64"),
            (of(field, 1, 4_096), "4108 bytes, expected at most 4096"),
        ] {
            assert_eq!(
                refused.expect_err(said).message(),
                format!("{field}: {said}")
            );
        }
    }
}

#[test]
fn numbers_that_come_one_by_one_are_counted_too() {
    // Field 11, a number, in two bytes each.
    let of = |count| [11 << 3, 1].repeat(count);
    let decoded = GenerateRequest::decode(&*of(62)).expect("a message");
    assert_eq!(decoded.stop_token_ids.len(), 62);
    checked(&of(62)).expect("in order");
    let refused = checked(&of(63)).expect_err("too many");
    assert!(names_field(&refused, "stop_token_ids"));
}

#[test]
fn what_comes_in_pieces_is_counted_together() {
    let half = with("logit_bias", "entries", MAX_LOGIT_BIAS / 2 + 1).encode_to_vec();
    checked(&half).expect("in order");
    let twice = half.repeat(2);
    let decoded = GenerateRequest::decode(&*twice).expect("a message");
    let merged = decoded.sampling.expect("both").logit_bias.len();
    assert_eq!(merged, MAX_LOGIT_BIAS + 2);
    let refused = checked(&twice).expect_err("too many");
    assert!(names_field(&refused, "logit_bias"));
}

#[test]
fn what_is_no_list_of_the_request_is_not_counted() {
    // An unknown group with fields of the number of `messages` within, and an unknown field.
    let mut group = vec![0xa3, 0x06];
    group.extend([0xe2, 0x01, 0x00].repeat(2_000));
    group.extend([0xa4, 0x06]);
    group.extend([0xaa, 0x06, 0x00].repeat(2_000));
    let decoded = GenerateRequest::decode(&*group).expect("a message");
    assert!(decoded.messages.is_empty());
    checked(&group).expect("in order");
    let prompt = v1::TokenIds {
        ids: vec![1; 1 << 20],
    };
    let long = GenerateRequest {
        prompt: Some(v1::generate_request::Prompt::TokenIds(prompt)),
        ..Default::default()
    };
    checked(&long.encode_to_vec()).expect("as long as the message");
}

#[test]
fn what_cannot_be_decoded_is_refused_and_nothing_panics() {
    let whole = with("messages", "turns", 3).encode_to_vec();
    for cut in 0..whole.len() {
        let cut = &whole[..cut];
        let is_decoded = GenerateRequest::decode(cut).is_ok();
        assert_eq!(checked(cut).is_ok(), is_decoded, "{cut:?}");
    }
    // A group that never ends, one that never began, a number of eleven bytes, field 0.
    for wrong in [&[0xa3, 0x06][..], &[0xa4, 0x06], &[0xff; 11], &[0, 0]] {
        assert!(GenerateRequest::decode(wrong).is_err());
        let refused = checked(wrong).expect_err("no message");
        assert_eq!(refused.code(), Code::Internal);
    }
}

#[test]
fn answers_and_the_messages_of_peers_have_no_bounds() {
    assert!(of_type::<v1::GenerateResponse>().is_empty());
    assert!(of_type::<v1::SessionRequest>().is_empty());
}
