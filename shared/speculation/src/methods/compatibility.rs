//! Which options go together: the one place. A request's front asks for what a client chose; a drafter and a
//! verifier ask for what reaches them, so that they accept whatever the front lets through.

use std::fmt;

use super::names::{self, TargetKind};
use crate::bad_value::BadValue;
use crate::drafting::policies::Reads;
use crate::drafting::{DraftLen, Drafting, Schedule, TreeShape};
use crate::proposal::ProposalForm;
use crate::target::TargetDistribution;
use crate::verification::Verification;

/// Options that are to go together. The default is what every method goes with.
#[derive(Clone, Copy, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "options that are on or off, each by itself"
)]
pub struct Options {
    /// What the verifier draws from.
    pub target: TargetDistribution,
    /// How draft tokens are accepted.
    pub verification: Verification,
    /// Who proposes.
    pub drafting: Drafting,
    /// When drafting stops.
    pub draft_len: DraftLen,
    /// The shape of blocks.
    pub tree: TreeShape,
    /// Whether target and drafts take turns.
    pub schedule: Schedule,
    /// Whether the coordinator decides acceptance.
    pub accept_at_coordinator: bool,
    /// Whether the temperature is 0.
    pub greedy: bool,
    /// What the drafter sends of its distributions; none where the verifier's part alone is known.
    pub proposal: Option<ProposalForm>,
    /// Whether it sends the distribution at the position after the block, too.
    pub bonus_q: bool,
    /// Whether it sends more than distributions: confidences, entropies, unscaled or log probabilities.
    pub more_fields: bool,
}

impl Options {
    /// Checks that they go together.
    ///
    /// # Errors
    /// Names one that does not go with the others, by its name in a request.
    pub fn check(&self) -> Result<(), BadValue> {
        self.check_schedule()?;
        self.check_drafting()?;
        self.check_length()?;
        self.check_tree()?;
        self.proposal.map_or(Ok(()), |form| self.check_form(form))
    }

    /// A stream scores draft tokens where they are there, and emits the target's own choices.
    fn check_schedule(&self) -> Result<(), BadValue> {
        let name = names::of_schedule(self.schedule);
        let refused = |why: fmt::Arguments<'_>| refused("schedule", name, why);
        let (target, verification) = (TargetKind::of(self.target).name(), self.verification.name);
        match self.schedule {
            Schedule::Stream if self.verification != Verification::COUPLED => {
                refused(format_args!(
                    "needs verification 'coupled', and it is '{verification}', which tests draft tokens against what \
                     a block says of them; choose schedule rounds, or verification coupled"
                ))
            }
            Schedule::Stream if self.target != TargetDistribution::Exact => refused(format_args!(
                "needs target 'exact': target '{target}' is made of the draft model's distribution at every \
                 position, and the target does not wait for it; choose schedule rounds, or target exact"
            )),
            Schedule::Stream if self.accept_at_coordinator => refused(format_args!(
                "is decided where the target model runs, expected accept_at verifier, or schedule rounds"
            )),
            Schedule::Stream if self.tree != TreeShape::Chain => refused(format_args!(
                "takes drafts in whatever shape they come, and tree '{}' is that of a round's block; leave it out, or \
                 choose schedule rounds",
                names::of_tree(self.tree)
            )),
            Schedule::Stream if self.draft_len != DraftLen::Auto => refused(format_args!(
                "has no rounds of draft_len '{}'; leave it out (draft_cap bounds how far drafts go ahead), or choose \
                 schedule rounds",
                names::of_draft_len(self.draft_len)
            )),
            Schedule::Stream if self.drafting == Drafting::Cascade => refused(format_args!(
                "takes drafts of one draft model, or copied from the text, and drafting '{}' is that of several, who \
                 draft in rounds; choose drafting model or max-gram, or schedule rounds",
                names::of_drafting(self.drafting)
            )),
            Schedule::Rounds | Schedule::Stream => Ok(()),
        }
    }

    fn check_drafting(&self) -> Result<(), BadValue> {
        let name = names::of_drafting(self.drafting);
        let refused = |why: fmt::Arguments<'_>| refused("drafting", name, why);
        if self.drafting == Drafting::Model {
            return Ok(());
        }
        if self.target != TargetDistribution::Exact {
            let target = TargetKind::of(self.target).name();
            return refused(format_args!(
                "needs target 'exact': target '{target}' is made of the draft model's distribution at every \
                 position, and not every position is drafted by it; choose drafting model, or target exact"
            ));
        }
        let verification = self.verification.name;
        if !self.verification.is_choosable {
            return refused(format_args!(
                "does not go with verification '{verification}', whose draft model hands over; choose drafting model"
            ));
        }
        // Its residual lasts for the rest of the block, so where a block ends must not depend on it.
        if self.verification.carries_layers && self.drafting == Drafting::Cascade {
            let why = self.lasting_residual();
            return refused(format_args!(
                "{why}; choose drafting model or max-gram, or verification block"
            ));
        }
        if self.bonus_q {
            return refused(format_args!(
                "has no distribution at the position after a block; choose drafting model"
            ));
        }
        if self.more_fields {
            return refused(format_args!(
                "sends of its tokens nothing but their distributions; choose drafting model"
            ));
        }
        Ok(())
    }

    fn check_length(&self) -> Result<(), BadValue> {
        let name = names::of_draft_len(self.draft_len);
        let refused = |why: fmt::Arguments<'_>| refused("draft_len", &name, why);
        let DraftLen::Stop(rule) = self.draft_len else {
            return Ok(());
        };
        // A rule that looks at the context alone is asked anew along the output. What Max-Gram proposes leaves no
        // residual to last: its points rule out the token that replaces them.
        let looks_back = rule.needs_head() && self.drafting == Drafting::Model;
        if self.verification.carries_layers && looks_back {
            let why = self.lasting_residual();
            return refused(format_args!(
                "{why}; choose confidence, entropy, a fixed length or auto, or verification block"
            ));
        }
        if self.verification.carries_layers && self.accept_at_coordinator {
            let verification = self.verification.name;
            return refused(format_args!(
                "is asked where the residual of verification '{verification}' lasts, which is decided where the target \
                 model runs, expected accept_at verifier, or a fixed length"
            ));
        }
        // Max-Gram has no distributions, but tells how sure it is of a token.
        let is_known = match self.drafting {
            Drafting::Model => true,
            Drafting::MaxGram => !rule.reads(Reads::Entropy),
            Drafting::Cascade => false,
        };
        if !is_known {
            let drafting = names::of_drafting(self.drafting);
            return refused(format_args!(
                "needs drafting 'model', whose distributions it looks at, and drafting is '{drafting}'; choose \
                 a fixed length or auto, or drafting model"
            ));
        }
        let needs_head = rule.needs_head() && self.drafting == Drafting::Model;
        if needs_head && self.verification.label.is_none() {
            let verification = self.verification.name;
            return refused(format_args!(
                "needs an acceptance head, and none predicts what verification '{verification}' keeps"
            ));
        }
        Ok(())
    }

    fn check_tree(&self) -> Result<(), BadValue> {
        let name = names::of_tree(self.tree);
        let refused = |why: fmt::Arguments<'_>| refused("tree", &name, why);
        if self.tree == TreeShape::Chain {
            return Ok(());
        }
        if self.target != TargetDistribution::Exact {
            let target = TargetKind::of(self.target).name();
            return refused(format_args!(
                "needs target 'exact': target '{target}' is made of the draft distribution, which is sent for \
                 chains only; choose tree chain, or target exact"
            ));
        }
        let verification = self.verification.name;
        if ![Verification::COUPLED, Verification::TOKEN].contains(&self.verification) {
            return refused(format_args!(
                "needs verification 'coupled' or 'token', and it is '{verification}', which decides chains; choose \
                 tree chain, or verification token"
            ));
        }
        if self.drafting == Drafting::Cascade && self.verification != Verification::COUPLED {
            return refused(format_args!(
                "does not go with drafting 'cascade' under verification '{verification}', whose siblings are drawn \
                 from one distribution; choose tree chain, or verification coupled"
            ));
        }
        if self.accept_at_coordinator {
            return refused(format_args!(
                "is decided where the target model runs, expected accept_at verifier, or tree chain"
            ));
        }
        if self.bonus_q {
            return refused(format_args!(
                "has no one position after it, whose distribution is requested; choose tree chain"
            ));
        }
        if self.more_fields {
            return refused(format_args!(
                "goes without confidences and probabilities, which are sent of chains only; choose tree chain"
            ));
        }
        Ok(())
    }

    fn lasting_residual(&self) -> String {
        format!(
            "does not go with verification '{}', whose residual lasts as long as the block would have gone on: \
             its length must not depend on what is drafted",
            self.verification.name
        )
    }
}

/// Refuses `value` of the option `field`, and says why.
fn refused(field: &str, value: &str, why: fmt::Arguments<'_>) -> Result<(), BadValue> {
    Err(BadValue::new(field, format!("'{value}' {why}")))
}
