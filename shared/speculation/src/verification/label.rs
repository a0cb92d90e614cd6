//! What an acceptance head is trained to predict: the probability that a draft token is accepted.
//!
//! Huang et al., "SpecDec++" (2024), section 3.3, for rejection; under coupling the probability is
//! another one, and never larger. A head says which of the two it was trained for.

use std::fmt;
use std::str::FromStr;

use crate::TokenId;
use crate::coupled::conditional_acceptance;
use crate::real::Real;

/// Under which verification a draft token's probability of acceptance is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AcceptanceLabel {
    /// Drafter and verifier choose under shared noise.
    Coupled,
    /// The token is drawn, and accepted with the ratio of the distributions.
    Rejection,
}

impl AcceptanceLabel {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Coupled, Self::Rejection];

    /// The name in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Coupled => "coupled",
            Self::Rejection => "rejection",
        }
    }

    /// The probability that `token`, drawn from `draft` (vocab), is accepted where the target
    /// distribution is `target` (vocab). Both are sampling distributions, those that verification reads.
    pub fn probability<F: Real>(self, draft: &[F], target: &[F], token: TokenId) -> F {
        match self {
            Self::Coupled => conditional_acceptance(draft, target, token),
            Self::Rejection => rejection(draft, target, token),
        }
    }
}

/// `min(1, π(x) / q(x))`; 1 where neither distribution has the token, which is then never drawn.
fn rejection<F: Real>(draft: &[F], target: &[F], token: TokenId) -> F {
    let (q, pi) = (draft[token as usize], target[token as usize]);
    if q > pi { pi / q } else { F::one() }
}

impl fmt::Display for AcceptanceLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for AcceptanceLabel {
    type Err = UnknownLabel;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|label| label.name() == name)
            .ok_or_else(|| UnknownLabel(name.to_owned()))
    }
}

/// No label has that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no label '{0}', expected coupled or rejection")]
pub struct UnknownLabel(pub String);
