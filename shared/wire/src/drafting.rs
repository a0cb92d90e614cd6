//! Who drafts, how much, and in which shape, on the wire; and draft blocks themselves.

use speculation::bad_value::BadValue;
use speculation::cascade::CascadeSettings;
use speculation::draft_tree::DraftTree;
use speculation::drafting::policies::{CONFIDENCE, ENTROPY, LEARNED, POLICIES, StopPolicy};
use speculation::drafting::{Drafting, StopRule, TreeShape};
use speculation::methods::names;
use speculation::verification::AcceptanceLabel;
use v1::draft_length::Policy;
use v1::tree_shape::Shape;

use crate::status::BadField;
use crate::v1;

#[cfg(test)]
mod tests;

/// Reads who drafts; none if it is left open.
///
/// # Errors
/// If it is unknown.
pub fn from_wire(wire: i32) -> Result<Option<Drafting>, BadField> {
    match BadField::enumerated("drafting", wire, "way of drafting")? {
        v1::Drafting::Unspecified => Ok(None),
        v1::Drafting::Model => Ok(Some(Drafting::Model)),
        v1::Drafting::MaxGram => Ok(Some(Drafting::MaxGram)),
        v1::Drafting::Cascade => Ok(Some(Drafting::Cascade)),
    }
}

/// Writes who drafts.
pub fn to_wire(drafting: Drafting) -> v1::Drafting {
    match drafting {
        Drafting::Model => v1::Drafting::Model,
        Drafting::MaxGram => v1::Drafting::MaxGram,
        Drafting::Cascade => v1::Drafting::Cascade,
    }
}

/// Reads what a request sets of a cascade. Whether it fits one, [`speculation::cascade::CascadeConfig::with`] tells.
pub fn cascade_from_wire(wire: Option<&v1::CascadeSettings>) -> CascadeSettings {
    let Some(wire) = wire else {
        return CascadeSettings::default();
    };
    let rows = || wire.k.iter().map(|row| row.tokens.clone()).collect();
    CascadeSettings {
        k: (!wire.k.is_empty()).then(rows),
        lenience: wire.lenience,
        max_gram_tokens: wire.max_gram_tokens,
    }
}

/// Writes what a request sets of a cascade; none where it sets nothing.
pub fn cascade_to_wire(settings: &CascadeSettings) -> Option<v1::CascadeSettings> {
    let rows = settings.k.iter().flatten();
    let row = |tokens: &Vec<u32>| v1::CascadeRow {
        tokens: tokens.clone(),
    };
    (!settings.is_empty()).then(|| v1::CascadeSettings {
        k: rows.map(row).collect(),
        lenience: settings.lenience,
        max_gram_tokens: settings.max_gram_tokens,
    })
}

/// Writes the label of an acceptance head, as the verification it stands for.
pub fn label_to_wire(label: AcceptanceLabel) -> v1::Verification {
    match label {
        AcceptanceLabel::Coupled => v1::Verification::Coupled,
        AcceptanceLabel::Rejection => v1::Verification::Token,
    }
}

/// Reads the stop rule of a round of at most `max_tokens` tokens, with the most tokens that come of it.
///
/// # Errors
/// Names the policy that is unknown, or whose threshold is out of range.
pub fn rule_from_wire(
    wire: Option<&v1::DraftLength>,
    max_tokens: u32,
) -> Result<(StopRule, u32), BadField> {
    let Some(policy) = wire.and_then(|length| length.policy.as_ref()) else {
        return Ok((StopRule::NEVER, max_tokens));
    };
    let rule = match policy {
        Policy::Fixed(0) => {
            let problem = "0 is out of range, expected at least 1";
            return Err(BadField::new("draft_length.fixed", problem));
        }
        &Policy::Fixed(tokens) => return Ok((StopRule::NEVER, tokens.min(max_tokens))),
        &Policy::Confidence(least) => stop("confidence", &CONFIDENCE, least, 0),
        &Policy::Entropy(most) => stop("entropy", &ENTROPY, most, 0),
        Policy::Learned(learned) => stop(
            "learned.threshold",
            &LEARNED,
            learned.threshold,
            learned.min_tokens,
        ),
        Policy::Named(named) => {
            let Some(policy) = StopPolicy::find(&named.name) else {
                let known = POLICIES.iter().map(|policy| policy.name);
                let unknown = BadValue::unknown("draft_length.named.name", &named.name, known);
                return Err(unknown.into());
            };
            stop("named.threshold", policy, named.threshold, named.min_tokens)
        }
    };
    rule.map(|rule| (rule, max_tokens))
}

/// The rule of `policy`, whose threshold stands in `field` of the message.
fn stop(
    field: &str,
    policy: &'static StopPolicy,
    threshold: f64,
    least_tokens: u32,
) -> Result<StopRule, BadField> {
    let (least, most) = policy.range;
    BadField::in_range(&format!("draft_length.{field}"), threshold, least..=most)?;
    Ok(StopRule::new(policy, threshold).with_least(least_tokens))
}

/// Writes the stop rule of a round; none where drafting goes on to the end.
pub fn rule_to_wire(rule: StopRule) -> Option<v1::DraftLength> {
    let policy = policy_of(rule)?;
    Some(v1::DraftLength {
        policy: Some(policy),
    })
}

/// The policies that came first have fields of their own, which every version reads.
fn policy_of(rule: StopRule) -> Option<Policy> {
    let (policy, threshold) = rule.policy()?;
    let min_tokens = rule.least();
    Some(if *policy == CONFIDENCE {
        Policy::Confidence(threshold)
    } else if *policy == ENTROPY {
        Policy::Entropy(threshold)
    } else if *policy == LEARNED {
        Policy::Learned(v1::LearnedStop {
            threshold,
            min_tokens,
        })
    } else {
        Policy::Named(v1::NamedStop {
            name: policy.name.to_owned(),
            threshold,
            min_tokens,
        })
    })
}

/// Reads the shape of a block; absent is a chain.
///
/// # Errors
/// Names the number of siblings or alternatives that is out of range.
pub fn shape_from_wire(wire: Option<v1::TreeShape>) -> Result<TreeShape, BadField> {
    let bounded = |field: &str, value: u32, (least, most): (u32, u32)| {
        BadField::in_range(field, value, least..=most)
    };
    match wire.map(|tree| tree.shape) {
        None => Ok(TreeShape::Chain),
        Some(None) => Err(BadField::new("tree", "no shape, or one of a later version")),
        Some(Some(Shape::Comb(siblings))) => {
            bounded("tree.comb", siblings, names::COMB)?;
            Ok(TreeShape::Comb(siblings))
        }
        Some(Some(Shape::Alternates(alternates))) => {
            bounded("tree.alternates", alternates, names::ALTERNATES)?;
            Ok(TreeShape::Alternates(alternates))
        }
    }
}

/// Writes the shape of a block; none for a chain.
pub fn shape_to_wire(shape: TreeShape) -> Option<v1::TreeShape> {
    let shape = match shape {
        TreeShape::Chain => return None,
        TreeShape::Comb(siblings) => Shape::Comb(siblings),
        TreeShape::Alternates(alternates) => Shape::Alternates(alternates),
    };
    Some(v1::TreeShape { shape: Some(shape) })
}

/// Reads a draft block of at most `limit` tokens, each below `vocab_size`.
///
/// # Errors
/// Names what is too much, out of range, or no tree in topological order with distinct siblings.
pub fn tree_from_wire(
    wire: Option<v1::TokenTree>,
    limit: usize,
    vocab_size: u32,
) -> Result<DraftTree, BadField> {
    let v1::TokenTree { token_ids, parents } = wire.unwrap_or_default();
    BadField::at_most("drafts", token_ids.len(), limit, "tokens")?;
    BadField::in_vocabulary("drafts", &token_ids, vocab_size)?;
    let parents = parents_from_wire(&parents)?;
    let tree = DraftTree::new(token_ids, parents);
    tree.map_err(|error| BadField::new("drafts.parents", error.to_string()))
}

/// Reads the parents of nodes: -1 is the root. Whether they make a tree, [`DraftTree::new`] checks.
///
/// # Errors
/// Names the field if a number below -1 stands in it.
pub fn parents_from_wire(wire: &[i32]) -> Result<Vec<Option<u32>>, BadField> {
    let parent = |&parent: &i32| match parent {
        -1 => Ok(None),
        parent => u32::try_from(parent).map(Some).map_err(|_| {
            let problem = format!("{parent} is out of range, expected -1 for the root or a node");
            BadField::new("drafts.parents", problem)
        }),
    };
    wire.iter().map(parent).collect()
}

/// Writes a draft block.
pub fn tree_to_wire(drafts: &DraftTree) -> v1::TokenTree {
    v1::TokenTree {
        token_ids: drafts.tokens().to_vec(),
        parents: parents_to_wire(drafts.parents()),
    }
}

/// Writes the parents of nodes.
pub fn parents_to_wire(parents: &[Option<u32>]) -> Vec<i32> {
    // A block never holds 2^31 nodes.
    let parent = |parent: &Option<u32>| parent.map_or(-1, |parent| parent as i32);
    parents.iter().map(parent).collect()
}
