use super::*;

fn open() -> v1::Open {
    v1::Open {
        session_id: vec![7; 16],
        prompt_token_ids: vec![1, 5],
        vocab_size: 10,
        ..Default::default()
    }
}

fn peer() -> v1::PeerDescription {
    v1::PeerDescription {
        model: "m".to_owned(),
        logits_size: 16,
        context_len: 3,
        ..Default::default()
    }
}

#[test]
fn what_is_absent_takes_its_default() {
    let spec = from_wire(open(), &peer()).expect("a spec");
    assert_eq!(spec.verification, Verification::COUPLED);
    assert_eq!(spec.lease_ms, DEFAULT_LEASE_MS);
    assert_eq!(spec.sampling.temperature, 1.0);
}

#[test]
fn a_lease_is_no_longer_than_the_longest() {
    for (requested, granted) in [(1, 1), (600_000, 600_000), (600_001, 600_000)] {
        let mut open = open();
        open.lease_ms = requested;
        let spec = from_wire(open, &peer()).expect("a spec");
        assert_eq!(spec.lease_ms, granted);
    }
}

#[test]
fn the_prompt_goes_to_the_encoder_where_there_is_one() {
    let with_encoder = v1::PeerDescription {
        decoder_start_token_id: Some(0),
        ..peer()
    };
    let started = |start| v1::Open {
        decoder_start_token_id: start,
        ..open()
    };
    let spec = from_wire(started(Some(12)), &with_encoder).expect("a spec");
    assert_eq!((spec.lead(), spec.source()), (&[12][..], &[1, 5][..]));
    let spec = from_wire(open(), &peer()).expect("a spec");
    assert_eq!((spec.lead(), spec.source()), (&[1, 5][..], &[][..]));
    // Max-Gram looks things up in either.
    let max_gram = v1::PeerDescription {
        draftings: vec![v1::Drafting::MaxGram.into()],
        ..peer()
    };
    assert!(from_wire(open(), &max_gram).is_ok());
    assert!(from_wire(started(Some(0)), &max_gram).is_ok());
    for (start, peer) in [
        (None, &with_encoder),
        (Some(16), &with_encoder),
        (Some(0), &peer()),
    ] {
        let error = from_wire(started(start), peer).expect_err("refused");
        assert_eq!(error.field, "decoder_start_token_id");
    }
}

#[test]
fn each_fault_is_named() {
    type Fault = fn(&mut v1::Open);
    let faults: [(&str, Fault); 22] = [
        ("session_id", |open| open.session_id = vec![7; 15]),
        ("model", |open| open.model = "other".into()),
        ("vocab_fingerprint", |open| {
            open.vocab_fingerprint = vec![9; 32];
        }),
        ("vocab_size", |open| open.vocab_size = 0),
        ("vocab_size", |open| open.vocab_size = 17),
        ("prompt_token_ids", |open| open.prompt_token_ids.clear()),
        ("prompt_token_ids", |open| open.prompt_token_ids.push(10)),
        ("prompt_token_ids", |open| {
            open.prompt_token_ids = vec![1; 4];
        }),
        ("accept_at", |open| open.accept_at = 77),
        ("requires", |open| open.requires = vec!["magic".into()]),
        ("want_hidden", |open| open.want_hidden = true),
        ("choice", |open| open.choice = 4_096),
        ("tenant", |open| open.tenant = "t".repeat(257)),
        ("end_token_ids", |open| open.end_token_ids = vec![10]),
        ("end_token_ids", |open| open.end_token_ids = vec![1; 65]),
        ("verification", |open| open.verification = 77),
        ("rollback", |open| {
            open.verification = v1::Verification::Bild.into();
            open.rollback = f64::NAN;
        }),
        ("proposal_form", |open| open.proposal_form = 77),
        ("top_logprobs", |open| open.top_logprobs = 1),
        ("logprobs", |open| {
            open.logprobs = true;
            open.accept_at = v1::AcceptAt::Coordinator.into();
        }),
        ("decoder_start_token_id", |open| {
            open.decoder_start_token_id = Some(0);
        }),
        ("target.alpha", |open| {
            let lossy = v1::target_distribution::Kind::Lossy.into();
            open.target.get_or_insert_default().kind = lossy;
        }),
    ];
    for (field, fault) in faults {
        let mut open = open();
        fault(&mut open);
        let error = from_wire(open, &peer()).expect_err(field);
        assert_eq!(error.field, field);
    }
}
