//! What a part of a row can never answer, by name.

use crate::TokenId;
use crate::history::History;
use crate::sampling::SamplingParams;
use crate::target::TargetDistribution;
use crate::verification::Verification;

/// Why a decision cannot be made from a part of a row, however large the part is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RowRefusal {
    /// The repetition penalty divides or multiplies a logit by its sign, which log probabilities do not tell.
    #[error("repetition_penalty needs logits, and the engine returns log probabilities")]
    RepetitionPenalty,
    /// A grammar masks most of a row at most positions.
    #[error("a grammar masks whole rows, and the engine returns parts of them")]
    Grammar,
    /// The verification reads more of a row than its choice and a draft token's probability.
    #[error("verification '{0}' reads whole rows, and the engine returns parts of them")]
    Verification(&'static str),
    /// The target distribution mixes in the draft model's, which reads whole rows.
    #[error("only the exact target distribution can be told from parts of rows")]
    TargetDistribution,
    /// A token had to be asked for, because it is raised or because the draft distribution has it, and is not
    /// among the answers.
    #[error("the engine was not asked for token {0}, which must be known")]
    NotKnown(TokenId),
    /// Nothing is left that may be drawn.
    #[error("no token is left after bans, mask and bias")]
    NoSupport,
    /// The coordinator decides.
    #[error("the coordinator decides by whole rows, and the engine returns parts of them")]
    AtCoordinator,
}

impl RowRefusal {
    /// Returns the field of a session that is to be changed.
    pub fn field(self) -> &'static str {
        match self {
            Self::AtCoordinator => "accept_at",
            Self::Grammar => "sampling.grammar",
            Self::RepetitionPenalty => "sampling.repetition_penalty",
            Self::TargetDistribution => "target",
            Self::Verification(_) => "verification",
            Self::NotKnown(_) | Self::NoSupport => "sampling",
        }
    }
}

/// Checks that requests with `params` can be decided from parts of rows: coupled and token verification of the
/// exact target distribution, without a repetition penalty, and not by the coordinator.
///
/// # Errors
/// Names what cannot.
pub fn check(
    params: &SamplingParams,
    target: &TargetDistribution,
    verification: Verification,
    accept_at_coordinator: bool,
) -> Result<(), RowRefusal> {
    if accept_at_coordinator {
        return Err(RowRefusal::AtCoordinator);
    }
    if params.repetition_penalty != 1.0 {
        return Err(RowRefusal::RepetitionPenalty);
    }
    if params.grammar.is_some() {
        return Err(RowRefusal::Grammar);
    }
    if verification != Verification::COUPLED && verification != Verification::TOKEN {
        return Err(RowRefusal::Verification(verification.name));
    }
    if !target.is_exact() {
        return Err(RowRefusal::TargetDistribution);
    }
    Ok(())
}

/// The tokens that must be asked for at a position, whatever their noise, ascending: those which `params` raise
/// after `history`, and all allowed ones if they are at most `most_allowed`. If all allowed ones are known, so is
/// the whole distribution, and no most likely tokens are needed.
///
/// Where draft tokens are tested, the support of the draft distribution must be asked for besides.
pub fn must_ask(params: &SamplingParams, history: &History, most_allowed: usize) -> Vec<TokenId> {
    let allowed = &params.allowed_tokens;
    let mut tokens = Vec::new();
    if allowed.len() <= most_allowed {
        tokens.extend(allowed);
    }
    let raised = params.logit_bias.iter().filter(|&&(_, bias)| bias > 0.0);
    tokens.extend(raised.map(|&(token, _)| token));
    if params.presence_penalty < 0.0 || params.frequency_penalty < 0.0 {
        let in_output = history.seen().filter(|(_, seen)| seen.in_output > 0);
        tokens.extend(in_output.map(|(token, _)| token));
    }
    if !allowed.is_empty() {
        tokens.retain(|token| allowed.contains(token));
    }
    tokens.sort_unstable();
    tokens.dedup();
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{Beta, RULES};
    use crate::verification::VERIFICATIONS;

    #[test]
    fn what_reads_whole_rows_is_refused_by_name() {
        let params = SamplingParams::default();
        let exact = TargetDistribution::Exact;
        let refused: Vec<_> = VERIFICATIONS
            .iter()
            .filter_map(|&verification| check(&params, &exact, verification, false).err())
            .collect();
        let names = ["block", "block-greedy", "bild", "bild-code"];
        assert_eq!(refused, names.map(RowRefusal::Verification));
        let lossless = TargetDistribution::Lossy {
            alpha: 0.0,
            beta: Beta::Tuned,
        };
        let lossless =
            |at_coordinator| check(&params, &lossless, Verification::TOKEN, at_coordinator);
        assert_eq!(lossless(false), Ok(()));
        assert_eq!(lossless(true), Err(RowRefusal::AtCoordinator));
        for rule in RULES.iter().copied() {
            let target = TargetDistribution::Deferral { rule, alpha: 0.5 };
            let error = check(&params, &target, Verification::COUPLED, false);
            assert_eq!(error, Err(RowRefusal::TargetDistribution));
        }
        let params = SamplingParams {
            repetition_penalty: 1.1,
            ..params
        };
        let error = check(&params, &exact, Verification::COUPLED, false);
        assert_eq!(error, Err(RowRefusal::RepetitionPenalty));
    }

    #[test]
    fn what_is_raised_must_be_asked_for() {
        let mut params = SamplingParams {
            logit_bias: vec![(9, 1.0), (4, -1.0), (2, 0.5)],
            presence_penalty: 0.5,
            frequency_penalty: -0.25,
            ..Default::default()
        };
        let history = History::new(&params, &[7], &[3, 3, 1]);
        assert_eq!(must_ask(&params, &history, 10), [1, 2, 3, 9]);
        params.frequency_penalty = 0.25;
        assert_eq!(must_ask(&params, &history, 10), [2, 9]);
        params.allowed_tokens = vec![9, 5, 5];
        assert_eq!(must_ask(&params, &history, 10), [5, 9]);
        assert_eq!(must_ask(&params, &history, 1), [9]);
    }
}
