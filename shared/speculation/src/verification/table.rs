//! The verifications, each described in one place.
//!
//! A verification is a constant [`Verification`] in a file of its own, told by its [`Procedure`], and a line in
//! [`VERIFICATIONS`]. Names on the command line and on the wire, listings, what peers must send, and who draws with which
//! noise are read from there.

use derive_more::From;
use strum::{Display, EnumString, IntoStaticStr};

/// Every verification, in the order of listings.
pub const VERIFICATIONS: &[Verification] = &[
    Verification::COUPLED,
    Verification::TOKEN,
    Verification::BLOCK,
    Verification::BLOCK_GREEDY,
    Verification::BILD,
    Verification::BILD_CODE,
];

/// Which verification decides a draft block, and the parameter of the one that has one. Two are equal if name and
/// parameter are.
#[derive(Clone, Copy, derive_more::Debug)]
#[debug("Verification({name}, rollback {rollback})")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a property by itself, read in another place"
)]
pub struct Verification {
    /// The name that requests give.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Its number in the wire's enum `Verification`.
    pub wire: i32,
    /// Which noise its draws come from.
    pub draws: Draws,
    /// Whether it tests a draft token against the distribution it was drawn from.
    pub reads_draft: bool,
    /// Whether it reads the target model's unscaled distribution.
    pub reads_unscaled: bool,
    /// What an acceptance head must have been trained for to predict it; none where none does.
    pub label: Option<AcceptanceLabel>,
    /// Whether a refusal changes the target distribution of later rounds too, and so where blocks end must not
    /// depend on what is drafted.
    pub carries_layers: bool,
    /// Whether the token after a block that was accepted whole may come from another distribution than those in it,
    /// because the output depends on where blocks end anyway.
    pub bonus_may_differ: bool,
    /// Whether a request can choose it, beside being a part of a plan.
    pub is_choosable: bool,
    /// How it decides.
    pub(super) procedure: Procedure,
    /// The rollback threshold of BiLD, in nats; 0 of others, which have none.
    pub(super) rollback: f64,
}

/// How a verification decides; [`super::verify`] tells them apart.
#[derive(Clone, Copy)]
pub(super) enum Procedure {
    /// See [`super::coupled`].
    Coupled,
    /// See [`super::token`].
    Token,
    /// See [`super::block`].
    Block,
    /// See [`super::block_greedy`].
    BlockGreedy,
    /// See [`super::bild`].
    Bild {
        /// Whether the block stands where the target chooses a refused token again, as in the authors' code.
        keeps_repeated: bool,
    },
}

/// Where the randomness of a verification comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draws {
    /// Drafter and verifier choose tokens under the same noise, by position of the output. A seed gives the same
    /// tokens however blocks are cut.
    Shared,
    /// Each draws with noise of its own, by round.
    Own,
}

impl Verification {
    /// The original BiLD, which keeps a draft token while `-ln p(x)` is at most `rollback`, in nats; p unscaled.
    pub const fn bild(rollback: f64) -> Self {
        Self {
            rollback,
            ..Self::BILD
        }
    }

    /// The same as the authors' code does it: see [`Verification::BILD_CODE`].
    pub const fn bild_code(rollback: f64) -> Self {
        Self {
            rollback,
            ..Self::BILD_CODE
        }
    }

    /// The same with a rollback threshold, in nats, if it is BiLD's.
    #[must_use]
    pub fn with_rollback(self, rollback: f64) -> Self {
        if self.is_bild() {
            Self { rollback, ..self }
        } else {
            self
        }
    }

    /// The rollback threshold of BiLD, in nats; 0 of others, which have none.
    pub fn rollback(&self) -> f64 {
        self.rollback
    }

    /// Whether it is one of BiLD's, whatever its threshold.
    pub fn is_bild(&self) -> bool {
        matches!(self.procedure, Procedure::Bild { .. })
    }

    /// The verification that is called `name`.
    pub fn find(name: &str) -> Option<Self> {
        let mut all = VERIFICATIONS.iter().copied();
        all.find(|verification| verification.name == name)
    }

    /// The verification with the number `wire` on the wire.
    pub fn of_wire(wire: i32) -> Option<Self> {
        let mut all = VERIFICATIONS.iter().copied();
        all.find(|verification| verification.wire == wire)
    }
}

impl Default for Verification {
    fn default() -> Self {
        Self::COUPLED
    }
}

impl PartialEq for Verification {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.rollback == other.rollback
    }
}

/// Under which verification a draft token's probability of acceptance is meant, which an acceptance head is trained to
/// predict: Huang et al., "SpecDec++" (2024), section 3.3, for rejection; under coupling the probability is another one,
/// and never larger. A head says which of the two it was trained for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Display, EnumString, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
#[strum(parse_err_ty = UnknownLabel, parse_err_fn = UnknownLabel::from)]
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
        self.into()
    }
}

/// No label has that name.
#[derive(Clone, Debug, PartialEq, Eq, From, thiserror::Error)]
#[from(&str)]
#[error("no label '{0}', expected coupled or rejection")]
pub struct UnknownLabel(pub String);
