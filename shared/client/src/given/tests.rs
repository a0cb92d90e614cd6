use super::*;

fn chunk(tokens: &[u32]) -> v1::Chunk {
    let pieces: Vec<String> = tokens.iter().map(|token| format!("<{token}>")).collect();
    let logprobs = tokens.iter().map(|&token| logprob(token));
    v1::Chunk {
        text: pieces.concat(),
        token_ids: tokens.to_vec(),
        origins: tokens.iter().map(|&token| token as i32).collect(),
        pieces,
        logprobs: logprobs.collect(),
        ..Default::default()
    }
}

fn tail(text: &str) -> v1::Chunk {
    v1::Chunk {
        text: text.to_owned(),
        ..Default::default()
    }
}

fn logprob(token: u32) -> v1::TokenLogprobs {
    v1::TokenLogprobs {
        logprob: -(token as f32),
        ..Default::default()
    }
}

fn given(chunks: &[&[u32]]) -> GivenParts {
    let mut given = GivenParts::default();
    for tokens in chunks {
        assert_eq!(given.chunk(chunk(tokens)), Ok(Some(chunk(tokens))));
    }
    given.again();
    given
}

/// However the answer is cut into chunks the second time, what comes out are the tokens behind those given out, each
/// with what belongs to it.
#[test]
fn what_was_given_out_is_left_out_wherever_chunks_are_cut() {
    let all = [1, 2, 3, 4, 5, 6];
    for known in 0..=all.len() {
        for size in 1..=all.len() {
            let mut given = given(&[&all[..known]]);
            let mut new = v1::Chunk::default();
            for tokens in all.chunks(size) {
                let Some(part) = given.chunk(chunk(tokens)).expect("equal tokens") else {
                    continue;
                };
                assert!(!part.token_ids.is_empty());
                new.text += &part.text;
                new.token_ids.extend(part.token_ids);
                new.origins.extend(part.origins);
                new.pieces.extend(part.pieces);
                new.logprobs.extend(part.logprobs);
            }
            assert_eq!(new, chunk(&all[known..]), "{known} known, chunks of {size}");
            assert_eq!((given.check_end(), given.tokens()), (Ok(()), 6));
        }
    }
}

#[test]
fn another_token_is_named_with_its_position() {
    let mut known = given(&[&[1, 2], &[3]]);
    assert_eq!(known.chunk(chunk(&[1])), Ok(None));
    let other = OtherTokens {
        position: 2,
        given: 3,
        found: Some(9),
    };
    assert_eq!(known.chunk(chunk(&[2, 9, 4])), Err(other));
    assert!(
        other
            .to_string()
            .contains("output token 2 is 9, and it was 3")
    );
    let mut short = given(&[&[1, 2]]);
    assert_eq!(short.chunk(chunk(&[1])), Ok(None));
    let missing = OtherTokens {
        position: 1,
        given: 2,
        found: None,
    };
    assert_eq!(short.check_end(), Err(missing));
    assert!(missing.to_string().contains("is missing"));
}

/// The second loss may come while what was given out is still repeated.
#[test]
fn nothing_is_forgotten_by_a_second_loss() {
    let mut known = given(&[&[1, 2, 3]]);
    assert_eq!(known.chunk(chunk(&[1, 2])), Ok(None));
    known.again();
    let new = known.chunk(chunk(&[1, 2, 3, 4]));
    assert_eq!(new, Ok(Some(chunk(&[4]))));
}

#[test]
fn text_behind_the_last_token_comes_once() {
    let mut known = GivenParts::default();
    assert_eq!(known.chunk(chunk(&[1])), Ok(Some(chunk(&[1]))));
    assert_eq!(known.chunk(tail("né")), Ok(Some(tail("né"))));
    known.again();
    assert_eq!(known.chunk(chunk(&[1])), Ok(None));
    assert_eq!(known.chunk(tail("né")), Ok(None));
    let mut known = given(&[&[1]]);
    assert_eq!(known.chunk(chunk(&[1])), Ok(None));
    assert_eq!(known.chunk(tail("né")), Ok(Some(tail("né"))));
}

#[test]
fn of_the_prompt_each_token_comes_once_with_its_own_log_probability() {
    let part = |tokens: &[u32], scored: &[u32]| v1::PromptPart {
        token_ids: tokens.to_vec(),
        logprobs: scored.iter().map(|&token| logprob(token)).collect(),
    };
    let mut known = GivenParts::default();
    let first = part(&[7, 8], &[8]);
    assert_eq!(known.prompt(first.clone()), Some(first.clone()));
    known.again();
    assert_eq!(known.prompt(part(&[7], &[])), None);
    assert_eq!(known.prompt(part(&[8, 9], &[8, 9])), Some(part(&[9], &[9])));
    known.again();
    let whole = part(&[7, 8, 9, 10], &[8, 9, 10]);
    assert_eq!(known.prompt(whole), Some(part(&[10], &[10])));
}

#[test]
fn rounds_without_new_tokens_are_not_reported_again() {
    let round = |base_len, emitted| v1::RoundReport {
        base_len,
        emitted,
        ..Default::default()
    };
    let mut known = GivenParts::default();
    // A round without tokens is reported too.
    let reports = [round(0, 3), round(3, 0), round(3, 2)];
    assert_eq!(reports.map(|report| known.is_new(&report)), [true; 3]);
    known.again();
    let reports = [round(0, 4), round(4, 1), round(4, 2)];
    assert_eq!(
        reports.map(|report| known.is_new(&report)),
        [false, false, true]
    );
}

/// What a token completed goes with it.
#[test]
fn parts_of_tokens_that_were_given_out_are_given_out_once() {
    let part = |token: u32, part: Part| v1::OutputPart {
        part: Some(part),
        token,
    };
    let whole = v1::Chunk {
        text: "a".to_owned(),
        parts: vec![
            part(0, Part::Content("a".to_owned())),
            part(1, Part::Call(v1::ToolCall::default())),
            part(2, Part::Arguments("{}".to_owned())),
        ],
        ..chunk(&[1, 2, 3])
    };
    let mut known = GivenParts::default();
    let first = v1::Chunk {
        parts: whole.parts[..1].to_vec(),
        text: "a".to_owned(),
        ..chunk(&[1])
    };
    assert_eq!(known.chunk(first.clone()), Ok(Some(first)));
    known.again();
    let rest = known
        .chunk(whole)
        .expect("the same tokens")
        .expect("more of them");
    assert_eq!(rest.text, "");
    let parts: Vec<_> = rest.parts.iter().map(|part| part.token).collect();
    assert_eq!((rest.token_ids, parts), (vec![2, 3], vec![0, 1]));
}
