//! Draft laws on the wire.

use speculation::proposal::{Proposal, ProposalForm};
use v1::proposal::Law;

use crate::status::BadField;
use crate::v1;

/// Most tokens of a sparse law.
pub const MAX_SPARSE: usize = 1_024;

/// Reads how much of the draft law is sent.
///
/// # Errors
/// If the form is unknown, not carried out by this version, or its `top` is out of range.
pub fn form_from_wire(form: i32, top: u32) -> Result<ProposalForm, BadField> {
    let form = v1::ProposalForm::try_from(form)
        .map_err(|_| BadField::new("proposal_form", format!("{form} is no proposal form")))?;
    match form {
        v1::ProposalForm::Unspecified | v1::ProposalForm::None => Ok(ProposalForm::None),
        v1::ProposalForm::Point => Ok(ProposalForm::Point),
        v1::ProposalForm::DenseF32 => Ok(ProposalForm::Dense),
        v1::ProposalForm::Sparse if (1..=MAX_SPARSE as u32).contains(&top) => {
            Ok(ProposalForm::Sparse { top })
        }
        v1::ProposalForm::Sparse => {
            let problem = format!("{top} is out of range, expected 1 to {MAX_SPARSE}");
            Err(BadField::new("proposal_top", problem))
        }
        v1::ProposalForm::DenseF16 => {
            let problem = "DENSE_F16 is not carried out by this version, ask for DENSE_F32";
            Err(BadField::new("proposal_form", problem))
        }
    }
}

/// Writes how much of the draft law is sent: the form, and the `top` of a sparse one.
pub fn form_to_wire(form: ProposalForm) -> (v1::ProposalForm, u32) {
    match form {
        ProposalForm::None => (v1::ProposalForm::None, 0),
        ProposalForm::Point => (v1::ProposalForm::Point, 0),
        ProposalForm::Sparse { top } => (v1::ProposalForm::Sparse, top),
        ProposalForm::Dense => (v1::ProposalForm::DenseF32, 0),
    }
}

/// Writes the laws of a block's tokens; none where they need not be sent.
pub fn to_wire(proposals: Vec<Proposal>) -> Vec<v1::Proposal> {
    let law = |proposal| match proposal {
        Proposal::None | Proposal::Point => None,
        Proposal::Sparse { ids, weights } => Some(Law::Sparse(v1::SparseLaw {
            token_ids: ids,
            weights: weights.into_iter().flat_map(u16::to_le_bytes).collect(),
            unscaled: Vec::new(),
        })),
        Proposal::Dense(row) => Some(Law::Dense(dense_row(&row))),
    };
    proposals
        .into_iter()
        .filter_map(law)
        .map(|law| v1::Proposal {
            law: Some(law),
            ..Default::default()
        })
        .collect()
}

/// A row in f32.
pub fn dense_row(row: &[f32]) -> v1::DenseLaw {
    v1::DenseLaw {
        row: row.iter().flat_map(|mass| mass.to_le_bytes()).collect(),
        format: v1::dense_law::Format::F32.into(),
    }
}

/// Reads the laws of a block of `drafts` tokens whose session sends them in `form`.
///
/// # Errors
/// If there is not one for each token, or one is not in the session's form. Whether it is a law,
/// and one of its token, is checked where it is used.
pub fn from_wire(
    wire: Vec<v1::Proposal>,
    drafts: usize,
    form: ProposalForm,
) -> Result<Vec<Proposal>, BadField> {
    match form {
        ProposalForm::None => return Ok(vec![Proposal::None; drafts]),
        ProposalForm::Point => return Ok(vec![Proposal::Point; drafts]),
        ProposalForm::Sparse { .. } | ProposalForm::Dense => {}
    }
    if wire.len() != drafts {
        let problem = format!("{} laws for {drafts} draft tokens", wire.len());
        return Err(BadField::new("proposals", problem));
    }
    wire.into_iter()
        .map(|proposal| law_from_wire(proposal.law, form))
        .collect()
}

/// Whether a law is of a session's form and within its size. Whether it is a law, the verifier
/// checks.
pub fn fits(proposal: &v1::Proposal, form: ProposalForm, vocab_size: u32) -> bool {
    match (&proposal.law, form) {
        (Some(Law::Sparse(law)), ProposalForm::Sparse { top }) => {
            let top = top as usize;
            law.token_ids.len() <= top && law.weights.len() <= 2 * top && law.unscaled.len() <= top
        }
        (Some(Law::Dense(law)), ProposalForm::Dense) => law.row.len() <= 4 * vocab_size as usize,
        _ => false,
    }
}

fn law_from_wire(law: Option<Law>, form: ProposalForm) -> Result<Proposal, BadField> {
    let bad = |problem: &str| BadField::new("proposals", problem);
    match (law, form) {
        (Some(Law::Sparse(sparse)), ProposalForm::Sparse { top }) => {
            if sparse.token_ids.len() > top as usize {
                return Err(bad(
                    "a sparse law has more tokens than the session asked for",
                ));
            }
            let (pairs, []) = sparse.weights.as_chunks::<2>() else {
                return Err(bad("weights are not of two bytes each"));
            };
            let weights = pairs.iter().map(|&pair| u16::from_le_bytes(pair)).collect();
            Ok(Proposal::Sparse {
                ids: sparse.token_ids,
                weights,
            })
        }
        (Some(Law::Dense(dense)), ProposalForm::Dense) => {
            let (masses, []) = dense.row.as_chunks::<4>() else {
                return Err(bad("a dense law is not in f32"));
            };
            if dense.format == i32::from(v1::dense_law::Format::F16) {
                return Err(bad("a dense law is not in f32"));
            }
            let row = masses.iter().map(|&bytes| f32::from_le_bytes(bytes));
            Ok(Proposal::Dense(row.collect()))
        }
        _ => Err(bad("a law is not in the session's form")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laws_survive_the_wire() {
        let sparse = Proposal::Sparse {
            ids: vec![3, 1],
            weights: vec![65_535, 9],
        };
        let dense = Proposal::Dense(vec![0.25, 0.75]);
        for (proposal, form) in [
            (sparse, ProposalForm::Sparse { top: 2 }),
            (dense, ProposalForm::Dense),
            (Proposal::Point, ProposalForm::Point),
            (Proposal::None, ProposalForm::None),
        ] {
            let wire = to_wire(vec![proposal.clone()]);
            assert_eq!(from_wire(wire, 1, form), Ok(vec![proposal]));
            let (wire_form, top) = form_to_wire(form);
            assert_eq!(form_from_wire(wire_form.into(), top), Ok(form));
        }
    }

    #[test]
    fn only_laws_of_the_form_and_size_fit() {
        let law = |ids: u32| {
            let ids: Vec<u32> = (0..ids).collect();
            let weights = vec![1; ids.len()];
            to_wire(vec![Proposal::Sparse { ids, weights }]).remove(0)
        };
        let form = ProposalForm::Sparse { top: 4 };
        assert!(fits(&law(4), form, 10));
        assert!(!fits(&law(5), form, 10));
        assert!(!fits(&law(4), ProposalForm::None, 10));
        assert!(!fits(&v1::Proposal::default(), form, 10));
        let dense = to_wire(vec![Proposal::Dense(vec![0.1; 11])]).remove(0);
        assert!(fits(&dense, ProposalForm::Dense, 11));
        assert!(!fits(&dense, ProposalForm::Dense, 10));
    }

    #[test]
    fn laws_in_another_form_or_number_are_refused() {
        let form = ProposalForm::Sparse { top: 1 };
        let sparse =
            |ids: Vec<u32>, weights: Vec<u16>| to_wire(vec![Proposal::Sparse { ids, weights }]);
        assert!(from_wire(vec![], 1, form).is_err());
        assert!(from_wire(sparse(vec![1, 2], vec![1, 1]), 1, form).is_err());
        assert!(from_wire(to_wire(vec![Proposal::Dense(vec![1.0])]), 1, form).is_err());
        let mut odd = sparse(vec![1], vec![1]);
        if let Some(Law::Sparse(law)) = &mut odd[0].law {
            law.weights.push(0);
        }
        assert!(from_wire(odd, 1, form).is_err());
        assert!(form_from_wire(99, 0).is_err());
        assert!(form_from_wire(v1::ProposalForm::Sparse.into(), 0).is_err());
    }

    /// A coupled round sends token ids only; a sparse law of 32 tokens stays within 170 bytes.
    #[test]
    fn bytes_per_drafted_token_stay_within_their_budget() {
        use prost::Message;
        let tokens: Vec<u32> = (0..16).map(|i| 31_000 + i * 37).collect();
        let header = v1::RoundHeader::default();
        let coupled = v1::VerifyRound {
            header: Some(header),
            drafts: Some(v1::TokenTree {
                token_ids: tokens,
                parents: vec![],
            }),
            ..Default::default()
        };
        assert!(
            coupled.encoded_len() <= 8 * 16,
            "{} bytes",
            coupled.encoded_len()
        );
        let sparse = |at: u32| Proposal::Sparse {
            ids: (0..32).map(|i| at + i * 1_000).collect(),
            weights: (0..32).map(|i| 65_535 / (i + 1)).collect(),
        };
        let sampled = v1::VerifyRound {
            proposals: to_wire((0..16).map(sparse).collect()),
            ..coupled
        };
        let bytes = sampled.encoded_len() / 16;
        assert!(bytes <= 170, "{bytes} bytes");
    }
}
