//! What coordinators send to peers.

use outrider_fuzz::input::{Appends, OWN, SessionStream};
use outrider_fuzz::models::{END, VOCAB_SIZE};
use wire::v1::round_request::Round;
use wire::v1::session_request::Request;
use wire::v1::*;

use crate::{PROMPT, sampling, tree, write};

/// A session of each verification with each form of proposals, and the rounds that these have not.
pub fn write_all() {
    for verification in 1..=5 {
        for form in 1..=5 {
            let open = open(verification, form);
            let name = format!("{verification}-{form}");
            write("verify_requests", &name, &verify_stream(open.clone()));
            write("draft_requests", &name, &draft_stream(open, form as u32));
        }
    }
    let commit = |from, token_ids: &[u32]| {
        Request::Commit(Commit {
            from,
            token_ids: token_ids.to_vec(),
            credit: 32,
            price: 0.1,
        })
    };
    let ahead = Round::Ahead(AheadRound {
        horizon: 8,
        nodes: 32,
    });
    let ahead = vec![
        Request::Open(open(1, 1)),
        asking(1, &[], ahead),
        commit(0, &[65]),
        commit(0, &[65, 66, 67]),
        commit(2, &[67, 68]),
        commit(9, &[65]),
    ];
    write("draft_requests", "ahead", &stream(ahead));
    let tree = Round::Verify(VerifyRound {
        drafts: Some(tree(&[65, 66, 67], &[-1, -1, 0])),
        ..Default::default()
    });
    let decode = Round::Decode(DecodeRound {
        max_tokens: 3,
        until: 2,
        drafts: false,
        ..Default::default()
    });
    let score = Round::Score(ScoreRound { from: 1, until: 0 });
    for (name, round) in [("tree", tree), ("decode", decode), ("score", score)] {
        let open = Open {
            logprobs: name == "score",
            ..open(1, 1)
        };
        write(
            "verify_requests",
            name,
            &stream(vec![
                Request::Open(open),
                asking(u64::from(name != "score"), &[], round),
            ]),
        );
    }
}

/// What is appended to a decode whose first two tokens are granted; ids from [`OWN`] on are its own next tokens.
pub fn write_appends() {
    let own = |from: u32, to: u32| (from..to).map(|at| OWN + at).collect::<Vec<_>>();
    // A root as far behind as so many of its own tokens.
    let append = |after, roots: &[u32], token_ids: Vec<u32>, parents: &[i32]| Append {
        after,
        roots: roots.iter().map(|len| OWN + len).collect(),
        survivals: (0..token_ids.len() as u8).map(|at| 2 * at).collect(),
        sources: vec![0; token_ids.len()],
        token_ids,
        parents: parents.to_vec(),
    };
    let right = || append(2, &[], own(2, 9), &[]);
    let tokens = vec![65, OWN + 2, 66, OWN + 3];
    let branches = append(2, &[], tokens.clone(), &[-1, -1, 0, 1]);
    let roots = append(1, &[1, 2, 5], tokens, &[-1, -1, -3, -2]);
    let later = append(0, &[4], own(4, 20), &[]);
    let stale = Append {
        roots: vec![65],
        ..append(0, &[], own(2, 5), &[])
    };
    let sources = Append {
        sources: vec![0, 1, 7],
        ..append(1, &[1], vec![OWN + 2, 300, END], &[-1, 0, 0])
    };
    for (name, appends) in [
        ("right", vec![right()]),
        ("doubled", vec![right(), right(), later.clone()]),
        ("branches", vec![branches, roots, later]),
        ("stale", vec![stale, sources]),
    ] {
        write("append", name, &Appends { appends });
    }
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

/// A round on top of these output tokens.
fn asking(number: u64, committed: &[u32], round: Round) -> Request {
    let header = RoundHeader {
        round: number,
        epoch: 1,
        timeout_ms: 1000,
        committed: committed.to_vec(),
        ..Default::default()
    };
    Request::Round(RoundRequest {
        header: Some(header),
        round: Some(round),
    })
}

/// What a drafter says of a token it is sure of.
fn proposal(form: i32) -> Proposal {
    use proposal::Probs;
    let probs = match ProposalForm::try_from(form) {
        Ok(ProposalForm::Point) => Some(Probs::Point(PointDistribution {})),
        Ok(ProposalForm::Sparse) => {
            let weights: Vec<u8> = [40_000_u16, 25_535]
                .iter()
                .flat_map(|it| it.to_le_bytes())
                .collect();
            Some(Probs::Sparse(SparseDistribution {
                token_ids: vec![65, 66],
                weights,
                unscaled: Vec::new(),
            }))
        }
        Ok(ProposalForm::DenseF16) => {
            // 0.5 is 0x3800 in half precision.
            let half = |mass: f32| if mass > 0.0 { [0, 0x38] } else { [0, 0] };
            let format = dense_distribution::Format::F16 as i32;
            let row = row().into_iter().flat_map(half).collect();
            Some(Probs::Dense(DenseDistribution { row, format }))
        }
        Ok(ProposalForm::DenseF32) => Some(Probs::Dense(wire::proposal::dense_row(&row()))),
        _ => None,
    };
    Proposal {
        probs,
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

fn stream(requests: Vec<Request>) -> SessionStream {
    let requests = requests.into_iter().map(SessionRequest::from);
    SessionStream {
        requests: requests.collect(),
    }
}

/// A session of two rounds that is closed.
fn verify_stream(open: Open) -> SessionStream {
    let form = open.proposal_form;
    let round = || {
        Round::Verify(VerifyRound {
            drafts: Some(tree(&[65, 66], &[])),
            proposals: if form > 1 {
                vec![proposal(form), proposal(form)]
            } else {
                Vec::new()
            },
            ..Default::default()
        })
    };
    stream(vec![
        Request::Open(open),
        asking(1, &[], round()),
        asking(2, &[65], round()),
        Request::Close(Close {}),
    ])
}

fn draft_stream(open: Open, policy: u32) -> SessionStream {
    use draft_length::Policy;
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
    let round = |shape| {
        Round::Draft(DraftRound {
            max_tokens: 4,
            drafting: Drafting::Model as i32,
            draft_length: Some(DraftLength {
                policy: Some(policy.clone()),
            }),
            tree: shape,
            ..Default::default()
        })
    };
    let comb = TreeShape {
        shape: Some(tree_shape::Shape::Comb(2)),
    };
    stream(vec![
        Request::Open(open),
        asking(1, &[], round(None)),
        asking(2, &[65], round(None)),
        asking(3, &[65, 66], round(Some(comb))),
        Request::Close(Close {}),
    ])
}
