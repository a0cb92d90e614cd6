use super::*;

fn bare(probs: ProposalProbs) -> Proposal {
    Proposal {
        probs,
        ..Default::default()
    }
}

#[test]
fn distributions_survive_the_wire() {
    let sparse = ProposalProbs::Sparse {
        ids: vec![3, 1],
        weights: vec![65_535, 9],
    };
    let dense = ProposalProbs::Dense(vec![0.25, 0.75]);
    let all = ProposalFields {
        confidences: true,
        entropies: true,
        unscaled: true,
        logprobs: true,
    };
    for (probs, form) in [
        (sparse, ProposalForm::Sparse { top: 2 }),
        (dense.clone(), ProposalForm::Dense { half: false }),
        (dense, ProposalForm::Dense { half: true }),
        (ProposalProbs::Point, ProposalForm::Point),
        (ProposalProbs::None, ProposalForm::None),
    ] {
        let bare = bare(probs.clone());
        let has_draft_probs = !matches!(form, ProposalForm::Point | ProposalForm::None);
        let full = Proposal {
            probs,
            confidence: Some(Confidence {
                max: 0.5,
                entropy: 1.25,
            }),
            unscaled: has_draft_probs.then(|| vec![0.1, 0.2]),
            logprob: Some(-2.5),
        };
        let wire = to_wire(vec![bare.clone()], form);
        assert_eq!(
            from_wire(wire, 1, form, ProposalFields::default()),
            Ok(vec![bare])
        );
        let wire = to_wire(vec![full.clone()], form);
        let proposal_fields = ProposalFields {
            unscaled: has_draft_probs,
            ..all
        };
        assert!(fits(&wire[0], form, 2), "{form:?}");
        assert_eq!(from_wire(wire, 1, form, proposal_fields), Ok(vec![full]));
        let (wire_form, top) = form_to_wire(form);
        assert_eq!(form_from_wire(wire_form.into(), top), Ok(form));
    }
}

#[test]
fn only_distributions_of_the_form_and_size_fit() {
    let form = ProposalForm::Sparse { top: 4 };
    let probs = |ids: u32| {
        let ids: Vec<u32> = (0..ids).collect();
        let weights = vec![1; ids.len()];
        one_to_wire(bare(ProposalProbs::Sparse { ids, weights }), form)
    };
    assert!(fits(&probs(4), form, 10));
    assert!(!fits(&probs(5), form, 10));
    assert!(!fits(&probs(4), ProposalForm::None, 10));
    assert!(!fits(&v1::Proposal::default(), form, 10));
    let form = ProposalForm::Dense { half: false };
    let dense = one_to_wire(bare(ProposalProbs::Dense(vec![0.1; 11])), form);
    assert!(fits(&dense, form, 11));
    assert!(!fits(&dense, form, 10));
}

#[test]
fn distributions_in_another_form_or_number_are_refused() {
    let form = ProposalForm::Sparse { top: 1 };
    let sparse = |ids: Vec<u32>, weights: Vec<u16>| {
        let proposal = bare(ProposalProbs::Sparse { ids, weights });
        vec![one_to_wire(proposal, form)]
    };
    let read = |wire| from_wire(wire, 1, form, ProposalFields::default());
    assert!(read(sparse(vec![1], vec![1])).is_ok());
    assert!(read(vec![]).is_err());
    assert!(read(sparse(vec![1, 2], vec![1, 1])).is_err());
    let whole = ProposalForm::Dense { half: false };
    let dense = |form| vec![one_to_wire(bare(ProposalProbs::Dense(vec![1.0])), form)];
    assert!(read(dense(whole)).is_err());
    let half = dense(ProposalForm::Dense { half: true });
    assert!(from_wire(half, 1, whole, ProposalFields::default()).is_err());
    let confidences = ProposalFields {
        confidences: true,
        ..Default::default()
    };
    assert!(from_wire(sparse(vec![1], vec![1]), 1, form, confidences).is_err());
    let mut odd = sparse(vec![1], vec![1]);
    if let Some(Probs::Sparse(probs)) = &mut odd[0].probs {
        probs.weights.push(0);
    }
    assert!(read(odd).is_err());
    assert!(form_from_wire(99, 0).is_err());
    assert!(form_from_wire(v1::ProposalForm::Sparse.into(), 0).is_err());
}

/// A coupled round sends token ids only; a sparse distribution of 32 tokens stays within 170 bytes.
#[test]
fn bytes_per_drafted_token_stay_within_their_budget() {
    use prost::Message;
    let tokens: Vec<u32> = (0..16).map(|i| 31_000 + i * 37).collect();
    let coupled = v1::VerifyRound {
        drafts: Some(v1::TokenTree {
            token_ids: tokens,
            parents: vec![],
        }),
        ..Default::default()
    };
    let bytes_of = |round: &v1::VerifyRound| {
        let request = v1::RoundRequest {
            header: Some(v1::RoundHeader::default()),
            round: Some(v1::round_request::Round::Verify(round.clone())),
        };
        request.encoded_len()
    };
    let bytes = bytes_of(&coupled);
    assert!(bytes <= 8 * 16, "{bytes} bytes");
    let sparse = |at: u32| {
        bare(ProposalProbs::Sparse {
            ids: (0..32).map(|i| at + i * 1_000).collect(),
            weights: (0..32).map(|i| 65_535 / (i + 1)).collect(),
        })
    };
    let form = ProposalForm::Sparse { top: 32 };
    let sampled = v1::VerifyRound {
        proposals: to_wire((0..16).map(sparse).collect(), form),
        ..coupled
    };
    let bytes = bytes_of(&sampled) / 16;
    assert!(bytes <= 170, "{bytes} bytes");
}

/// A cascade of drafters tells of a token that Max-Gram proposed, and no model reviewed, among others.
#[test]
fn one_hot_distributions_stand_among_others() {
    let form = ProposalForm::Dense { half: false };
    let block = vec![
        bare(ProposalProbs::Dense(vec![0.25, 0.75])),
        bare(ProposalProbs::Point),
    ];
    let read = |block: Vec<Proposal>, form| {
        let wire = to_wire(block, form);
        assert!(wire.iter().all(|reported| fits(reported, form, 2)));
        from_wire(wire, 2, form, ProposalFields::default())
    };
    assert_eq!(read(block.clone(), form), Ok(block));
    // Where all are one-hot it must be said too, since the form alone does not say it.
    let points = vec![bare(ProposalProbs::Point); 2];
    for form in [form, ProposalForm::Sparse { top: 1 }] {
        assert_eq!(to_wire(points.clone(), form).len(), 2);
        assert_eq!(read(points.clone(), form), Ok(points.clone()));
    }
    assert!(to_wire(points, ProposalForm::Point).is_empty());
    // Nobody may hide behind one what a deferral rule must read, nor tell what nobody asked for.
    let proposal_fields = ProposalFields {
        unscaled: true,
        ..Default::default()
    };
    let wire = one_to_wire(bare(ProposalProbs::Point), form);
    assert!(one_from_wire(wire.clone(), form, proposal_fields).is_err());
    for form in [ProposalForm::None, ProposalForm::Point] {
        assert!(!fits(&wire, form, 2));
        assert!(one_from_wire(wire.clone(), form, ProposalFields::default()).is_err());
    }
}
