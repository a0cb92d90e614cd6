//! Which forms of proposals go with other options: the default, and the forms that carry too little. Plans without a
//! block to verify, and those whose rule acts through the plan, come with coupled verification and the exact target.

use super::BadValue;
use super::compatibility::Options;
use super::names::{TargetKind, of_drafting, of_proposal};
use crate::drafting::{Drafting, TreeShape};
use crate::proposal::{ProposalForm, SPARSE_MOST};
use crate::target::{Needs, TargetDistribution};

/// Most tokens of a sparse draft distribution where a request does not say: what a message of 170 bytes a
/// token holds. Where distributions are flat more would be accepted with more of them; see the guide to
/// methods for what was measured.
pub const SPARSE_TOP: u32 = 32;

impl Options {
    /// What the target distribution must be told at each position.
    pub(super) fn needs(&self) -> Needs {
        self.target.needs(self.greedy)
    }

    /// Whether the distribution that a token is drafted from is one-hot: at temperature 0, and where the
    /// context alone says what is drafted.
    fn is_point(&self) -> bool {
        self.greedy || self.drafting == Drafting::MaxGram
    }

    /// Whether the verifier needs the draft distribution, a one-hot one apart.
    pub(super) fn needs_draft_probs(&self) -> bool {
        self.needs().draft_probs || (self.verification.reads_draft && !self.is_point())
    }

    /// Whether every draft token has a distribution that can be sent. Max-Gram's have none; those of a cascade
    /// have the one that its levels made, where these draw from their distributions.
    fn has_draft_probs(&self) -> bool {
        match self.drafting {
            Drafting::Model => true,
            Drafting::MaxGram => false,
            Drafting::Cascade => self.needs_draft_probs(),
        }
    }

    /// Whether the whole of q is told where a request does not say: a deferral rule under the verifications that test
    /// against q, as the paper has it; and a budget of divergence, which p has no end of where q is cut.
    fn wants_whole(&self) -> bool {
        let judges = matches!(self.target, TargetDistribution::Deferral { .. });
        let is_bounded = matches!(self.target, TargetDistribution::LossyWithin { .. });
        !self.is_point()
            && self.needs().draft_probs
            && (is_bounded || judges && self.verification.reads_draft)
    }

    /// The form where a request does not say.
    pub(super) fn default_form(&self) -> ProposalForm {
        match self {
            _ if self.needs().dense || self.wants_whole() => ProposalForm::Dense { half: false },
            _ if self.needs().draft_probs && self.greedy => ProposalForm::Sparse { top: 1 },
            _ if self.needs_draft_probs() => ProposalForm::Sparse { top: SPARSE_TOP },
            _ if self.verification.reads_draft => ProposalForm::Point,
            _ => ProposalForm::None,
        }
    }

    /// Checks that a client who chose `form` gets what it says: a distribution, where tokens have one. What peers
    /// take is more; such a distribution is one-hot, or read by nobody.
    pub(super) fn check_choice(&self, form: ProposalForm) -> Result<(), BadValue> {
        if form.sends_distributions() && !self.has_draft_probs() {
            return Err(self.nothing_to_tell(form));
        }
        Ok(())
    }

    fn nothing_to_tell(&self, form: ProposalForm) -> BadValue {
        let (who, wanted) = (of_drafting(self.drafting), of_proposal(self.default_form()));
        let when = if self.greedy && self.drafting != Drafting::MaxGram {
            " at temperature 0"
        } else {
            ""
        };
        let name = of_proposal(form);
        let problem = format!(
            "'{name}' sends a distribution, and drafting '{who}' has none to send{when}, expected {wanted}: ask for \
             '{wanted}' instead, or leave it to the method"
        );
        BadValue::new("proposal", problem)
    }

    /// Checks that proposals in `form` carry what the method needs. A form that carries more is accepted: it
    /// still cuts the distribution that draft tokens are drawn from, so it is part of what the request means.
    pub(super) fn check_form(&self, form: ProposalForm) -> Result<(), BadValue> {
        let refused = |problem: String| {
            let name = of_proposal(form);
            Err(BadValue::new("proposal", format!("'{name}' {problem}")))
        };
        let who = || {
            if self.needs().draft_probs {
                format!("target '{}'", TargetKind::of(self.target).name())
            } else {
                format!("verification '{}'", self.verification.name)
            }
        };
        match form {
            _ if self.tree != TreeShape::Chain
                && form != ProposalForm::None
                && !self.verification.reads_draft =>
            {
                refused(
                    "is sent of trees where the verification tests against it only, expected none"
                        .to_owned(),
                )
            }
            ProposalForm::Point if !self.is_point() => refused(
                "is for temperature 0 and drafting max-gram only, expected sparse:K or dense"
                    .to_owned(),
            ),
            ProposalForm::Sparse { .. } | ProposalForm::Dense { .. }
                if self.drafting == Drafting::MaxGram && self.verification.reads_draft =>
            {
                Err(self.nothing_to_tell(form))
            }
            ProposalForm::Point | ProposalForm::None if self.needs_draft_probs() => {
                refused(format!(
                    "does not send the draft distribution, which {} needs, expected sparse:K or dense",
                    who()
                ))
            }
            ProposalForm::None if self.verification.reads_draft => refused(format!(
                "does not say how a token was drafted, which {} needs, expected point or sparse:1",
                who()
            )),
            ProposalForm::Sparse { top } if !(1..=SPARSE_MOST).contains(&top) => refused(format!(
                "is out of range, expected sparse:1 to sparse:{SPARSE_MOST}"
            )),
            ProposalForm::Sparse { .. } if self.needs().dense => refused(format!(
                "sends a part of the draft distribution, and {} needs the whole of it above temperature 0, \
                 expected dense:f32 or dense:f16",
                who()
            )),
            ProposalForm::None
            | ProposalForm::Point
            | ProposalForm::Sparse { .. }
            | ProposalForm::Dense { .. } => Ok(()),
        }
    }
}
