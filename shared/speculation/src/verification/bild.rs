//! The original BiLD: the target model looks a block over and rolls back to the first draft token it
//! finds too unlikely.
//!
//! Kim et al., "Speculative Decoding with Big Little Decoder" (2023); Narasimhan et al., "Faster
//! Cascades via Speculative Decoding", appendix E.5. With p the target's unscaled distribution, a draft token
//! x stands while `D = -ln p(x)` is at most the rollback threshold. At temperature 0 this is the
//! paper's algorithm. Above it, the token that takes a refused one's place is our choice: the
//! verifier's own sample under the shared noise, so that the output is a function of the seed.

use super::expected::first_refusal;
use super::procedure::{Procedure, Procedures, Randomness, Rows, Stopped};
use super::table::{Draws, Verification, VerificationSpec};
use super::{Block, LastToken, RoundDistributions, Verdict};
use crate::TokenId;
use crate::coupled::choice;
use crate::noise::Noise;
use crate::real::Real;

impl Verification {
    /// A draft token x stands while -ln p(x) is at most the rollback threshold; a part of plan bild.
    pub const BILD: Self = Self::new(&VerificationSpec {
        name: "bild",
        summary: "a draft token x is kept while -ln p(x) is at most the rollback threshold; a part of plan bild",
        wire: 5,
        draws: Draws::Shared,
        reads_draft: false,
        reads_unscaled: true,
        label: None,
        carries_layers: false,
        bonus_may_differ: false,
        is_choosable: false,
        procedures: Procedures::of(&Bild),
    });
}

/// The procedure behind the table's line.
struct Bild;

impl<F: Real> Procedure<F> for Bild {
    fn verify(
        &self,
        block: &Block<'_>,
        draws: Randomness<'_, F>,
        distributions: &mut Rows<'_, F>,
    ) -> Result<Verdict, Stopped> {
        verify(block, draws.rollback, draws.noise, distributions)
    }

    fn length_distribution(
        &self,
        block: &Block<'_>,
        rollback: f64,
        distributions: &mut Rows<'_, F>,
    ) -> Result<Vec<f64>, Stopped> {
        let mut passes = Vec::new();
        for (offset, &draft) in block.drafts.iter().enumerate() {
            let position = distributions.at(offset)?;
            let unscaled = position.target_unscaled.unwrap_or(position.target);
            passes.push(f64::from(u8::from(keeps(unscaled, draft, rollback))));
        }
        Ok(first_refusal(&passes))
    }
}

/// Whether draft token `token` stands under the target's unscaled distribution `unscaled` (vocab): refused
/// iff `-ln p(token)` exceeds `rollback`, in nats.
pub fn keeps<F: Real>(unscaled: &[F], token: TokenId, rollback: f64) -> bool {
    -unscaled[token as usize].as_f64().ln_portable() <= rollback
}

/// Decides `block`. The first refused token is replaced by the verifier's choice from the target
/// distribution, even if that is the same token, and the rest is dropped; if all stand, the choice after
/// them is the bonus.
///
/// # Errors
/// Whatever `distributions` fails with.
pub fn verify<F: Real, L: RoundDistributions<F> + ?Sized>(
    block: &Block<'_>,
    rollback: f64,
    noise: &Noise,
    distributions: &mut L,
) -> Result<Verdict, L::Error> {
    let (drafts, ended) = block.until_end();
    for (offset, &draft) in drafts.iter().enumerate() {
        let position = distributions.at(offset)?;
        let unscaled = position.target_unscaled.unwrap_or(position.target);
        if !keeps(unscaled, draft, rollback) {
            let chosen = choice(position.target, noise, block.base_len + offset as u32);
            let accepted = &drafts[..offset];
            return Ok(Verdict::with_last(accepted, chosen, LastToken::Recovered));
        }
    }
    if ended {
        return Ok(Verdict::ended(drafts));
    }
    let offset = drafts.len();
    let position = block.base_len + offset as u32;
    let bonus = choice(distributions.at(offset)?.target, noise, position);
    Ok(Verdict::with_last(drafts, bonus, LastToken::Bonus))
}
