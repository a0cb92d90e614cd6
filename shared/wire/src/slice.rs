//! Scored positions on the wire: the target model's distributions, for a coordinator that decides itself.

use speculation::confidence::Confidence;
use v1::slice::Probs;

use crate::proposal::{dense_row, row_from_wire};
use crate::status::BadField;
use crate::v1;

/// How far from 1 the mass of a distribution may be: single precision over a large vocabulary.
const MASS_TOLERANCE: f64 = 1e-3;

/// The target model's distributions at one position.
#[derive(Clone, Debug, PartialEq)]
pub struct Scored {
    /// The sampling distribution (vocab).
    pub probs: Vec<f32>,
    /// The unscaled distribution (vocab), if it was requested and differs from the sampling distribution.
    pub unscaled: Option<Vec<f32>>,
    /// Confidence of the unscaled distribution.
    pub confidence: Confidence<f32>,
}

/// Writes the distributions at the position after `offset` draft tokens. The sampling distribution is sent on its
/// support where that has at most `top` tokens (0: where that is smaller); a slice never cuts the
/// support. Header, timing and whether it is the last are left to the caller.
pub fn to_wire(
    offset: usize,
    probs: &[f32],
    unscaled: Option<&[f32]>,
    confidence: Confidence<f32>,
    top: u32,
) -> v1::Slice {
    let support = probs.iter().filter(|&&mass| mass > 0.0).count();
    let limit = match top {
        0 => probs.len() / 2,
        top => top as usize,
    };
    let probs = if support <= limit {
        let in_support = || probs.iter().enumerate().filter(|&(_, &mass)| mass > 0.0);
        Probs::Support(v1::SupportDistribution {
            token_ids: in_support().map(|(token, _)| token as u32).collect(),
            probabilities: in_support().map(|(_, &mass)| mass).collect(),
        })
    } else {
        Probs::Dense(dense_row(probs))
    };
    v1::Slice {
        node: offset as i32 - 1,
        probs: Some(probs),
        max_probability: confidence.max,
        entropy: confidence.entropy,
        unscaled: unscaled.map(dense_row),
        ..Default::default()
    }
}

/// Whether a slice is within the size of a vocabulary. Whether it is one, [`from_wire`] checks.
pub fn fits(slice: &v1::Slice, vocab_size: u32) -> bool {
    let vocab_size = vocab_size as usize;
    let row_fits = |row: &v1::DenseDistribution| row.row.len() <= 4 * vocab_size;
    let probs_fits = match &slice.probs {
        Some(Probs::Dense(row)) => row_fits(row),
        Some(Probs::Support(probs)) => {
            probs.token_ids.len() <= vocab_size && probs.probabilities.len() <= vocab_size
        }
        None => true,
    };
    probs_fits && slice.unscaled.as_ref().is_none_or(row_fits)
}

/// Reads the distributions at the position after `offset` draft tokens; `unscaled` is whether the unscaled
/// distribution was requested and differs.
///
/// # Errors
/// If the slice is of another position, or holds no distribution: ids out of range or repeated, NaN,
/// negative, or not of mass 1.
pub fn from_wire(
    slice: v1::Slice,
    offset: usize,
    vocab_size: u32,
    unscaled: bool,
) -> Result<Scored, BadField> {
    if unscaled && slice.unscaled.is_none() {
        return Err(BadField::new("slice.unscaled", "missing"));
    }
    if slice.node != offset as i32 - 1 {
        let problem = format!("{} is not the next position", slice.node);
        return Err(BadField::new("slice.node", problem));
    }
    let bad = |problem: &str| BadField::new("slice.probs", problem);
    let probs = match slice.probs {
        None => return Err(bad("missing")),
        Some(Probs::Dense(dense)) => row(&dense, vocab_size, "slice.probs")?,
        Some(Probs::Support(support)) => {
            let mut probs = vec![0.0; vocab_size as usize];
            if support.token_ids.len() != support.probabilities.len() {
                return Err(bad("ids and probabilities do not pair up"));
            }
            for (&token, &mass) in support.token_ids.iter().zip(&support.probabilities) {
                match probs.get_mut(token as usize) {
                    Some(place) if *place == 0.0 => *place = mass,
                    Some(_) => return Err(bad("a token id stands twice")),
                    None => return Err(bad("a token id is out of range")),
                }
            }
            probs
        }
    };
    check_probs(&probs, "slice.probs")?;
    let unscaled = slice
        .unscaled
        .map(|dense| row(&dense, vocab_size, "slice.unscaled"))
        .transpose()?;
    if let Some(unscaled) = &unscaled {
        check_probs(unscaled, "slice.unscaled")?;
    }
    let confidence = Confidence {
        max: slice.max_probability,
        entropy: slice.entropy,
    };
    if !(0.0..=1.001).contains(&confidence.max) {
        return Err(BadField::new("slice.max_probability", "not within 0 to 1"));
    }
    if !(confidence.entropy >= 0.0 && confidence.entropy.is_finite()) {
        return Err(BadField::new("slice.entropy", "not a number from 0 on"));
    }
    Ok(Scored {
        probs,
        unscaled,
        confidence,
    })
}

/// A row in f32 over the whole vocabulary.
fn row(dense: &v1::DenseDistribution, vocab_size: u32, field: &str) -> Result<Vec<f32>, BadField> {
    let is_f32 = dense.format == i32::from(v1::dense_distribution::Format::F32);
    let is_row = is_f32 && dense.row.len() == 4 * vocab_size as usize;
    let row = is_row.then(|| row_from_wire(dense)).and_then(Result::ok);
    row.ok_or_else(|| BadField::new(field, format!("not {vocab_size} numbers in f32")))
}

fn check_probs(probs: &[f32], field: &str) -> Result<(), BadField> {
    if probs.iter().any(|mass| !(0.0..=1.001).contains(mass)) {
        return Err(BadField::new(field, "a probability is not within 0 to 1"));
    }
    let mass: f64 = probs.iter().map(|&mass| f64::from(mass)).sum();
    if (mass - 1.0).abs() > MASS_TOLERANCE {
        let problem = format!("the probabilities add up to {mass}");
        return Err(BadField::new(field, problem));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SURE: Confidence<f32> = Confidence {
        max: 0.5,
        entropy: 1.0,
    };

    #[test]
    fn distributions_survive_the_wire_and_are_never_cut() {
        let probs = [0.5, 0.0, 0.25, 0.25, 0.0, 0.0];
        let other = [0.25, 0.25, 0.5, 0.0, 0.0, 0.0];
        for (top, is_sparse) in [(0, true), (3, true), (2, false)] {
            for unscaled in [None, Some(&other[..])] {
                let slice = to_wire(2, &probs, unscaled, SURE, top);
                assert_eq!(matches!(slice.probs, Some(Probs::Support(_))), is_sparse);
                assert!(fits(&slice, 6) && !fits(&slice, 2));
                let scored = from_wire(slice, 2, 6, unscaled.is_some()).expect("distributions");
                assert_eq!(scored.probs, probs);
                assert_eq!(scored.unscaled.as_deref(), unscaled);
                assert_eq!(scored.confidence, SURE);
            }
        }
    }

    #[test]
    fn what_is_no_distribution_is_refused_by_name() {
        let good = || to_wire(0, &[0.5, 0.5, 0.0], Some(&[0.25, 0.25, 0.5]), SURE, 2);
        assert!(from_wire(good(), 0, 3, true).is_ok());
        let support = |token_ids: &[u32], probabilities: &[f32]| {
            let (token_ids, probabilities) = (token_ids.into(), probabilities.into());
            Some(Probs::Support(v1::SupportDistribution {
                token_ids,
                probabilities,
            }))
        };
        let dense = |row: &[f32]| Some(Probs::Dense(dense_row(row)));
        let with = |change: &dyn Fn(&mut v1::Slice)| {
            let mut slice = good();
            change(&mut slice);
            slice
        };
        let distributions = [
            None,
            support(&[0, 1], &[1.0]),
            support(&[0, 0], &[0.5, 0.5]),
            support(&[0, 3], &[0.5, 0.5]),
            support(&[0, 1], &[0.5, f32::NAN]),
            support(&[0, 1], &[0.5, 0.4]),
            support(&[0, 1], &[1.5, -0.5]),
            dense(&[0.5, 0.5]),
            dense(&[0.5, 0.6, 0.0]),
        ];
        let distributions = distributions
            .map(|probs| ("slice.probs", with(&|slice| slice.probs.clone_from(&probs))));
        let zeros = || Some(dense_row(&[0.0; 3]));
        let faults = [
            ("slice.node", with(&|slice| slice.node = 0)),
            ("slice.unscaled", with(&|slice| slice.unscaled = zeros())),
            ("slice.unscaled", with(&|slice| slice.unscaled = None)),
            (
                "slice.max_probability",
                with(&|slice| slice.max_probability = f32::NAN),
            ),
            ("slice.entropy", with(&|slice| slice.entropy = -1.0)),
        ];
        for (field, slice) in faults.into_iter().chain(distributions) {
            assert_eq!(from_wire(slice, 0, 3, true).expect_err(field).field, field);
        }
    }
}
