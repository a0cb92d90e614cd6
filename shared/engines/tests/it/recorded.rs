//! Answers of real engines, as `tests/engines/engine capture` recorded them: SGLang 0.5.23 and vLLM 0.32.0 with the
//! built-in target in f32.

use engines::engine::ModelSizes;
use engines::{ScoreRequest, ScoredSequence, ScoringEngine, ScoringError, Sglang, Vllm, VllmRoute};
use serde_json::Value;
use speculation::TokenId;
use speculation::certificate::PartialRow;

use crate::stub::{Response, Stub, soon};

/// What was asked for.
const TOKENS: [TokenId; 6] = [1, 749, 858, 273, 569, 14];
const COMMITTED: usize = 4;
const TOP: usize = 2;

const MODEL: ModelSizes = ModelSizes {
    vocab_size: 4096,
    context_len: 506,
};

pub(crate) fn recorded(name: &str) -> Value {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recorded");
    let file = std::fs::read_to_string(format!("{folder}/{name}.json")).expect(name);
    serde_json::from_str(&file).expect("JSON")
}

/// A server that answers as the engine did.
fn engine_of(name: &str) -> Stub {
    let recorded = recorded(name);
    Stub::new(move |_, _| Response {
        status: recorded["status"].as_u64().expect("a status") as u16,
        ..Response::json(&recorded["said"])
    })
}

/// The tokens of `list`, and their log probabilities, in SGLang's answers.
fn entries(list: &Value) -> Vec<(TokenId, f64)> {
    let list = list.as_array().expect("entries").iter();
    list.map(|entry| {
        let token = entry[1].as_u64().expect("a token") as TokenId;
        (token, entry[0].as_f64().expect("a log probability"))
    })
    .collect()
}

/// That `row` knows what the lists say, and nothing else.
fn assert_row(row: &PartialRow, likely: &Value, asked: &Value) {
    let mut expected = entries(likely);
    assert_eq!(expected.len(), TOP);
    assert_eq!(row.ceiling(), expected[TOP - 1].1);
    expected.extend(entries(asked));
    let known: Vec<(TokenId, f64)> = row
        .known()
        .iter()
        .map(|likely| (likely.token, likely.logprob))
        .collect();
    assert_eq!(known.len(), expected.len());
    assert!(expected.iter().all(|entry| known.contains(entry)));
}

/// That the rows of a sequence are those of its recorded answer.
fn assert_rows(rows: &[PartialRow], answer: &Value) {
    let meta = &answer["meta_info"];
    for (at, row) in rows.iter().enumerate() {
        let (likely, asked) = if at + 1 < rows.len() {
            let [likely, asked] = ["input_top_logprobs", "input_token_ids_logprobs"];
            (&meta[likely][at + 1], &meta[asked][at + 1])
        } else {
            let [likely, asked] = ["output_top_logprobs", "output_token_ids_logprobs"];
            (&meta[likely][0], &meta[asked][0])
        };
        assert_row(row, likely, asked);
    }
}

fn one_sequence(asked: &[Vec<TokenId>]) -> ScoredSequence<'_> {
    ScoredSequence {
        tokens: &TOKENS,
        committed: COMMITTED,
        asked,
        salt: "",
    }
}

#[test]
fn sglangs_round_is_read() {
    let asked = [vec![5], vec![9], vec![5, 9]];
    let scoring = ScoreRequest {
        sequences: &[one_sequence(&asked)],
        top: TOP,
    };
    let stub = engine_of("sglang-round");
    let rows = Sglang::new(stub.connection(), MODEL, true).score(&scoring, soon());
    let rows = rows.expect("rows");
    assert_eq!((rows.len(), rows[0].rows.len()), (1, 3));
    assert_rows(&rows[0].rows, &recorded("sglang-round")["said"]);
    assert_eq!(rows[0].cached_tokens, 1);
}

#[test]
fn sglangs_round_of_two_sessions_is_read() {
    let asked = [vec![5], vec![9], vec![5, 9]];
    let nothing = [vec![]];
    let other = ScoredSequence {
        tokens: &TOKENS[..COMMITTED],
        committed: COMMITTED,
        asked: &nothing,
        salt: "",
    };
    let scoring = ScoreRequest {
        sequences: &[one_sequence(&asked), other],
        top: TOP,
    };
    let stub = engine_of("sglang-round-of-two-sessions");
    let rows = Sglang::new(stub.connection(), MODEL, true).score(&scoring, soon());
    let rows = rows.expect("rows");
    assert_eq!((rows[0].rows.len(), rows[1].rows.len()), (3, 1));
    let answers = recorded("sglang-round-of-two-sessions");
    for (rows, answer) in rows.iter().zip(answers["said"].as_array().expect("two")) {
        assert_rows(&rows.rows, answer);
    }
}

#[test]
fn sglangs_refusal_of_an_id_is_a_refusal() {
    let asked = [vec![5], vec![9], vec![5, 9]];
    let scoring = ScoreRequest {
        sequences: &[one_sequence(&asked)],
        top: TOP,
    };
    let stub = engine_of("sglang-an-id-out-of-range");
    let error = Sglang::new(stub.connection(), MODEL, true).score(&scoring, soon());
    assert!(matches!(error, Err(ScoringError::Status(400))), "{error:?}");
}

/// That the rows know what vLLM said of each token after the committed ones.
fn assert_prompt_logprobs(rows: &[PartialRow], said: &Value) {
    assert_eq!(rows.len(), 3);
    for (at, row) in rows.iter().enumerate() {
        let said = said[COMMITTED + at].as_object().expect("a row");
        assert_eq!(row.known().len(), said.len());
        for likely in row.known() {
            let entry = &said[&likely.token.to_string()];
            assert_eq!(Some(likely.logprob), entry["logprob"].as_f64());
        }
    }
}

#[test]
fn vllms_most_likely_tokens_are_read_by_either_route() {
    let nothing = vec![vec![]; 3];
    let scoring = ScoreRequest {
        sequences: &[one_sequence(&nothing)],
        top: TOP,
    };
    let stub = engine_of("vllm-completions");
    let engine = Vllm::new(
        stub.connection(),
        "default".to_owned(),
        MODEL,
        VllmRoute::Completions,
    );
    let rows = engine.score(&scoring, soon()).expect("rows");
    let said = &recorded("vllm-completions")["said"]["choices"][0]["prompt_logprobs"];
    assert_prompt_logprobs(&rows[0].rows, said);
    let stub = engine_of("vllm-generate");
    let rows = Vllm::new(
        stub.connection(),
        "served".to_owned(),
        MODEL,
        VllmRoute::Generate,
    )
    .score(&scoring, soon());
    let said = &recorded("vllm-generate")["said"]["prompt_logprobs"];
    assert_prompt_logprobs(&rows.expect("rows")[0].rows, said);
}

#[test]
fn vllms_v1_runner_says_that_it_does_not_score_given_tokens() {
    let asked = [vec![5, 9], vec![7], vec![2, 8]];
    let scoring = ScoreRequest {
        sequences: &[one_sequence(&asked)],
        top: TOP,
    };
    let stub = engine_of("vllm-generate-with-given-tokens");
    let error = Vllm::new(
        stub.connection(),
        "served".to_owned(),
        MODEL,
        VllmRoute::Generate,
    )
    .score(&scoring, soon());
    let error = error.expect_err("a refusal");
    assert!(matches!(error, ScoringError::NotOffered(_)), "{error}");
}
