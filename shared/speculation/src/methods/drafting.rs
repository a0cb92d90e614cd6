//! The axes of drafting in effect, and what does not go together with them.

use super::names::{self, PlanKind, TargetKind};
use super::{BadValue, MethodRequest};
use crate::drafting::{DraftLen, Drafting, TreeShape};
use crate::target::TargetDistribution;
use crate::verification::Verification;

/// Who proposes, how much, in which shape.
#[derive(Clone, Copy, Debug)]
pub(super) struct DraftingAxes {
    pub(super) drafting: Drafting,
    pub(super) len: DraftLen,
    pub(super) tree: TreeShape,
}

/// The effective axes of drafting, beside the other axes in effect.
pub(super) fn drafting_of(
    asked: &MethodRequest<'_>,
    plan: PlanKind,
    target: TargetDistribution,
    verification: Verification,
) -> Result<DraftingAxes, BadValue> {
    let axes = DraftingAxes {
        drafting: asked.drafting.unwrap_or_default(),
        len: match asked.draft_len {
            None => DraftLen::Fixed,
            Some(DraftLen::Stop(rule)) if rule.policy().is_none() => DraftLen::Fixed,
            Some(len) => len,
        },
        tree: asked.tree.unwrap_or_default(),
    };
    names::check_draft_len(axes.len)?;
    names::check_tree(axes.tree)?;
    axes.fit_plan(plan)?;
    axes.fit_target(target)?;
    axes.fit_verification(verification)?;
    axes.fit_one_another()?;
    if axes.tree != TreeShape::Chain && asked.accept_at_coordinator {
        return Err(axes.refused_tree(
            "is decided where the target model runs, expected accept_at verifier, or tree chain",
        ));
    }
    Ok(axes)
}

impl DraftingAxes {
    fn fit_plan(&self, plan: PlanKind) -> Result<(), BadValue> {
        if plan == PlanKind::Speculative {
            return Ok(());
        }
        let plan = plan.name();
        let why = format!(
            "goes with plan speculative only, and the plan is '{plan}'; leave it out, or choose plan \
             speculative"
        );
        if self.drafting != Drafting::Model {
            return Err(self.refused_drafting(&why));
        }
        if self.len != DraftLen::Fixed {
            return Err(self.refused_len(&why));
        }
        if self.tree != TreeShape::Chain {
            return Err(self.refused_tree(&why));
        }
        Ok(())
    }

    fn fit_target(&self, target: TargetDistribution) -> Result<(), BadValue> {
        if target == TargetDistribution::Exact {
            return Ok(());
        }
        let target = TargetKind::of(target).name();
        if self.drafting != Drafting::Model {
            return Err(self.refused_drafting(&format!(
                "needs target 'exact': target '{target}' is made of the draft model's distribution at every \
                 position, and not every position is drafted by it; choose drafting model, or \
                 target exact"
            )));
        }
        if self.tree != TreeShape::Chain {
            return Err(self.refused_tree(&format!(
                "needs target 'exact': target '{target}' is made of the draft distribution, which is told for \
                 chains only; choose tree chain, or target exact"
            )));
        }
        Ok(())
    }

    fn fit_verification(&self, verification: Verification) -> Result<(), BadValue> {
        if self.tree != TreeShape::Chain && verification != Verification::COUPLED {
            let name = verification.name;
            return Err(self.refused_tree(&format!(
                "needs verification 'coupled', and it is '{name}', which decides chains; choose tree \
                 chain, or verification coupled"
            )));
        }
        if !verification.carries_layers {
            return Ok(());
        }
        // Its residual lasts for the rest of the block, so where a block ends must not depend on it.
        let name = verification.name;
        let why = format!(
            "does not go with verification '{name}', whose residual lasts as long as the block would have gone \
             on: its length must not depend on what is drafted"
        );
        if self.drafting == Drafting::Cascade {
            return Err(self.refused_drafting(&format!(
                "{why}; choose drafting model or max-gram, or verification block"
            )));
        }
        if let DraftLen::Stop(_) = self.len {
            return Err(self.refused_len(&format!(
                "{why}; choose a fixed length or goodput, or verification block"
            )));
        }
        Ok(())
    }

    fn fit_one_another(&self) -> Result<(), BadValue> {
        if self.drafting == Drafting::Model {
            return Ok(());
        }
        let drafting = names::of_drafting(self.drafting);
        if let DraftLen::Stop(_) = self.len {
            return Err(self.refused_len(&format!(
                "needs drafting 'model', whose distributions it looks at, and drafting is '{drafting}'; choose \
                 a fixed length or goodput, or drafting model"
            )));
        }
        if self.tree != TreeShape::Chain && self.drafting == Drafting::MaxGram {
            return Err(self.refused_tree(&format!(
                "needs drafting 'model' or 'cascade', whose distributions rank the siblings, and drafting is \
                 '{drafting}'; choose tree chain, or drafting model or cascade"
            )));
        }
        Ok(())
    }

    fn refused_drafting(&self, why: &str) -> BadValue {
        let name = names::of_drafting(self.drafting);
        BadValue::new("drafting", format!("'{name}' {why}"))
    }

    fn refused_len(&self, why: &str) -> BadValue {
        let name = names::of_draft_len(self.len);
        BadValue::new("draft_len", format!("'{name}' {why}"))
    }

    fn refused_tree(&self, why: &str) -> BadValue {
        let name = names::of_tree(self.tree);
        BadValue::new("tree", format!("'{name}' {why}"))
    }
}
