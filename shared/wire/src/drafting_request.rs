//! What a request asks of drafting, from the message to numbers in range.

use speculation::drafting::{DraftLen, Drafting, TreeShape};

use crate::drafting::{self, Length};
use crate::status::BadField;
use crate::v1;

/// Most draft tokens a request may ask for in a round.
pub const MAX_DRAFT_LEN: u32 = 64;

/// What a request asks of drafting; none where it leaves that open.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DraftingRequest {
    /// Who proposes.
    pub drafting: Option<Drafting>,
    /// When drafting stops.
    pub draft_len: Option<DraftLen>,
    /// The shape of blocks.
    pub tree: Option<TreeShape>,
    /// Most tokens of a chain, or levels of a tree.
    pub most: Option<u32>,
}

impl DraftingRequest {
    /// Reads `request`.
    ///
    /// # Errors
    /// Names the field that is unknown, out of range, or contradicts another.
    pub fn read(request: &v1::GenerateRequest) -> Result<Self, BadField> {
        let mut requested = Self {
            drafting: drafting::from_wire(request.drafting)?,
            draft_len: None,
            tree: match request.tree {
                None => None,
                tree => Some(drafting::shape_from_wire(tree)?),
            },
            most: request.draft_len,
        };
        match drafting::length_from_wire(request.draft_length.as_ref())? {
            None => requested.draft_len = requested.most.map(|_| DraftLen::Fixed),
            Some(Length::Policy(policy)) => requested.draft_len = Some(policy),
            Some(Length::Fixed(tokens)) => {
                in_range("draft_length.fixed", tokens)?;
                if let Some(most) = requested.most.filter(|&most| most != tokens) {
                    let problem =
                        format!("{tokens} contradicts draft_len {most}, leave one of them out");
                    return Err(BadField::new("draft_length.fixed", problem));
                }
                requested.most = Some(tokens);
                requested.draft_len = Some(DraftLen::Fixed);
            }
        }
        if let Some(most) = requested.most {
            in_range("draft_len", most)?;
        }
        Ok(requested)
    }
}

fn in_range(field: &str, value: u32) -> Result<(), BadField> {
    if (1..=MAX_DRAFT_LEN).contains(&value) {
        return Ok(());
    }
    let problem = format!("{value} is out of range, expected 1 to {MAX_DRAFT_LEN}");
    Err(BadField::new(field, problem))
}
