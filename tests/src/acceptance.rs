//! How likely draft tokens are accepted: for offline evaluators, for what acceptance heads learn, and for tests.
//!
//! The accept tests are those of the shipped verifications, each requested for its probability instead of being decided.

use speculation::TokenId;
use speculation::chance::Chance;
use speculation::noise::{Noise, Purpose};
use speculation::real::Real;
use speculation::verification::{
    AcceptanceLabel, DraftChain, RoundDistributions, Verification, bild, verify,
};

/// P(accepted length = i) for i = 0..=L of the draft tokens `drafts` (L) under `distributions`.
///
/// The draft tokens are taken to end nothing, and no residual layers to be live. Coupled
/// verification takes them to be the drafter's choices under the shared noise.
///
/// # Errors
/// Whatever `distributions` fails with, and [`BadProposal`](speculation::proposal::BadProposal) where a draft
/// distribution is missing or gives its own token no mass.
pub fn length_distribution<F: Real, L: RoundDistributions<F>>(
    verification: Verification,
    drafts: &[TokenId],
    distributions: &mut L,
) -> Result<Vec<f64>, L::Error> {
    if verification == Verification::COUPLED {
        return Ok(first_refusal(&coupled_passes(drafts, distributions)?));
    }
    if verification.is_bild() {
        let passes = bild_passes(drafts, verification, distributions)?;
        return Ok(first_refusal(&passes));
    }
    let chain = DraftChain {
        drafts,
        base_len: 0,
        ends: &[],
        horizon: (drafts.len() as u32).into(),
        layers: &[],
    };
    let is_one_by_one = verification == Verification::TOKEN;
    let mut tests = Tests::answered(&chain, is_one_by_one);
    verify(
        verification,
        &chain,
        &Noise::new(0, 0),
        &mut tests,
        distributions,
    )?;
    if is_one_by_one {
        return Ok(first_refusal(&tests.probabilities));
    }
    if verification == Verification::BLOCK_GREEDY {
        // The longest length is tested first.
        tests.probabilities.reverse();
    }
    Ok(longest_pass(&tests.probabilities))
}

/// The probability of each of `drafts` that the target chooses it too.
fn coupled_passes<F: Real, L: RoundDistributions<F>>(
    drafts: &[TokenId],
    distributions: &mut L,
) -> Result<Vec<f64>, L::Error> {
    let mut passes = Vec::new();
    for (offset, &draft) in drafts.iter().enumerate() {
        let position = distributions.at(offset)?;
        position.drawn_with(draft)?;
        let given = coupled_given(position.draft, position.target, draft);
        passes.push(given.as_f64());
    }
    Ok(passes)
}

/// The probability of each of `drafts` that it stands under BiLD.
fn bild_passes<F: Real, L: RoundDistributions<F>>(
    drafts: &[TokenId],
    verification: Verification,
    distributions: &mut L,
) -> Result<Vec<f64>, L::Error> {
    let keeps_repeated = verification.name == Verification::BILD_CODE.name;
    let mut passes = Vec::new();
    for (offset, &draft) in drafts.iter().enumerate() {
        let position = distributions.at(offset)?;
        let unscaled = position.target_unscaled.unwrap_or(position.target);
        if bild::keeps(unscaled, draft, verification.rollback()) {
            passes.push(1.0);
            continue;
        }
        // The target chooses the token again as often as its distribution says.
        let again = position.target[draft as usize].as_f64();
        passes.push(if keeps_repeated { again } else { 0.0 });
        break;
    }
    passes.resize(drafts.len(), 1.0);
    Ok(passes)
}

/// Writes down the probability of every accept test.
struct Tests {
    probabilities: Vec<f64>,
    answer: bool,
}

impl Tests {
    /// Every test of `block` is answered with `answer`, one by which all of them are made.
    fn answered(block: &DraftChain<'_>, answer: bool) -> Self {
        Self {
            probabilities: vec![0.0; block.drafts.len()],
            answer,
        }
    }
}

impl<F: Real> Chance<F> for Tests {
    fn accepts(&mut self, offset: u32, ratio: F) -> bool {
        self.probabilities[offset as usize] = ratio.as_f64().min(1.0);
        self.answer
    }

    fn token(&mut self, _purpose: Purpose, _offset: u32, _probs: &[F]) -> TokenId {
        0
    }
}

/// The distribution of the number of passes before the first refusal.
pub fn first_refusal(passes: &[f64]) -> Vec<f64> {
    let mut so_far = 1.0;
    let mut probs: Vec<f64> = Vec::with_capacity(passes.len() + 1);
    for pass in passes {
        probs.push(so_far * (1.0 - pass));
        so_far *= pass;
    }
    probs.push(so_far);
    probs
}

/// The distribution of the largest i whose test `passes[i - 1]` passes, 0 if none does.
pub fn longest_pass(passes: &[f64]) -> Vec<f64> {
    let mut none_longer = 1.0;
    let mut probs = vec![0.0; passes.len() + 1];
    for (at, pass) in passes.iter().enumerate().rev() {
        probs[at + 1] = none_longer * pass;
        none_longer *= 1.0 - pass;
    }
    probs[0] = none_longer;
    probs
}

/// The probability that `token`, drawn from `draft` (vocab), is accepted as `label` says where the target
/// distribution is `target` (vocab). Both are sampling distributions, those that verification reads.
pub fn label_probability<F: Real>(
    label: AcceptanceLabel,
    draft: &[F],
    target: &[F],
    token: TokenId,
) -> F {
    match label {
        AcceptanceLabel::Coupled => coupled_given(draft, target, token),
        AcceptanceLabel::Rejection => rejection_given(draft, target, token),
    }
}

/// `min(1, π(x) / q(x))`; 1 where neither distribution has the token, which is then never drawn.
fn rejection_given<F: Real>(draft: &[F], target: &[F], token: TokenId) -> F {
    let (q, pi) = (draft[token as usize], target[token as usize]);
    if q > pi { pi / q } else { F::one() }
}

/// The expected number of accepted tokens of one position under token verification: `Σ_x min(q(x), π(x))`.
pub fn rejection<F: Real>(draft: &[F], target: &[F]) -> F {
    draft
        .iter()
        .zip(target)
        .fold(F::zero(), |mass, (&q, &pi)| mass + q.min(pi))
}

/// The probability that sides with distributions `draft` and `target` (vocab) choose the same token:
/// `Σ_j 1 / Σ_i max(π_i/π_j, q_i/q_j)` over tokens both may draw. Lies between
/// `(1 - TV)/(1 + TV)` and `1 - TV`. O(V log V).
pub fn coupled<F: Real>(draft: &[F], target: &[F]) -> F {
    // With r = π/q, the sum for j is (Σ_{r_i >= r_j} π_i + r_j Σ_{r_i < r_j} q_i) / π_j.
    let mut tokens: Vec<(F, F, F)> = draft
        .iter()
        .zip(target)
        .filter(|&(&q, &pi)| q > F::zero() || pi > F::zero())
        .map(|(&q, &pi)| (if q > F::zero() { pi / q } else { F::infinity() }, q, pi))
        .collect();
    tokens.sort_by(|a, b| a.0.partial_cmp(&b.0).unwrap_or(std::cmp::Ordering::Equal));
    let mut target_above = tokens.iter().fold(F::zero(), |mass, token| mass + token.2);
    let mut draft_below = F::zero();
    let mut accepted = F::zero();
    for &(ratio, q, pi) in &tokens {
        if q > F::zero() && pi > F::zero() {
            accepted += pi / (target_above + ratio * draft_below);
        }
        target_above -= pi;
        draft_below += q;
    }
    accepted
}

/// The probability that the side with distribution `target` chooses `token`, given that the side with distribution
/// `draft` chose it: `1 / Σ_i max(q_i, π_i q_x / π_x)`, and 0 where `target` gives the token no mass.
/// At most `min(1, π_x / q_x)`; averaged over tokens drawn from `draft` it is [`coupled`]. For a
/// one-hot draft distribution it is π_x, as for a draft token that was not made with the noise.
pub fn coupled_given<F: Real>(draft: &[F], target: &[F], token: TokenId) -> F {
    let (q, pi) = (
        draft[token as usize].as_f64(),
        target[token as usize].as_f64(),
    );
    if pi <= 0.0 {
        return F::zero();
    }
    let ratio = q / pi;
    let larger = |(&q_i, &pi_i): (&F, &F)| q_i.as_f64().max(pi_i.as_f64() * ratio);
    F::from_f64(1.0 / draft.iter().zip(target).map(larger).sum::<f64>())
}
