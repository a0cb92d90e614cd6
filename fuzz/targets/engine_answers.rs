//! Fuzzes the parsing of SGLang's and vLLM's responses: each is refused, or yields the requested number of rows, whose
//! tokens are in the vocabulary.

#![no_main]

use std::time::{Duration, Instant};

use engines::engine::ModelSizes;
use engines::{
    RemoteEngine, ScoreRequest, ScoredSequence, ScoringEngine, ScoringError, Sglang, Vllm,
    VllmRoute,
};
use libfuzzer_sys::{Corpus, fuzz_target};
use outrider_fuzz::fake_engine::FAKE_ENGINE;
use outrider_fuzz::input::EngineAnswers;
use outrider_fuzz::memory::grown_by;
use speculation::certificate::PartialRow;

const MODEL: ModelSizes = ModelSizes {
    vocab_size: 4096,
    context_len: 506,
};
const TOKENS: [u32; 6] = [1, 749, 858, 273, 569, 14];
const COMMITTED: usize = 4;

/// Far longer than a response takes, and far more memory than an input of a few KiB may take.
const PATIENCE: Duration = Duration::from_secs(5);
const MOST_BYTES: u64 = 64 << 20;

fuzz_target!(|bytes: &[u8]| -> Corpus {
    let Some(answers) = EngineAnswers::read(bytes) else {
        return Corpus::Reject;
    };
    FAKE_ENGINE.play(answers.script);
    let began = Instant::now();
    let ((), grown) = grown_by(|| ask(answers.route));
    assert!(grown <= MOST_BYTES, "{grown} bytes for {}", bytes.len());
    // One that was put off is asked again until the deadline, and no longer.
    assert!(began.elapsed() < 2 * PATIENCE, "{:?}", began.elapsed());
    Corpus::Keep
});

/// Sends one request to the engine, and checks its result against the request.
fn ask(route: u8) {
    let connection = FAKE_ENGINE.connection();
    let name = || "served".to_owned();
    let nothing = [vec![], vec![], vec![]];
    let asked = [vec![5], vec![9], vec![5, 9]];
    match route {
        0 => rows(&Sglang::new(connection, MODEL, true), &[&asked]),
        1 => rows(&Sglang::new(connection, MODEL, true), &[&asked, &nothing]),
        2 => rows(
            &Vllm::new(connection, name(), MODEL, VllmRoute::Generate),
            &[&nothing],
        ),
        3 => rows(
            &Vllm::new(connection, name(), MODEL, VllmRoute::Generate),
            &[&asked],
        ),
        4 => rows(
            &Vllm::new(connection, name(), MODEL, VllmRoute::Completions),
            &[&nothing],
        ),
        5 => {
            let engine = Sglang::new(connection, MODEL, true);
            let _ = engine.tokens_of("Once upon a time", soon());
        }
        6 => {
            let engine = Vllm::new(connection, name(), MODEL, VllmRoute::Generate);
            let _ = engine.tokens_of("Once upon a time", soon());
        }
        7 => {
            let _ = RemoteEngine::Sglang.probe(connection, MODEL.vocab_size);
        }
        _ => {
            // Short rows: else an answer would have to hold thousands of entries.
            let _ = RemoteEngine::Vllm.probe(connection, 4);
        }
    }
}

fn soon() -> Instant {
    Instant::now() + PATIENCE
}

fn rows<'a>(engine: &dyn ScoringEngine, asked: &[&'a [Vec<u32>; 3]]) {
    let sequence = |asked: &&'a [Vec<u32>; 3]| ScoredSequence {
        tokens: &TOKENS,
        committed: COMMITTED,
        asked: &asked[..],
        salt: "a tenant's",
    };
    let sequences: Vec<_> = asked.iter().map(sequence).collect();
    let scoring = ScoreRequest {
        sequences: &sequences,
        top: 2,
    };
    let scored: Result<Vec<Vec<PartialRow>>, ScoringError> = engine.score(&scoring, soon());
    let Ok(scored) = scored else {
        return;
    };
    assert_eq!(scored.len(), sequences.len());
    for rows in &scored {
        assert_eq!(rows.len(), sequences[0].rows());
        for likely in rows.iter().flat_map(PartialRow::known) {
            assert!((likely.token as usize) < MODEL.vocab_size);
            assert!(likely.logprob <= 1e-3, "{}", likely.logprob);
        }
    }
}
