//! The format against what files go through: copies cut short, bits flipped, other files.

use super::*;
use speculation::confidence::Confidence;

const VOCAB: u32 = 8;

fn probs(probabilities: &[f32], unscaled: Option<&[f32]>) -> RecordedDistribution {
    RecordedDistribution {
        probabilities: probabilities.into(),
        unscaled: unscaled.map(Into::into),
        confidence: Confidence {
            max: 0.5,
            entropy: 1.25,
        },
    }
}

fn block(prompt: u32) -> RecordedBlock {
    let position = RecordedPosition {
        ids: vec![1, 3, 7],
        draft: probs(&[0.5, 0.25, 0.125], Some(&[0.25, 0.5, 0.125])),
        target: probs(&[0.5, 0.0, 0.5], Some(&[0.5, 0.25, 0.25])),
        rest: vec![Rest {
            draft: 0.125,
            draft_unscaled: 0.125,
            cross_entropy: f32::INFINITY,
            ..Rest::default()
        }],
    };
    RecordedBlock {
        prompt,
        kind: "story".to_owned(),
        base_len: 300,
        drafts: vec![1, 3],
        positions: vec![position.clone(), position],
        accepted: 1,
    }
}

fn header() -> v1::RecordingHeader {
    v1::RecordingHeader {
        model: "default".to_owned(),
        vocab_size: VOCAB,
        sampling: Some(v1::SamplingParams {
            temperature: Some(0.5),
            ..Default::default()
        }),
        draft_len: 2,
        ..Default::default()
    }
}

fn file(blocks: impl IntoIterator<Item = RecordedBlock>) -> Vec<u8> {
    let mut file = header_bytes(header());
    file.extend(blocks.into_iter().flat_map(block_bytes));
    file
}

fn read(bytes: &[u8]) -> Result<Vec<RecordedBlock>, BadRecording> {
    let mut reader = RecordingReader::new(bytes)?;
    let mut blocks = Vec::new();
    while let Some(block) = reader.next_block()? {
        blocks.push(block);
    }
    Ok(blocks)
}

#[test]
fn what_is_written_is_read_and_is_one_message_of_protobuf() {
    let written: Vec<_> = (0..3).map(block).collect();
    let file = file(written.clone());
    assert_eq!(read(&file).expect("a recording"), written);
    let reader = RecordingReader::new(&file[..]).expect("a recording");
    assert_eq!(
        (reader.header().vocab_size, reader.header().version),
        (VOCAB, 1)
    );
    let whole = v1::Recording::decode(&file[..]).expect("one message");
    assert_eq!(whole.blocks.len(), 3);
    assert_eq!(whole.header.as_ref(), Some(reader.header()));
}

#[test]
fn cut_short_anywhere_it_is_an_error_or_whole_blocks() {
    let header_len = header_bytes(header()).len();
    let block_len = block_bytes(block(7)).len();
    let file = file([block(7), block(8), block(9)]);
    let mut clean = 0;
    for len in 0..=file.len() {
        let whole = len.checked_sub(header_len).map(|len| len / block_len);
        match (read(&file[..len]), whole) {
            (Ok(blocks), Some(whole)) => {
                clean += 1;
                assert_eq!((blocks.len(), len), (whole, header_len + whole * block_len));
            }
            (Err(BadRecording::Other(_)), None) => {}
            (Err(BadRecording::CutShort { block, at }), Some(whole)) => {
                assert_eq!(block, whole as u64 + 1);
                assert_eq!(at, (header_len + whole * block_len) as u64);
            }
            (outcome, _) => panic!("{len} bytes: {outcome:?}"),
        }
    }
    assert_eq!(clean, 4);
}

/// What a changed byte leaves is refused or holds distributions; evaluation relies on it.
#[test]
fn a_changed_byte_never_gets_past_the_checks_as_something_else() {
    let file = file([block(0)]);
    let mut refused = 0;
    for at in 0..file.len() {
        for flip in [0x01, 0x10, 0x80, 0xff] {
            let mut file = file.clone();
            file[at] ^= flip;
            match read(&file) {
                Ok(blocks) => {
                    for block in blocks {
                        assert_eq!(block.check(VOCAB, true), Ok(()));
                    }
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > file.len(), "{refused} of {}", 4 * file.len());
}

#[test]
fn a_file_that_is_no_recording_or_of_another_version_says_so() {
    for bytes in [
        &b""[..],
        b"\n",
        b"{\"prompt\": 1}\n",
        b"\n\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\n\x05hello",
    ] {
        let error = RecordingReader::new(bytes).expect_err("refused");
        assert!(matches!(error, BadRecording::Other(_)), "{error}");
    }
    let later = v1::Recording {
        header: Some(v1::RecordingHeader {
            format: FORMAT.to_owned(),
            version: 2,
            ..header()
        }),
        blocks: Vec::new(),
    };
    let error = RecordingReader::new(&later.encode_to_vec()[..]).expect_err("refused");
    assert!(
        error.to_string().contains("version 2 of the format"),
        "{error}"
    );
}

#[test]
fn what_cannot_come_from_two_models_is_refused_by_field() {
    type Fault = fn(&mut RecordedBlock);
    let faults: [(&str, Fault); 16] = [
        ("draft_token_ids", |block| {
            block.drafts.clear();
            block.positions.clear();
        }),
        ("positions:", |block| block.drafts.push(1)),
        ("accepted", |block| block.accepted = 3),
        ("[0].rest: 3 groups", |block| {
            block.positions[0].rest = vec![Rest::default(); 3];
        }),
        ("rest.cross_entropy: NaN", |block| {
            block.positions[0].rest[0].cross_entropy = f32::NAN;
        }),
        ("[1].token_ids", |block| block.positions[1].ids[2] = VOCAB),
        ("[0].token_ids", |block| block.positions[0].ids.swap(0, 1)),
        ("token 4 is missing", |block| block.drafts[0] = 4),
        ("no mass", |block| {
            block.positions[0].draft.probabilities = vec![0.0, 0.75, 0.125];
        }),
        ("[0].draft.probabilities: NaN", |block| {
            block.positions[0].draft.probabilities[0] = f32::NAN;
        }),
        ("target.probabilities: -0.5", |block| {
            block.positions[0].target.probabilities[1] = -0.5;
        }),
        ("add up to", |block| {
            block.positions[1].target.probabilities[1] = 0.25;
        }),
        ("unscaled: 2 for 3", |block| {
            block.positions[0].draft.unscaled = Some(vec![0.5; 2]);
        }),
        ("unscaled: missing", |block| {
            block.positions[0].target.unscaled = None;
        }),
        ("max_probability", |block| {
            block.positions[0].target.confidence.max = 0.0;
        }),
        ("entropy", |block| {
            block.positions[0].draft.confidence.entropy = f32::INFINITY;
        }),
    ];
    for (named, fault) in faults {
        let mut faulty = block(0);
        fault(&mut faulty);
        let error = read(&file([block(1), faulty])).expect_err(named);
        let error = error.to_string();
        assert!(error.starts_with("block 2, at byte"), "{error}");
        assert!(error.contains(named), "{named}: {error}");
    }
}
