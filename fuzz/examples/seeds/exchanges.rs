//! What a coordinator's peers answer.

use outrider_fuzz::fake;
use outrider_fuzz::input::Exchange;
use outrider_fuzz::models::END;
use wire::v1::round_answer::Part;
use wire::v1::session_reply::Reply;
use wire::v1::*;

use crate::{requests, tree};

/// The answers to `request` of peers that can do everything and keep to the protocol, and a little more.
pub fn capable(request: GenerateRequest) -> Exchange {
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
    let support = SupportDistribution {
        token_ids: vec![65],
        probabilities: vec![1.0],
    };
    let slice = Slice {
        probs: Some(slice::Probs::Support(support)),
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
    let answer = |part| {
        Reply::Answer(RoundAnswer {
            header: None,
            part: Some(part),
        })
    };
    let verifier = [
        Reply::Opened(opened),
        answer(Part::Verdict(verdict.clone())),
        answer(Part::Verdict(verdict)),
        answer(Part::Slice(slice)),
        answer(Part::Decoded(decoded)),
        Reply::NeedFrom(NeedFrom::default()),
        Reply::Draining(Draining {}),
    ];
    let verifier = verifier.map(SessionReply::from);
    let drafter = [
        Reply::Opened(opened),
        answer(Part::Block(block.clone())),
        answer(Part::Block(block)),
        Reply::Progress(Progress::default()),
    ];
    let drafter = drafter.map(SessionReply::from);
    Exchange {
        request: Some(request),
        verifier: verifier.into(),
        drafter: drafter.into(),
        description: None,
    }
}

/// The same, where the peers say what they can do.
pub fn described() -> Exchange {
    let (_, request) = requests::all().swap_remove(0);
    Exchange {
        description: Some(fake::capable()),
        ..capable(request)
    }
}
