//! The axes of drafting in effect, and the plans they go with.

use super::names::{self, PlanKind};
use super::{BadValue, MethodRequest};
use crate::drafting::{DraftLen, Drafting, TreeShape};

/// Who proposes, how much, in which shape.
#[derive(Clone, Copy, Debug)]
pub(super) struct DraftingAxes {
    pub(super) drafting: Drafting,
    pub(super) len: DraftLen,
    pub(super) tree: TreeShape,
}

/// The effective axes of drafting under `plan`.
pub(super) fn drafting_of(
    requested: &MethodRequest<'_>,
    plan: PlanKind,
) -> Result<DraftingAxes, BadValue> {
    let axes = DraftingAxes {
        drafting: requested.drafting.unwrap_or_default(),
        len: match requested.draft_len {
            None if plan == PlanKind::Speculative => DraftLen::Auto,
            None => DraftLen::Fixed,
            Some(DraftLen::Stop(rule)) if rule.policy().is_none() => DraftLen::Fixed,
            Some(len) => len,
        },
        tree: requested.tree.unwrap_or_default(),
    };
    names::check_draft_len(axes.len)?;
    names::check_tree(axes.tree)?;
    axes.fit_plan(plan)?;
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
