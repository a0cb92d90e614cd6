//! Learned stopping: an acceptance head reads the draft model's hidden states, and decides as the
//! definition says.

use std::path::PathBuf;

use model::Model;
use model::head::{AcceptanceHead, HeadInfo, HeadScratch, HeadWeights};
use model::source::ServedModel;
use speculation::chance::RoundChance;
use speculation::confidence::Confidence;
use speculation::drafting::policies::LEARNED;
use speculation::drafting::{ProposalOptions, StopRule, Stopping, draw, propose};
use speculation::noise::InnerCall;
use speculation::ports::LanguageModel;
use speculation::proposal::ProposalForm;
use speculation::verification::{AcceptanceLabel, Verification};
use wire::v1::{Drafting, Open, SamplingParams, StopCause};

use super::reference::Reference;
use super::{Rounds, draft_with_heads, drafter, learned, opening, requested, samplings};
use crate::cluster::Service;

/// A head of the embedded draft model that was never trained: what it predicts varies with the token.
pub(crate) fn head(label: AcceptanceLabel) -> AcceptanceHead {
    head_of(&draft_with_heads(), label)
}

/// An untrained head whose input is the hidden state of the model `served`.
pub(crate) fn head_of(served: &ServedModel<Model>, label: AcceptanceLabel) -> AcceptanceHead {
    let hidden = served.model.shape().hidden_size;
    let info = HeadInfo {
        depth: 1,
        tied: false,
        hidden_size: hidden,
        label,
        draft_fingerprint: served.weights_fingerprint.clone(),
        w_rej: 1.0,
        mix: 0.0,
        seed: 0,
    };
    let wave = |at: usize, slow: f32| ((at as f32) * slow).sin();
    let weights = HeadWeights {
        blocks: vec![(
            (0..hidden * hidden)
                .map(|at| 0.05 * wave(at, 0.37))
                .collect(),
            vec![0.0; hidden],
        )],
        out_weight: (0..2 * hidden).map(|at| 0.15 * wave(at, 1.3)).collect(),
        out_bias: vec![0.0, 1.5],
    };
    let head = AcceptanceHead::new(info, weights, "a test").expect("a head");
    head.in_format(served.head_format)
}

/// The head as a file in a folder of its own.
pub(crate) fn saved(head: &AcceptanceHead) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("head.safetensors");
    head.save(&file).expect("written");
    (folder, file)
}

/// A drafter with these heads and no others.
async fn with_heads(labels: &[AcceptanceLabel]) -> Service {
    let files: Vec<_> = labels.iter().map(|&label| saved(&head(label))).collect();
    let mut model = draft_with_heads();
    model.heads.clear();
    let configure = |config: &mut ::drafter::DrafterConfig| {
        let paths = files.iter().map(|(_, file)| file.display().to_string());
        config.heads = paths.collect();
    };
    drafter(vec![model], configure).await
}

/// The block that the definition drafts after `output`, token by token.
fn drafted(
    reference: &mut Reference,
    head: &AcceptanceHead,
    (verification, form): (Verification, ProposalForm),
    output: &[u32],
    most: usize,
    rule: StopRule,
) -> (Vec<u32>, bool) {
    let base_len = output.len() as u32;
    let mut chance = RoundChance::new(reference.noise, base_len, InnerCall::default());
    let mut stopping = Stopping::new(rule);
    let mut scratch = HeadScratch::default();
    let mut tokens = Vec::new();
    loop {
        let mut distributions = reference.after(output, &tokens);
        if stopping.wants_prediction() {
            let accept = head.accept_probability(&distributions.hidden, &mut scratch);
            stopping.predicted(f64::from(accept));
        }
        let at = (base_len, tokens.len() as u32);
        let noise = &reference.noise;
        let options = ProposalOptions {
            form,
            ..Default::default()
        };
        let probs = &mut distributions.probs;
        propose(probs, None, Confidence::default(), options);
        let drawn = draw(probs, verification, noise, at, &mut chance);
        tokens.push(drawn);
        let stops = stopping.drawn();
        if reference.sampling.end_tokens.contains(&drawn) || tokens.len() == most {
            return (tokens, false);
        }
        if stops {
            return (tokens, true);
        }
    }
}

fn opened(sampling: &SamplingParams, verification: Verification) -> Open {
    opening(sampling, |open| {
        if verification == Verification::TOKEN {
            open.verification = wire::v1::Verification::Token.into();
            open.proposal_form = wire::v1::ProposalForm::Sparse.into();
            open.proposal_top = 16;
        }
    })
}

#[tokio::test]
async fn a_drafter_stops_where_the_rule_itself_does() {
    let drafter = with_heads(&[AcceptanceLabel::Coupled, AcceptanceLabel::Rejection]).await;
    let (mut lengths, mut stops) = (std::collections::HashSet::new(), 0);
    for sampling in samplings() {
        for (verification, form) in [
            (Verification::COUPLED, ProposalForm::None),
            (Verification::TOKEN, ProposalForm::Sparse { top: 16 }),
        ] {
            let label = verification.label.expect("a label");
            let head = head(label);
            let opening = opened(&sampling, verification);
            let mut reference = Reference::new(draft_with_heads(), &opening);
            let mut rounds = Rounds::open(&drafter, opening).await;
            for (threshold, least) in [(0.2, 0), (0.5, 0), (0.5, 4), (0.9, 0)] {
                for output in [vec![], vec![900, 901, 902]] {
                    let mut question = requested(Drafting::Model, 12);
                    question.draft_length = Some(learned(threshold, least));
                    let block = rounds.ask(&output, question).await;
                    let rule = StopRule::new(&LEARNED, threshold).with_least(least);
                    let way = (verification, form);
                    let (expected, by_rule) =
                        drafted(&mut reference, &head, way, &output, 12, rule);
                    assert_eq!(block.tokens(), expected, "h={threshold} after {output:?}");
                    assert_eq!(block.stop == StopCause::Policy, by_rule);
                    assert_eq!(block.forwards, [expected.len() as u32]);
                    lengths.insert(expected.len());
                    stops += usize::from(by_rule);
                }
            }
        }
    }
    assert!(
        stops > 10 && lengths.len() > 3,
        "{stops} stops at {lengths:?}"
    );
}

/// A head for coupled acceptance is over-confident, or the other way round, under another verification.
#[tokio::test]
async fn a_head_for_another_label_is_refused() {
    for (held, verification, missing) in [
        (AcceptanceLabel::Coupled, Verification::TOKEN, "'rejection'"),
        (
            AcceptanceLabel::Rejection,
            Verification::COUPLED,
            "'coupled'",
        ),
    ] {
        let drafter = with_heads(&[held]).await;
        let mut rounds = Rounds::open(&drafter, opened(&samplings()[1], verification)).await;
        let mut question = requested(Drafting::Model, 8);
        question.draft_length = Some(learned(0.5, 0));
        let status = rounds.try_ask(&[], question).await.expect_err("refused");
        let message = status.message();
        assert_eq!(message.split(':').next(), Some("draft_length.learned"));
        let parts = [missing, "default-draft", "outrider-bench train-head"];
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    }
}
