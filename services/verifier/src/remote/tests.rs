//! Whose sessions share a salt; an engine for the tests of this folder.

pub(super) mod fake;

use wire::open::{EVERYONE, SessionSpec, from_wire};
use wire::v1;

use super::rounds::salt;

pub(in crate::remote) fn spec(id: u8, tenant: &str) -> SessionSpec {
    let description = v1::PeerDescription {
        vocab_size: 8,
        logits_size: 8,
        context_len: 8,
        ..wire::describe::capabilities()
    };
    let open = v1::Open {
        session_id: vec![id; 16],
        prompt_token_ids: vec![1],
        vocab_size: 8,
        epoch: 1,
        tenant: tenant.to_owned(),
        verification: v1::Verification::Coupled.into(),
        proposal_form: v1::ProposalForm::Point.into(),
        ..Default::default()
    };
    from_wire(open, &description).expect("a session")
}

#[test]
fn sessions_of_a_tenant_have_a_salt_together_and_those_that_share_nothing_one_each() {
    let salts = [
        spec(1, "a"),
        spec(2, "a"),
        spec(1, "b"),
        spec(1, ""),
        spec(2, ""),
        spec(3, EVERYONE),
        spec(4, EVERYONE),
    ];
    let salts = salts.map(|spec| salt(&spec));
    assert_eq!((&salts[0], &salts[5]), (&salts[1], &salts[6]));
    for (at, one) in salts[..6].iter().enumerate().skip(1) {
        assert!(!salts[at + 1..6].contains(one), "{salts:?}");
    }
}
