//! What is told of the draft model, on the wire.

use half::f16;
use speculation::confidence::Confidence;
use speculation::proposal::{Proposal, ProposalForm, ProposalProbs, SPARSE_MOST};
use v1::dense_distribution::Format;
use v1::proposal::Probs;

use crate::status::BadField;
use crate::v1;

/// The fields that a drafter sends beside its distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "numbers that are asked for one by one"
)]
pub struct ProposalFields {
    /// Maximum of the unscaled distribution.
    pub confidences: bool,
    /// Its entropy too.
    pub entropies: bool,
    /// Unscaled probabilities.
    pub unscaled: bool,
    /// Each draft token's unscaled log probability.
    pub logprobs: bool,
}

/// Most tokens of a sparse distribution.
pub const MAX_SPARSE: usize = SPARSE_MOST as usize;

/// Reads how much of the draft distribution is sent.
///
/// # Errors
/// If the form is unknown, or its `top` is out of range.
pub fn form_from_wire(form: i32, top: u32) -> Result<ProposalForm, BadField> {
    match BadField::enumerated("proposal_form", form, "proposal form")? {
        v1::ProposalForm::Unspecified | v1::ProposalForm::None => Ok(ProposalForm::None),
        v1::ProposalForm::Point => Ok(ProposalForm::Point),
        v1::ProposalForm::DenseF32 => Ok(ProposalForm::Dense { half: false }),
        v1::ProposalForm::DenseF16 => Ok(ProposalForm::Dense { half: true }),
        v1::ProposalForm::Sparse => {
            BadField::in_range("proposal_top", top, 1..=MAX_SPARSE as u32)?;
            Ok(ProposalForm::Sparse { top })
        }
    }
}

/// Writes how much of the draft distribution is sent: the form, and the `top` of a sparse one.
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
    let no_probs = match proposal.probs {
        ProposalProbs::None => true,
        ProposalProbs::Point => !form.sends_distributions(),
        ProposalProbs::Sparse { .. } | ProposalProbs::Dense(_) => false,
    };
    let no_numbers = proposal.confidence.is_none() && proposal.logprob.is_none();
    no_probs && no_numbers && proposal.unscaled.is_none()
}

/// Writes what is told of one position in a session of `form`.
pub fn one_to_wire(proposal: Proposal, form: ProposalForm) -> v1::Proposal {
    let Proposal {
        probs,
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
    match probs {
        ProposalProbs::Point if form.sends_distributions() => {
            wire.probs = Some(Probs::Point(v1::PointDistribution {}));
        }
        ProposalProbs::None | ProposalProbs::Point => {}
        ProposalProbs::Sparse { ids, weights } => {
            wire.probs = Some(Probs::Sparse(v1::SparseDistribution {
                token_ids: ids,
                weights: weights.into_iter().flat_map(u16::to_le_bytes).collect(),
                unscaled: unscaled.unwrap_or_default(),
            }));
        }
        ProposalProbs::Dense(row) => {
            let row = if form == (ProposalForm::Dense { half: true }) {
                half_row(&row)
            } else {
                dense_row(&row)
            };
            wire.probs = Some(Probs::Dense(row));
            wire.unscaled = unscaled.map(|unscaled| dense_row(&unscaled));
        }
    }
    wire
}

/// A row in f32.
pub fn dense_row(row: &[f32]) -> v1::DenseDistribution {
    v1::DenseDistribution {
        row: row.iter().flat_map(|mass| mass.to_le_bytes()).collect(),
        format: Format::F32.into(),
    }
}

/// A row in f16; exact for numbers that are half-precision numbers already.
fn half_row(row: &[f32]) -> v1::DenseDistribution {
    let bytes = row
        .iter()
        .flat_map(|&mass| f16::from_f32(mass).to_le_bytes());
    v1::DenseDistribution {
        row: bytes.collect(),
        format: Format::F16.into(),
    }
}

/// Reads the proposals of a block of `drafts` tokens, in a session whose drafter sends `form` and
/// `proposal_fields`.
///
/// # Errors
/// If there is not one for each token, or one is not in the session's form. Whether it is a distribution,
/// and one of its token, is checked where it is used.
pub fn from_wire(
    wire: Vec<v1::Proposal>,
    drafts: usize,
    form: ProposalForm,
    proposal_fields: ProposalFields,
) -> Result<Vec<Proposal>, BadField> {
    let silent = |probs| {
        let proposal = Proposal {
            probs,
            ..Default::default()
        };
        Ok(vec![proposal; drafts])
    };
    if proposal_fields == ProposalFields::default() {
        match form {
            ProposalForm::None => return silent(ProposalProbs::None),
            ProposalForm::Point => return silent(ProposalProbs::Point),
            ProposalForm::Sparse { .. } | ProposalForm::Dense { .. } => {}
        }
    }
    if wire.len() != drafts {
        let problem = format!("{} distributions for {drafts} draft tokens", wire.len());
        return Err(BadField::new("proposals", problem));
    }
    wire.into_iter()
        .map(|proposal| one_from_wire(proposal, form, proposal_fields))
        .collect()
}

/// Reads what is told of one position.
///
/// # Errors
/// If it is not in the session's form, or lacks what the session asks for.
pub fn one_from_wire(
    wire: v1::Proposal,
    form: ProposalForm,
    proposal_fields: ProposalFields,
) -> Result<Proposal, BadField> {
    let missing = |what: &str| BadField::new("proposals", format!("{what} is missing"));
    let confidence = match (wire.max_probability, wire.entropy) {
        (Some(max), Some(entropy)) => Some(Confidence { max, entropy }),
        _ if proposal_fields.confidences => return Err(missing("max_probability or entropy")),
        _ => None,
    };
    if proposal_fields.logprobs && wire.logprob.is_none() {
        return Err(missing("logprob"));
    }
    let (probs, beside) = probs_from_wire(wire.probs, form)?;
    let dense = wire.unscaled.as_ref().map(row_from_wire).transpose()?;
    let unscaled = match &probs {
        _ if !proposal_fields.unscaled => None,
        ProposalProbs::Dense(row) => dense.filter(|dense| dense.len() == row.len()),
        ProposalProbs::Sparse { ids, .. } => {
            Some(beside).filter(|beside| beside.len() == ids.len())
        }
        ProposalProbs::None | ProposalProbs::Point => None,
    };
    if proposal_fields.unscaled && form.sends_distributions() && unscaled.is_none() {
        return Err(missing("unscaled, one for each probability,"));
    }
    Ok(Proposal {
        probs,
        confidence,
        unscaled,
        logprob: wire.logprob,
    })
}

/// Whether `proposal` has the form of its session and the size of its vocabulary. Verification checks that it is
/// a distribution.
pub fn fits(proposal: &v1::Proposal, form: ProposalForm, vocab_size: u32) -> bool {
    let row = 4 * vocab_size as usize;
    let unscaled_fits = |probs: &v1::DenseDistribution| probs.row.len() <= row;
    match (&proposal.probs, form) {
        (None, ProposalForm::None | ProposalForm::Point) => proposal.unscaled.is_none(),
        (Some(Probs::Point(_)), form) => form.sends_distributions() && proposal.unscaled.is_none(),
        (Some(Probs::Sparse(probs)), ProposalForm::Sparse { top }) => {
            let top = top as usize;
            probs.token_ids.len() <= top
                && probs.weights.len() <= 2 * top
                && probs.unscaled.len() <= top
        }
        (Some(Probs::Dense(probs)), ProposalForm::Dense { .. }) => {
            probs.row.len() <= row && proposal.unscaled.as_ref().is_none_or(unscaled_fits)
        }
        _ => false,
    }
}

/// A distribution, and the unscaled probabilities beside a sparse one.
fn probs_from_wire(
    probs: Option<Probs>,
    form: ProposalForm,
) -> Result<(ProposalProbs, Vec<f32>), BadField> {
    let bad = |problem: &str| BadField::new("proposals", problem);
    match (probs, form) {
        (None, ProposalForm::None) => Ok((ProposalProbs::None, Vec::new())),
        (None, ProposalForm::Point) => Ok((ProposalProbs::Point, Vec::new())),
        (Some(Probs::Point(_)), form) if form.sends_distributions() => {
            Ok((ProposalProbs::Point, Vec::new()))
        }
        (Some(Probs::Sparse(sparse)), ProposalForm::Sparse { top }) => {
            if sparse.token_ids.len() > top as usize {
                return Err(bad(
                    "a sparse distribution has more tokens than the session asked for",
                ));
            }
            let (pairs, []) = sparse.weights.as_chunks::<2>() else {
                return Err(bad("weights are not of two bytes each"));
            };
            let weights = pairs.iter().map(|&pair| u16::from_le_bytes(pair)).collect();
            let probs = ProposalProbs::Sparse {
                ids: sparse.token_ids,
                weights,
            };
            Ok((probs, sparse.unscaled))
        }
        (Some(Probs::Dense(dense)), ProposalForm::Dense { half }) => {
            let format = if half { Format::F16 } else { Format::F32 };
            if dense.format != i32::from(format) {
                return Err(bad(
                    "a dense distribution is not in the session's number format",
                ));
            }
            let row = row_from_wire(&dense)?;
            Ok((ProposalProbs::Dense(row), Vec::new()))
        }
        _ => Err(bad("a distribution is not in the session's form")),
    }
}

/// The numbers of a row.
pub(crate) fn row_from_wire(dense: &v1::DenseDistribution) -> Result<Vec<f32>, BadField> {
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
