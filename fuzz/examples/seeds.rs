//! Writes the inputs that fuzzing begins with, those made by programs: `cargo run --example seeds`, after a change of
//! a format. Templates, configurations and tokenizers in the corpus were written by hand.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use model::gguf::{self, FileFormat};
use outrider_fuzz::input::{DraftStream, Exchange, VerifyStream};
use outrider_fuzz::models::{END, VOCAB_SIZE, checkpoint, tokenizer_json};
use prost::Message;
use wire::v1::*;

const PROMPT: [u32; 4] = [79, 110, 99, 101];

fn main() {
    for verification in 1..=5 {
        for form in 1..=5 {
            let open = open(verification, form);
            let name = format!("{verification}-{form}");
            write("verify_requests", &name, verify_stream(open.clone()));
            write("draft_requests", &name, draft_stream(open, form as u32));
        }
    }
    let tree = verify_request::Request::Round(VerifyRound {
        header: Some(header(1, &[])),
        drafts: Some(tree(&[65, 66, 67], &[-1, -1, 0])),
        ..Default::default()
    });
    let decode = verify_request::Request::Decode(DecodeRound {
        header: Some(header(1, &[])),
        max_tokens: 3,
    });
    for (name, round) in [("tree", tree), ("decode", decode)] {
        write(
            "verify_requests",
            name,
            verify(vec![verify_request::Request::Open(open(1, 1)), round]),
        );
    }
    for (name, request) in requests() {
        write("client_request", name, request.clone());
        write("peer_replies", name, exchange(request));
    }
    files();
}

fn write(target: &str, name: &str, message: impl Message) {
    write_bytes(target, name, &message.encode_to_vec());
}

fn write_bytes(target: &str, name: &str, bytes: &[u8]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target);
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join(format!("seed-{name}")), bytes).expect("a file");
}

fn open(verification: i32, proposal_form: i32) -> Open {
    Open {
        session_id: vec![3; 16],
        epoch: 1,
        prompt_token_ids: PROMPT.to_vec(),
        sampling: Some(sampling()),
        seed: 5,
        vocab_size: VOCAB_SIZE,
        end_token_ids: vec![END],
        lease_ms: 1000,
        verification,
        proposal_form,
        proposal_top: if proposal_form == ProposalForm::Sparse as i32 {
            4
        } else {
            0
        },
        rollback: if verification == Verification::Bild as i32 {
            1.0
        } else {
            0.0
        },
        ..Default::default()
    }
}

fn sampling() -> SamplingParams {
    SamplingParams {
        temperature: Some(0.75),
        top_k: 50,
        top_p: Some(0.9),
        repetition_penalty: Some(1.1),
        logit_bias: vec![LogitBias {
            token_id: 7,
            bias: -1.0,
        }],
        ..Default::default()
    }
}

/// Of a round on top of these output tokens.
fn header(round: u64, committed: &[u32]) -> RoundHeader {
    RoundHeader {
        round,
        epoch: 1,
        timeout_ms: 1000,
        committed: committed.to_vec(),
        ..Default::default()
    }
}

fn tree(tokens: &[u32], parents: &[i32]) -> TokenTree {
    TokenTree {
        token_ids: tokens.to_vec(),
        parents: parents.to_vec(),
    }
}

/// What a drafter says of a token it is sure of.
fn proposal(form: i32) -> Proposal {
    use proposal::Law;
    let law = match ProposalForm::try_from(form) {
        Ok(ProposalForm::Point) => Some(Law::Point(PointLaw {})),
        Ok(ProposalForm::Sparse) => {
            let weights: Vec<u8> = [40_000_u16, 25_535]
                .iter()
                .flat_map(|it| it.to_le_bytes())
                .collect();
            Some(Law::Sparse(SparseLaw {
                token_ids: vec![65, 66],
                weights,
                unscaled: Vec::new(),
            }))
        }
        Ok(ProposalForm::DenseF16) => {
            // 0.5 is 0x3800 in half precision.
            let half = |mass: f32| if mass > 0.0 { [0, 0x38] } else { [0, 0] };
            let format = dense_law::Format::F16 as i32;
            let row = row().into_iter().flat_map(half).collect();
            Some(Law::Dense(DenseLaw { row, format }))
        }
        Ok(ProposalForm::DenseF32) => Some(Law::Dense(wire::proposal::dense_row(&row()))),
        _ => None,
    };
    Proposal {
        law,
        max_probability: Some(0.5),
        entropy: Some(1.0),
        ..Default::default()
    }
}

fn row() -> Vec<f32> {
    let mut row = vec![0.0; VOCAB_SIZE as usize];
    row[65] = 0.5;
    row[66] = 0.5;
    row
}

fn verify(requests: Vec<verify_request::Request>) -> VerifyStream {
    let requests = requests
        .into_iter()
        .map(|it| VerifyRequest { request: Some(it) });
    VerifyStream {
        requests: requests.collect(),
    }
}

/// A session of two rounds that is closed.
fn verify_stream(open: Open) -> VerifyStream {
    use verify_request::Request;
    let form = open.proposal_form;
    let round = |number, committed: &[u32]| VerifyRound {
        header: Some(header(number, committed)),
        drafts: Some(tree(&[65, 66], &[])),
        proposals: if form > 1 {
            vec![proposal(form), proposal(form)]
        } else {
            Vec::new()
        },
        slices: None,
        ..Default::default()
    };
    verify(vec![
        Request::Open(open),
        Request::Round(round(1, &[])),
        Request::Round(round(2, &[65])),
        Request::Close(Close {}),
    ])
}

fn draft_stream(open: Open, policy: u32) -> DraftStream {
    use draft_length::Policy;
    use draft_request::Request;
    let policy = match policy {
        1 => Policy::Fixed(3),
        2 => Policy::Confidence(0.5),
        3 => Policy::Fixed(1),
        4 => Policy::Entropy(1.0),
        _ => Policy::Learned(LearnedStop {
            threshold: 0.5,
            min_tokens: 1,
        }),
    };
    let round = |number, committed: &[u32], shape| DraftRound {
        header: Some(header(number, committed)),
        max_tokens: 4,
        drafting: Drafting::Model as i32,
        draft_length: Some(DraftLength {
            policy: Some(policy),
        }),
        tree: shape,
        ..Default::default()
    };
    let comb = TreeShape {
        shape: Some(tree_shape::Shape::Comb(2)),
    };
    let requests = [
        Request::Open(open),
        Request::Round(round(1, &[], None)),
        Request::Round(round(2, &[65], None)),
        Request::Round(round(3, &[65, 66], Some(comb))),
        Request::Close(Close {}),
    ];
    let requests = requests.map(|it| DraftRequest { request: Some(it) });
    DraftStream {
        requests: requests.into(),
    }
}

fn requests() -> Vec<(&'static str, GenerateRequest)> {
    let text = |text: &str| Some(generate_request::Prompt::Text(text.to_owned()));
    let plain = GenerateRequest {
        prompt: text("Once upon a time"),
        max_tokens: Some(12),
        seed: Some(7),
        ..Default::default()
    };
    let with = |change: &dyn Fn(&mut GenerateRequest)| {
        let mut request = plain.clone();
        change(&mut request);
        request
    };
    let mut all = vec![
        ("plain", plain.clone()),
        ("sampled", with(&|it| it.sampling = Some(sampling()))),
        (
            "tokens",
            with(&|it| {
                it.prompt = Some(generate_request::Prompt::TokenIds(TokenIds {
                    ids: PROMPT.to_vec(),
                }));
            }),
        ),
        (
            "stops",
            with(&|it| it.stop = vec!["a".to_owned(), "é".to_owned()]),
        ),
        (
            "reports",
            with(&|it| {
                it.report_laws = true;
                it.accept_at = AcceptAt::Coordinator as i32;
            }),
        ),
        (
            "tree",
            with(&|it| {
                it.tree = Some(TreeShape {
                    shape: Some(tree_shape::Shape::Comb(2)),
                });
            }),
        ),
        (
            "tuned",
            with(&|it| {
                it.parameters = Some(MethodParameters {
                    alpha: Some(0.5),
                    ..Default::default()
                });
                it.method = "token-cascade".to_owned();
            }),
        ),
    ];
    let methods = wire::listing::methods(false).methods;
    for method in methods {
        let name: &'static str = method.name.clone().leak();
        all.push((name, with(&|it| it.method = name.to_owned())));
    }
    all
}

/// The answers to `request` of peers that keep to the protocol, and a little more.
fn exchange(request: GenerateRequest) -> Exchange {
    let opened = Opened {
        epoch: 1,
        held_len: 0,
        lease_ms: 1000,
    };
    let verdict = Verdict {
        emitted: vec![65, 66, 67],
        accepted_len: 2,
        last: LastToken::Bonus as i32,
        ..Default::default()
    };
    let support = SupportLaw {
        token_ids: vec![65],
        probabilities: vec![1.0],
    };
    let slice = Slice {
        law: Some(slice::Law::Support(support)),
        max_probability: 1.0,
        last: true,
        ..Default::default()
    };
    let decoded = Decoded {
        token_ids: vec![65, END],
        last: true,
        ..Default::default()
    };
    let block = DraftBlock {
        tree: Some(tree(&[65, 66], &[])),
        proposals: vec![Proposal::default(), Proposal::default()],
        last: true,
        stop_cause: StopCause::Length as i32,
        ..Default::default()
    };
    use verify_reply::Reply;
    let verifier = [
        Reply::Opened(opened),
        Reply::Verdict(verdict.clone()),
        Reply::Verdict(verdict),
        Reply::Slice(slice),
        Reply::Decoded(decoded),
        Reply::NeedFrom(NeedFrom::default()),
        Reply::Draining(Draining {}),
    ];
    let verifier = verifier.map(|reply| VerifyReply { reply: Some(reply) });
    use draft_reply::Reply as Drafted;
    let drafter = [
        Drafted::Opened(opened),
        Drafted::Block(block.clone()),
        Drafted::Block(block),
        Drafted::Progress(Progress::default()),
    ];
    let drafter = drafter.map(|reply| DraftReply { reply: Some(reply) });
    Exchange {
        request: Some(request),
        verifier: verifier.into(),
        drafter: drafter.into(),
    }
}

/// Weights, tokenizers and recordings.
fn files() {
    write_bytes("tokenizer", "byte-level", tokenizer_json().as_bytes());
    let checkpoint = checkpoint(1);
    for format in [FileFormat::F32, FileFormat::Q8_0] {
        let mut bytes = Vec::new();
        let unstopped = &mut |_: gguf::WriteProgress<'_>| ControlFlow::Continue(());
        gguf::write(&checkpoint, "tiny", format, &mut bytes, unstopped).expect("a file");
        write_bytes("gguf", format.name(), &bytes);
    }
    let header = RecordingHeader {
        format: "outrider.recording".to_owned(),
        version: 1,
        vocab_size: VOCAB_SIZE,
        ..Default::default()
    };
    let law = RecordedLaw {
        probabilities: vec![0.5, 0.25],
        max_probability: 0.5,
        entropy: 1.0,
        ..Default::default()
    };
    let rest = RecordedRest {
        draft: 0.25,
        target: 0.25,
        draft_unscaled: 0.25,
        target_unscaled: 0.25,
        cross_entropy: 1.0,
    };
    let position = RecordedPosition {
        token_ids: vec![65, 66],
        draft: Some(law.clone()),
        target: Some(law),
        rest: vec![rest],
    };
    let block = RecordedBlock {
        draft_token_ids: vec![65],
        positions: vec![position],
        accepted: 1,
        ..Default::default()
    };
    write(
        "recording",
        "one-block",
        Recording {
            header: Some(header),
            blocks: vec![block],
        },
    );
}
