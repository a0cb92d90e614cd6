//! What a verifier answers.

use speculation::coupled::choice;
use speculation::noise::Noise;
use tonic::Code;
use wire::v1::round_answer::Part;
use wire::v1::session_reply::Reply;
use wire::v1::session_request::Request;
use wire::v1::slice::Probs;
use wire::v1::{
    AcceptAt, DecodeRound, Open, Proposal, ProposalForm, ResidualLayer, RoundRequest, ScoreRound,
    Slice, SliceRequest, SparseDistribution, TokenTree, Verification, VerifyRound, proposal,
};

use super::{Change, SessionStream, with_header};
use crate::cluster::{target, verifier};

fn block(drafts: &[u32]) -> VerifyRound {
    let drafts = Some(TokenTree {
        token_ids: drafts.to_vec(),
        parents: vec![],
    });
    VerifyRound {
        drafts,
        ..Default::default()
    }
}

async fn slices(stream: &mut SessionStream, round: RoundRequest) -> Vec<Slice> {
    stream.send(Request::Round(round)).await;
    let mut slices = Vec::new();
    loop {
        match stream.part().await.expect("a slice") {
            Part::Slice(slice) => {
                let last = slice.last;
                slices.push(slice);
                if last {
                    return slices;
                }
            }
            other => panic!("another reply: {other:?}"),
        }
    }
}

/// The distribution of a slice, (vocab).
fn probs(slice: &Slice) -> Vec<f32> {
    match slice.probs.as_ref().expect("a distribution") {
        Probs::Dense(dense) => {
            let (masses, _) = dense.row.as_chunks::<4>();
            masses
                .iter()
                .map(|&bytes| f32::from_le_bytes(bytes))
                .collect()
        }
        Probs::Support(support) => {
            let mut probs = vec![0.0; 4096];
            for (&token, &mass) in support.token_ids.iter().zip(&support.probabilities) {
                probs[token as usize] = mass;
            }
            probs
        }
    }
}

#[tokio::test]
async fn a_repeated_round_gets_the_same_verdict_without_a_forward() {
    let (verifier, _) = verifier(target()).await;
    let mut stream = SessionStream::at_verifier(verifier.url(), |_| {}).await;
    let requested = with_header(block(&[900, 901]), 1, &[]);
    let first = stream.verdict(requested.clone()).await.expect("a verdict");
    let again = stream.verdict(requested.clone()).await.expect("a verdict");
    assert!(stream.header().replayed);
    assert_eq!((&first.emitted, first.last), (&again.emitted, again.last));
    assert_eq!(
        stream.header().digest,
        requested.header.expect("a header").digest
    );
    // Another block under the same round number is executed afresh.
    let other = stream
        .verdict(with_header(block(&first.emitted), 1, &[]))
        .await;
    let other = other.expect("a verdict");
    assert!(!stream.header().replayed);
    assert_eq!(other.accepted_len as usize, first.emitted.len());
}

/// Refused draft tokens stay in the cache at positions that the next round fills otherwise.
#[tokio::test]
async fn a_verdict_depends_on_what_is_committed_and_not_on_what_was_refused_before() {
    let (verifier, _) = verifier(target()).await;
    let mut stream = SessionStream::at_verifier(verifier.url(), |_| {}).await;
    let first = stream
        .verdict(with_header(block(&[900, 901, 902]), 1, &[]))
        .await;
    let committed = first.expect("a verdict").emitted;
    let next = with_header(block(&[903]), 2, &committed);
    let continued = stream.verdict(next.clone()).await.expect("a verdict");
    let mut fresh =
        SessionStream::at_verifier(verifier.url(), |open| open.session_id = vec![4; 16]).await;
    assert_eq!(
        fresh.verdict(next).await.expect("a verdict").emitted,
        continued.emitted
    );
}

/// Deciding where the slices arrive gives the tokens that the verifier would have emitted.
#[tokio::test]
async fn slices_hold_everything_the_decision_needs() {
    let (verifier, _) = verifier(target()).await;
    for (temperature, top_k) in [(0.0, 0), (1.0, 0), (0.7, 20)] {
        let sampling = |open: &mut Open| {
            let sampling = open.sampling.get_or_insert_default();
            sampling.temperature = Some(temperature);
            sampling.top_k = top_k;
        };
        let mut deciding = SessionStream::at_verifier(verifier.url(), sampling).await;
        // Drafts of which some are right: what the target itself would say, and then nonsense.
        let mut drafts = Vec::new();
        for round in 1..=3 {
            let next = deciding
                .verdict(with_header(block(&[]), round, &drafts))
                .await;
            drafts.extend(next.expect("a verdict").emitted);
        }
        drafts.push(77);
        let decided = deciding.verdict(with_header(block(&drafts), 4, &[])).await;
        let decided = decided.expect("a verdict");

        let mut scoring = SessionStream::at_verifier(verifier.url(), |open| {
            sampling(open);
            open.session_id = vec![9; 16];
            open.accept_at = AcceptAt::Coordinator.into();
        })
        .await;
        let wanted = Some(SliceRequest {
            top: 0,
            unscaled: true,
            confidences: true,
        });
        let requested = VerifyRound {
            slices: wanted,
            ..block(&drafts)
        };
        let slices = slices(&mut scoring, with_header(requested, 1, &[])).await;
        let nodes: Vec<i32> = slices.iter().map(|slice| slice.node).collect();
        assert_eq!(nodes, [-1, 0, 1, 2, 3]);
        let distributions: Vec<Vec<f32>> = slices.iter().map(probs).collect();
        let noise = Noise::new(5, 0);
        // Coupled verification emits the choices up to the first that is not the draft token.
        let choices = distributions
            .iter()
            .zip(0..)
            .map(|(probs, at)| choice(probs, &noise, at));
        let choices: Vec<u32> = choices.collect();
        let agreeing = choices.iter().zip(&drafts).take_while(|(a, b)| a == b);
        let accepted = agreeing.count();
        assert_eq!(choices[..=accepted], decided.emitted, "T={temperature}");
        // At temperature 1 without cuts the distribution is the unscaled distribution, and comes once.
        let is_scaled = temperature != 1.0 || top_k > 0;
        let is_cut = top_k > 0 || temperature == 0.0;
        for slice in &slices {
            assert!(slice.max_probability > 0.0 && slice.entropy > 0.0);
            assert_eq!(slice.unscaled.is_some(), is_scaled);
            assert!(!is_cut || matches!(slice.probs, Some(Probs::Support(_))));
        }
    }
}

#[tokio::test]
async fn decoding_alone_gives_what_single_verdicts_give() {
    let (verifier, _) = verifier(target()).await;
    let mut stream = SessionStream::at_verifier(verifier.url(), |_| {}).await;
    let mut expected = Vec::new();
    for round in 1..=6 {
        let next = stream
            .verdict(with_header(block(&[]), round, &expected))
            .await;
        expected.extend(next.expect("a verdict").emitted);
    }
    let decode = DecodeRound {
        max_tokens: 6,
        ..Default::default()
    };
    stream
        .send(Request::Round(with_header(decode, 7, &[])))
        .await;
    let mut decoded = Vec::new();
    loop {
        let Part::Decoded(part) = stream.part().await.expect("tokens") else {
            panic!("another reply");
        };
        assert_eq!(part.from as usize, decoded.len());
        decoded.extend(part.token_ids);
        if part.last {
            break;
        }
    }
    assert_eq!(decoded, expected);
}

#[tokio::test]
async fn scores_of_a_prompt_go_on_from_where_they_are_known() {
    let (verifier, _) = verifier(target()).await;
    let wanting = |open: &mut Open| open.logprobs = true;
    let mut stream = SessionStream::at_verifier(verifier.url(), wanting).await;
    let score = |from| ScoreRound {
        from,
        ..Default::default()
    };
    let scores = async |stream: &mut SessionStream, from| {
        let requested = with_header(score(from), 0, &[]);
        stream.send(Request::Round(requested)).await;
        match stream.part().await {
            Ok(Part::Scored(scored)) => {
                assert_eq!((scored.from, scored.last), (from, true));
                Ok(scored.logprobs)
            }
            Ok(other) => panic!("{other:?}"),
            Err(status) => Err(status),
        }
    };
    let all = scores(&mut stream, 0).await.expect("scores");
    let rest = scores(&mut stream, 1).await.expect("scores");
    assert!(all.len() > 2, "{}", all.len());
    assert_eq!(all[1..], rest);
    let beyond = all.len() as u32;
    let refused = scores(&mut stream, beyond).await.expect_err("none left");
    assert!(refused.message().starts_with("from: "), "{refused:?}");

    let mut stream = SessionStream::at_verifier(verifier.url(), wanting).await;
    let late = with_header(score(0), 0, &[900]);
    let refused = stream.ask(Request::Round(late)).await.expect_err("output");
    assert!(refused.message().starts_with("committed: "), "{refused:?}");
    let mut stream = SessionStream::at_verifier(verifier.url(), |_| {}).await;
    let refused = scores(&mut stream, 0).await.expect_err("not wanted");
    assert!(refused.message().starts_with("logprobs: "), "{refused:?}");
}

#[tokio::test]
async fn a_verifier_that_holds_too_little_says_what_it_needs() {
    let (verifier, _) = verifier(target()).await;
    let mut stream = SessionStream::at_verifier(verifier.url(), |_| {}).await;
    let mut requested = with_header(block(&[]), 1, &[900]);
    requested.header.as_mut().expect("a header").from_len = 5;
    match stream
        .ask(Request::Round(requested))
        .await
        .expect("an answer")
    {
        Reply::NeedFrom(need) => assert_eq!(need.from, 0),
        other => panic!("another reply: {other:?}"),
    }
    assert!(
        stream
            .verdict(with_header(block(&[]), 1, &[900]))
            .await
            .is_ok()
    );
}

/// What else is no block and no header is tested in `wire`; lies about a draft distribution never reach a verdict.
#[tokio::test]
async fn malformed_rounds_are_refused_by_name() {
    let (verifier, _) = verifier(target()).await;
    let round = |change: fn(&mut VerifyRound)| {
        let mut round = block(&[900]);
        change(&mut round);
        with_header(round, 1, &[])
    };
    let token = |open: &mut Open| {
        open.verification = Verification::Token.into();
        open.proposal_form = ProposalForm::Sparse.into();
        open.proposal_top = 8;
    };
    let coupled = |_: &mut Open| {};
    let layers = round(|round| round.layers = vec![ResidualLayer::default()]);
    let mut headless = with_header(block(&[]), 1, &[]);
    headless.header = None;
    let slices = round(|round| round.slices = Some(SliceRequest::default()));
    // Wrong in itself, or for the token that is said to be drawn from it.
    let lie = |ids: &[u32], weights: &[u8]| {
        let probs = SparseDistribution {
            token_ids: ids.to_vec(),
            weights: weights.to_vec(),
            unscaled: vec![],
        };
        let mut round = block(&[900]);
        round.proposals = vec![Proposal {
            probs: Some(proposal::Probs::Sparse(probs)),
            ..Default::default()
        }];
        with_header(round, 1, &[])
    };
    let requested: [(Change, &str, RoundRequest); 10] = [
        (coupled, "drafts", with_header(block(&[900; 65]), 1, &[])),
        (coupled, "committed", with_header(block(&[]), 1, &[4096])),
        (coupled, "layers", layers),
        (coupled, "horizon", round(|round| round.horizon = Some(65))),
        (coupled, "stopped", round(|round| round.stopped = true)),
        (coupled, "slices", slices),
        (coupled, "header", headless),
        (token, "proposals", round(|_| {})),
        (token, "proposals", lie(&[901], &[1, 0])),
        (token, "proposals", lie(&[900], &[1])),
    ];
    for (change, field, round) in requested {
        let mut stream = SessionStream::at_verifier(verifier.url(), change).await;
        let status = stream.verdict(round).await.expect_err("refused");
        assert_eq!(status.code(), Code::InvalidArgument, "{field}");
        assert!(status.message().starts_with(field), "{status}");
    }
}
