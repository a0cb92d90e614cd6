//! What is told of the draft model, on the wire.

use half::f16;
use speculation::confidence::Confidence;
use speculation::proposal::{Proposal, ProposalForm, ProposalLaw, SPARSE_MOST};
use v1::dense_law::Format;
use v1::proposal::Law;

use crate::status::BadField;
use crate::v1;

/// What a drafter tells of its law beside the law.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "numbers that are asked for one by one"
)]
pub struct Telling {
    /// Maximum of the unscaled law.
    pub confidences: bool,
    /// Its entropy too.
    pub entropies: bool,
    /// Unscaled probabilities.
    pub unscaled: bool,
    /// Each draft token's unscaled log probability.
    pub logprobs: bool,
}

/// Most tokens of a sparse law.
pub const MAX_SPARSE: usize = SPARSE_MOST as usize;

/// Reads how much of the draft law is sent.
///
/// # Errors
/// If the form is unknown, or its `top` is out of range.
pub fn form_from_wire(form: i32, top: u32) -> Result<ProposalForm, BadField> {
    let form = v1::ProposalForm::try_from(form).map_err(|_| {
        BadField::not_in::<v1::ProposalForm>("proposal_form", form, "proposal form")
    })?;
    match form {
        v1::ProposalForm::Unspecified | v1::ProposalForm::None => Ok(ProposalForm::None),
        v1::ProposalForm::Point => Ok(ProposalForm::Point),
        v1::ProposalForm::DenseF32 => Ok(ProposalForm::Dense { half: false }),
        v1::ProposalForm::DenseF16 => Ok(ProposalForm::Dense { half: true }),
        v1::ProposalForm::Sparse if (1..=MAX_SPARSE as u32).contains(&top) => {
            Ok(ProposalForm::Sparse { top })
        }
        v1::ProposalForm::Sparse => {
            let problem = format!("{top} is out of range, expected 1 to {MAX_SPARSE}");
            Err(BadField::new("proposal_top", problem))
        }
    }
}

/// Writes how much of the draft law is sent: the form, and the `top` of a sparse one.
pub fn form_to_wire(form: ProposalForm) -> (v1::ProposalForm, u32) {
    match form {
        ProposalForm::None => (v1::ProposalForm::None, 0),
        ProposalForm::Point => (v1::ProposalForm::Point, 0),
        ProposalForm::Sparse { top } => (v1::ProposalForm::Sparse, top),
        ProposalForm::Dense { half: false } => (v1::ProposalForm::DenseF32, 0),
        ProposalForm::Dense { half: true } => (v1::ProposalForm::DenseF16, 0),
    }
}

/// Writes what is told of a block's tokens in a session of `form`; nothing where nothing is told of any.
pub fn to_wire(proposals: Vec<Proposal>, form: ProposalForm) -> Vec<v1::Proposal> {
    if proposals.iter().all(|proposal| is_silent(proposal, form)) {
        return Vec::new();
    }
    let one = |proposal| one_to_wire(proposal, form);
    proposals.into_iter().map(one).collect()
}

fn is_silent(proposal: &Proposal, form: ProposalForm) -> bool {
    let no_law = match proposal.law {
        ProposalLaw::None => true,
        ProposalLaw::Point => !tells_laws(form),
        _ => false,
    };
    let no_numbers = proposal.confidence.is_none() && proposal.logprob.is_none();
    no_law && no_numbers && proposal.unscaled.is_none()
}

/// Whether a session of `form` is told laws. A token of a one-hot law, such as Max-Gram's among those of a
/// cascade, is then told as such.
fn tells_laws(form: ProposalForm) -> bool {
    matches!(
        form,
        ProposalForm::Sparse { .. } | ProposalForm::Dense { .. }
    )
}

/// Writes what is told of one position in a session of `form`.
pub fn one_to_wire(proposal: Proposal, form: ProposalForm) -> v1::Proposal {
    let Proposal {
        law,
        confidence,
        unscaled,
        logprob,
    } = proposal;
    let mut wire = v1::Proposal {
        max_probability: confidence.map(|confidence| confidence.max),
        entropy: confidence.map(|confidence| confidence.entropy),
        logprob,
        ..Default::default()
    };
    match law {
        ProposalLaw::Point if tells_laws(form) => wire.law = Some(Law::Point(v1::PointLaw {})),
        ProposalLaw::None | ProposalLaw::Point => {}
        ProposalLaw::Sparse { ids, weights } => {
            wire.law = Some(Law::Sparse(v1::SparseLaw {
                token_ids: ids,
                weights: weights.into_iter().flat_map(u16::to_le_bytes).collect(),
                unscaled: unscaled.unwrap_or_default(),
            }));
        }
        ProposalLaw::Dense(row) => {
            let row = match form {
                ProposalForm::Dense { half: true } => half_row(&row),
                _ => dense_row(&row),
            };
            wire.law = Some(Law::Dense(row));
            wire.unscaled = unscaled.map(|unscaled| dense_row(&unscaled));
        }
    }
    wire
}

/// A row in f32.
pub fn dense_row(row: &[f32]) -> v1::DenseLaw {
    v1::DenseLaw {
        row: row.iter().flat_map(|mass| mass.to_le_bytes()).collect(),
        format: Format::F32.into(),
    }
}

/// A row in f16; exact for numbers that are half-precision numbers already.
fn half_row(row: &[f32]) -> v1::DenseLaw {
    let bytes = row
        .iter()
        .flat_map(|&mass| f16::from_f32(mass).to_le_bytes());
    v1::DenseLaw {
        row: bytes.collect(),
        format: Format::F16.into(),
    }
}

/// Reads what is told of a block of `drafts` tokens whose session is told laws in `form` and
/// `telling`.
///
/// # Errors
/// If there is not one for each token, or one is not in the session's form. Whether it is a law,
/// and one of its token, is checked where it is used.
pub fn from_wire(
    wire: Vec<v1::Proposal>,
    drafts: usize,
    form: ProposalForm,
    telling: Telling,
) -> Result<Vec<Proposal>, BadField> {
    let silent = |law| {
        let proposal = Proposal {
            law,
            ..Default::default()
        };
        Ok(vec![proposal; drafts])
    };
    match form {
        ProposalForm::None if telling == Telling::default() => return silent(ProposalLaw::None),
        ProposalForm::Point if telling == Telling::default() => return silent(ProposalLaw::Point),
        _ => {}
    }
    if wire.len() != drafts {
        let problem = format!("{} laws for {drafts} draft tokens", wire.len());
        return Err(BadField::new("proposals", problem));
    }
    wire.into_iter()
        .map(|proposal| one_from_wire(proposal, form, telling))
        .collect()
}

/// Reads what is told of one position.
///
/// # Errors
/// If it is not in the session's form, or lacks what the session asks for.
pub fn one_from_wire(
    wire: v1::Proposal,
    form: ProposalForm,
    telling: Telling,
) -> Result<Proposal, BadField> {
    let missing = |what: &str| BadField::new("proposals", format!("{what} is missing"));
    let confidence = match (wire.max_probability, wire.entropy) {
        (Some(max), Some(entropy)) => Some(Confidence { max, entropy }),
        _ if telling.confidences => return Err(missing("max_probability or entropy")),
        _ => None,
    };
    if telling.logprobs && wire.logprob.is_none() {
        return Err(missing("logprob"));
    }
    let (law, beside) = law_from_wire(wire.law, form)?;
    let dense = wire.unscaled.as_ref().map(row_from_wire).transpose()?;
    let unscaled = match &law {
        _ if !telling.unscaled => None,
        ProposalLaw::Dense(row) => dense.filter(|dense| dense.len() == row.len()),
        ProposalLaw::Sparse { ids, .. } => Some(beside).filter(|beside| beside.len() == ids.len()),
        ProposalLaw::None | ProposalLaw::Point => None,
    };
    if telling.unscaled && tells_laws(form) && unscaled.is_none() {
        return Err(missing("unscaled, one for each probability,"));
    }
    Ok(Proposal {
        law,
        confidence,
        unscaled,
        logprob: wire.logprob,
    })
}

/// Whether what is told is of a session's form and within its size. Whether it is a law, the
/// verification checks.
pub fn fits(proposal: &v1::Proposal, form: ProposalForm, vocab_size: u32) -> bool {
    let row = 4 * vocab_size as usize;
    let unscaled_fits = |law: &v1::DenseLaw| law.row.len() <= row;
    match (&proposal.law, form) {
        (None, ProposalForm::None | ProposalForm::Point) => proposal.unscaled.is_none(),
        (Some(Law::Point(_)), form) => tells_laws(form) && proposal.unscaled.is_none(),
        (Some(Law::Sparse(law)), ProposalForm::Sparse { top }) => {
            let top = top as usize;
            law.token_ids.len() <= top && law.weights.len() <= 2 * top && law.unscaled.len() <= top
        }
        (Some(Law::Dense(law)), ProposalForm::Dense { .. }) => {
            law.row.len() <= row && proposal.unscaled.as_ref().is_none_or(unscaled_fits)
        }
        _ => false,
    }
}

/// A law, and the unscaled probabilities beside a sparse one.
fn law_from_wire(
    law: Option<Law>,
    form: ProposalForm,
) -> Result<(ProposalLaw, Vec<f32>), BadField> {
    let bad = |problem: &str| BadField::new("proposals", problem);
    match (law, form) {
        (None, ProposalForm::None) => Ok((ProposalLaw::None, Vec::new())),
        (None, ProposalForm::Point) => Ok((ProposalLaw::Point, Vec::new())),
        (Some(Law::Point(_)), form) if tells_laws(form) => Ok((ProposalLaw::Point, Vec::new())),
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
            let law = ProposalLaw::Sparse {
                ids: sparse.token_ids,
                weights,
            };
            Ok((law, sparse.unscaled))
        }
        (Some(Law::Dense(dense)), ProposalForm::Dense { half }) => {
            let format = if half { Format::F16 } else { Format::F32 };
            if dense.format != i32::from(format) {
                return Err(bad("a dense law is not in the session's number format"));
            }
            let row = row_from_wire(&dense)?;
            Ok((ProposalLaw::Dense(row), Vec::new()))
        }
        _ => Err(bad("a law is not in the session's form")),
    }
}

/// The numbers of a row.
fn row_from_wire(dense: &v1::DenseLaw) -> Result<Vec<f32>, BadField> {
    let odd = || BadField::new("proposals", "a dense row ends within a number");
    match Format::try_from(dense.format) {
        Ok(Format::F32 | Format::Unspecified) => {
            let (masses, []) = dense.row.as_chunks::<4>() else {
                return Err(odd());
            };
            Ok(masses
                .iter()
                .map(|&mass| f32::from_le_bytes(mass))
                .collect())
        }
        Ok(Format::F16) => {
            let (masses, []) = dense.row.as_chunks::<2>() else {
                return Err(odd());
            };
            let wide = |&mass| f16::from_le_bytes(mass).to_f32();
            Ok(masses.iter().map(wide).collect())
        }
        Err(_) => {
            let problem = format!("{} is no number format", dense.format);
            Err(BadField::new("proposals", problem))
        }
    }
}

#[cfg(test)]
mod tests;
