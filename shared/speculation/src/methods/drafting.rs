//! The axes of drafting in effect, and the plans they go with.

use super::names::{self, PlanKind};
use super::parameters;
use super::spec::MethodSpec;
use super::table::{DRAFT_LEN, DRAFTING, TREE};
use crate::bad_value::BadValue;
use crate::drafting::{DraftLen, Drafting, TreeShape};

/// Who proposes, how much, in which shape.
#[derive(Clone, Copy, Debug)]
pub(super) struct DraftingAxes {
    pub(super) drafting: Drafting,
    pub(super) len: DraftLen,
    pub(super) tree: TreeShape,
    /// Most tokens of a chain, or levels of a tree, if the request says.
    pub(super) most: Option<u32>,
}

/// Returns the effective axes of drafting under `plan`. A request that does not say how much is drafted leaves it to
/// `usual`.
pub(super) fn drafting_of(
    spec: &MethodSpec,
    plan: PlanKind,
    usual: Option<DraftLen>,
) -> Result<DraftingAxes, BadValue> {
    let drafting = spec.text(&DRAFTING);
    let drafting = drafting.map(|name| names::drafting(&name)).transpose()?;
    let tree = spec.text(&TREE);
    let tree = tree.map(|name| names::tree(&name)).transpose()?;
    let (len, most) = length_of(spec)?;
    let axes = DraftingAxes {
        drafting: drafting.unwrap_or_default(),
        len: match len.or(usual) {
            None if plan == PlanKind::Speculative => DraftLen::Auto,
            None => DraftLen::Fixed,
            Some(len) => len,
        },
        tree: tree.unwrap_or_default(),
        most,
    };
    axes.fit_plan(plan)?;
    Ok(axes)
}

/// Checks what can be told of a length without the rest of `spec`.
///
/// # Errors
/// If it is unknown, or given twice.
pub fn check_length(spec: &MethodSpec) -> Result<(), BadValue> {
    length_of(spec).map(drop)
}

/// Returns how many tokens `spec` asks for in a round, and the most, where it says so.
fn length_of(spec: &MethodSpec) -> Result<(Option<DraftLen>, Option<u32>), BadValue> {
    let cap = parameters::cap(spec)?;
    let Some(text) = spec.text(&DRAFT_LEN) else {
        // A cap alone bounds what is measured to pay.
        return Ok((cap.map(|_| DraftLen::Auto), cap));
    };
    match (names::draft_len(&text)?, cap) {
        ((DraftLen::Fixed, Some(number)), Some(cap)) => {
            let problem = format!(
                "{cap} bounds what a policy or a cascade decides; draft_len is the length itself, {number}"
            );
            Err(BadValue::new("draft_cap", problem))
        }
        ((len, number), cap) => Ok((Some(len), number.or(cap))),
    }
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
