//! The original BiLD: the target model looks a block over and rolls back to the first draft token it
//! finds too unlikely.
//!
//! Kim et al., "Speculative Decoding with Big Little Decoder" (2023); Narasimhan et al., "Faster
//! Cascades via Speculative Decoding", appendix E.5. With p the target's unscaled distribution, a draft token
//! x stands while `D = -ln p(x)` is at most the rollback threshold. At temperature 0 this is the
//! paper's algorithm. Above it, the token that takes a refused one's place is our choice: the
//! verifier's own sample under the shared noise, so that the output is a function of the seed.
//!
//! The authors' code (kssteven418/BigLittleDecoder) differs where that token is the refused one again: then it keeps
//! the whole block, and looks at no later token. [`Verification::BILD_CODE`] does the same.

use super::table::{Procedure, Verification};
use super::{DraftChain, LastToken, RoundDistributions, Verdict};
use crate::TokenId;
use crate::coupled::choice;
use crate::noise::Noise;
use crate::real::Real;

impl Verification {
    /// A draft token x stands while -ln p(x) is at most the rollback threshold; a part of plan bild.
    pub const BILD: Self = Self {
        name: "bild",
        summary: "a draft token x is kept while -ln p(x) is at most the rollback threshold; a part of plan bild",
        wire: 5,
        reads_unscaled: true,
        label: None,
        is_choosable: false,
        procedure: Procedure::Bild {
            keeps_repeated: false,
        },
        ..Self::COUPLED
    };

    /// As [`Verification::BILD`], but where the target would choose a refused token again the whole block stands; a
    /// part of plan bild.
    pub const BILD_CODE: Self = Self {
        name: "bild-code",
        summary: "as bild, but keeps the whole block where the target chooses a refused token again; a part of plan bild",
        wire: 6,
        procedure: Procedure::Bild {
            keeps_repeated: true,
        },
        ..Self::BILD
    };
}

/// Whether draft token `token` stands under the target's unscaled distribution `unscaled` (vocab): refused
/// iff `-ln p(token)` exceeds `rollback`, in nats.
pub fn keeps<F: Real>(unscaled: &[F], token: TokenId, rollback: f64) -> bool {
    -unscaled[token as usize].as_f64().ln_portable() <= rollback
}

/// When the target rolls back.
#[derive(Clone, Copy, Debug)]
pub struct Rollback {
    /// Largest `-ln p(x)` of a draft token that stands, in nats.
    pub threshold: f64,
    /// Whether the whole block stands where the target would choose the refused token again.
    pub keeps_repeated: bool,
}

/// Decides `block`. The first refused token is replaced by the verifier's choice from the target
/// distribution, even if that is the same token (unless `rule` keeps the block then), and the rest is dropped; if all
/// stand, the choice after them is the bonus.
///
/// # Errors
/// Whatever `distributions` fails with.
pub fn verify<F: Real, L: RoundDistributions<F>>(
    block: &DraftChain<'_>,
    rule: Rollback,
    noise: &Noise,
    distributions: &mut L,
) -> Result<Verdict, L::Error> {
    let (drafts, ended) = block.until_end();
    let mut looks = true;
    for (offset, &draft) in drafts.iter().enumerate() {
        let position = distributions.at(offset)?;
        let unscaled = position.target_unscaled.unwrap_or(position.target);
        if looks && !keeps(unscaled, draft, rule.threshold) {
            let chosen = choice(position.target, noise, block.base_len + offset as u32);
            if rule.keeps_repeated && chosen == draft {
                looks = false;
                continue;
            }
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
