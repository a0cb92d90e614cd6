//! What the distributions of a request take, on the wire and in memory.

use net::MAX_MESSAGE_BYTES;
use speculation::methods::Choice;
use speculation::proposal::ProposalForm;
use speculation::session::Plan;
use wire::status::BadField;

use crate::admitted::AdmittedRequest;
use crate::config::MAX_DRAFT_LEN;

/// Bytes of a number of a distribution that comes whole.
const NUMBER: u64 = 4;

/// Each message stands in memory twice for a while: as it came, and as it was read or is passed on.
const COPIES: u64 = 2;

/// Most positions of one round.
fn positions(method: &Choice, draft_len: u32) -> u64 {
    u64::from(match method.plan {
        Plan::OracleCascade => 1,
        Plan::Speculative => draft_len + 1,
        _ => MAX_DRAFT_LEN + 1,
    })
}

/// Bytes of what a drafter sends of its distributions in a round, where it sends them whole.
fn drafted(method: &Choice, draft_len: u32, vocab_size: u32) -> u64 {
    let fields = method.proposal_options();
    let row = match fields.form {
        ProposalForm::Dense { half: true } => NUMBER / 2,
        ProposalForm::Dense { half: false } => NUMBER,
        _ => return 0,
    };
    let unscaled = if fields.unscaled { NUMBER } else { 0 };
    positions(method, draft_len) * u64::from(vocab_size) * (row + unscaled)
}

/// Refuses distributions that would not fit into one message.
///
/// # Errors
/// Names the field that asks for them.
pub(super) fn check_message(
    method: &Choice,
    draft_len: u32,
    vocab_size: u32,
    reports: bool,
) -> Result<(), BadField> {
    let positions = positions(method, draft_len);
    let drafted = drafted(method, draft_len, vocab_size);
    // The target model's distribution, scaled and unscaled, comes on top.
    let reported = drafted + positions * u64::from(vocab_size) * 2 * NUMBER;
    for (field, bytes, requested) in [
        ("settings.proposal", drafted, true),
        ("report_distributions", reported, reports),
    ] {
        if requested && bytes > MAX_MESSAGE_BYTES as u64 {
            let (megabytes, most) = (bytes >> 20, MAX_MESSAGE_BYTES >> 20);
            let problem = format!(
                "the distributions of {positions} positions take {megabytes} MiB, a message holds {most}; \
                 ask for fewer draft tokens, or for sparse distributions"
            );
            return Err(BadField::new(field, problem));
        }
    }
    Ok(())
}

/// Most bytes of distributions that `request` holds at a time; 0 where only tokens and sparse distributions
/// travel.
pub(crate) fn distribution_bytes(request: &AdmittedRequest) -> u64 {
    let (method, vocab_size) = (&request.method, request.vocab_size);
    let drafted = drafted(method, request.draft_len, vocab_size);
    if !method.accept_at_coordinator {
        return COPIES * drafted;
    }
    let rows = 1 + u64::from(request.needs_target_unscaled());
    let scored = positions(method, request.draft_len) * u64::from(vocab_size) * rows * NUMBER;
    let round = COPIES * (drafted + scored);
    if request.report_distributions {
        // One report is made while another waits for the client.
        round + COPIES * (drafted + scored)
    } else {
        round
    }
}

#[cfg(test)]
mod tests {
    use speculation::methods::{MethodSpec, Setup};

    use super::*;

    #[test]
    fn distributions_that_fit_no_message_are_refused() {
        let method = |proposal: &str| {
            let spec = MethodSpec::new("rejection").with("proposal", proposal);
            Choice::resolve(&spec, Setup::at(1.0)).expect("a method")
        };
        let [dense, half, sparse] = ["dense:f32", "dense:f16", "sparse:32"].map(method);
        assert!(check_message(&dense, 64, 152_000, false).is_ok());
        let error = check_message(&dense, 64, 300_000, false).expect_err("74 MiB");
        assert_eq!(error.field, "settings.proposal");
        assert!(check_message(&half, 64, 300_000, false).is_ok());
        assert!(check_message(&sparse, 64, 300_000, false).is_ok());
        let error = check_message(&dense, 64, 152_000, true).expect_err("113 MiB");
        assert_eq!(error.field, "report_distributions");
        assert!(check_message(&dense, 4, 152_000, true).is_ok());
    }
}
