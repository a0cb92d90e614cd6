//! Drafting text with the draft model, on the engine thread, in one branch.
//!
//! At a temperature drafter and verifier draw with one noise, keyed by output position and token. A draft token that is
//! written as a token of the target is drawn with the target's noise of that token, several that are written alike as one; of
//! those that are not, their mass is, and one of them with other noise. So where the draft model's distribution over the
//! target's tokens is near the target's own, both mostly choose the same, and the rest is a guess as any other.

use std::sync::Arc;

use model::engine::{StepRows, Task, TaskError, TaskProgress};
use ops::metrics::PeerMetrics;
use peer::progress::Reporter;
use peer::{Commits, Cost, Lent, RoundError};
use speculation::TokenId;
use speculation::coupled::choice;
use speculation::drafting::policies::Reads;
use speculation::drafting::{StopRule, Stopping};
use speculation::history::History;
use speculation::noise::{InnerCall, Noise, Purpose};
use speculation::pending::ProposedTree;
use speculation::pipeline::{DistributionError, Pipeline, Want};
use speculation::real::argmax;
use speculation::sampling::SamplingParams;
use speculation::verification::Verification;
use tokio::sync::mpsc;
use wire::open::SessionSpec;

use crate::translations::{TranslatedDrafts, Translations};

/// Proposals on their way out of the engine; what finds no place is told with the next.
const WAITING: usize = 4;

/// Least survival of a draft.
const LEAST: f32 = 0.02;

/// How far is drafted, in the target's tokens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) tokens: usize,
    pub(super) stop_rule: StopRule,
    /// Longest sequence that the engine holds.
    pub(super) longest: usize,
}

/// What a task did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Drafted {
    pub(super) cost: Cost,
    pub(super) forwards: u32,
    /// Whether the stop rule ended it.
    pub(super) has_stopped: bool,
}

/// What a task reports: what it proposes, and in the end what it did.
pub(super) enum Report {
    Proposed(ProposedTree),
    Done(Drafted),
}

/// Drafts text until it is as long as it may be.
pub(super) struct TranslatedTask {
    spec: Arc<SessionSpec>,
    drafts: Lent<Option<TranslatedDrafts>>,
    commits: Commits,
    limits: Limits,
    /// Most tokens of the target past the output, by the credit of the latest commit.
    room: usize,
    price: f32,
    stopping: Stopping,
    sampling: Pipeline,
    want: Want,
    history: History,
    vocab_size: usize,
    ends: Vec<TokenId>,
    /// Mass of the target's tokens.
    images: Vec<f32>,
    unscaled: Vec<f32>,
    tokens: Vec<TokenId>,
    done: Drafted,
    reports: mpsc::Sender<Result<Report, RoundError>>,
    /// How far a block is; none if it is drafted ahead.
    progress: Option<Reporter>,
    metrics: PeerMetrics,
}

/// What a task reports to whoever awaits it.
pub(super) type Reports = mpsc::Receiver<Result<Report, RoundError>>;

impl TranslatedTask {
    /// Returns a task that goes on with `drafts`, and the channel of its reports; none if nothing is to be drafted.
    ///
    /// # Errors
    /// If a commit is malformed.
    pub(super) fn new(
        spec: &Arc<SessionSpec>,
        drafts: Lent<Option<TranslatedDrafts>>,
        (commits, progress): (Commits, Option<Reporter>),
        limits: Limits,
        draft: &Translations,
        metrics: &PeerMetrics,
    ) -> Result<Option<(Self, Reports)>, RoundError> {
        let (reports, receiver) = mpsc::channel(WAITING);
        let sampling = sampling(spec, drafts.as_ref(), draft);
        let rule = limits.stop_rule;
        let mut task = Self {
            history: History::new(&sampling, &[], &[]),
            sampling: Pipeline::new(sampling),
            want: Want {
                max: rule.reads(Reads::Max),
                entropy: rule.reads(Reads::Entropy),
                unscaled: false,
            },
            stopping: Stopping::new(rule),
            vocab_size: draft.vocab_size as usize,
            ends: draft.ends.clone(),
            images: Vec::new(),
            unscaled: Vec::new(),
            tokens: Vec::new(),
            done: Drafted::default(),
            room: usize::MAX,
            price: 0.0,
            spec: Arc::clone(spec),
            drafts,
            commits,
            limits,
            reports,
            progress,
            metrics: metrics.clone(),
        };
        Ok(task.plan()?.then_some((task, receiver)))
    }

    /// Decides whether there is more to draft, after what the target chose meanwhile, and proposes what is new.
    fn plan(&mut self) -> Result<bool, RoundError> {
        let Some(drafts) = &mut *self.drafts else {
            return Ok(false);
        };
        if let Some(commit) = self.commits.take() {
            drafts.follow(commit.beyond(drafts.output_len(), self.spec.vocab_size)?);
            (self.room, self.price) = (commit.credit as usize, commit.price);
        }
        // Who awaits a block takes all of it in the end.
        let is_ahead = self.progress.is_none();
        if is_ahead
            && let Ok(place) = self.reports.try_reserve()
            && let Some(proposed) = drafts.propose(self.limits.tokens)
        {
            place.send(Ok(Report::Proposed(proposed)));
        }
        let drafted = drafts.in_target().len();
        let least = LEAST.max(self.price);
        let has_room = drafted < self.limits.tokens && (drafted == 0 || self.room > 0);
        let is_worth = !is_ahead || drafts.survival(drafted + 1) >= least;
        let has_ended = drafts.has_ended() || drafts.is_lost() || self.done.has_stopped;
        let goes_on = has_room && is_worth && !has_ended;
        if goes_on {
            self.tokens.clear();
            self.tokens
                .extend_from_slice(drafts.sequence(self.limits.longest));
        }
        Ok(goes_on && !self.tokens.is_empty())
    }

    /// Reads the logits of the next draft token, and takes it.
    fn draft(&mut self, row: &mut [f32]) -> Result<(), DistributionError> {
        let Some(drafts) = &mut *self.drafts else {
            return Ok(());
        };
        let probs = &mut row[..self.vocab_size];
        let position = (drafts.output_len() + drafts.in_target().len()) as u32;
        let observed = self.sampling.distributions(
            probs,
            &mut self.unscaled,
            self.want,
            &self.history,
            position,
        )?;
        if self
            .stopping
            .stops_before(observed.confidence.unwrap_or_default())
        {
            self.done.has_stopped = true;
            return Ok(());
        }
        let is_coupled = self.spec.verification == Verification::COUPLED;
        let token = if is_coupled && self.spec.sampling.temperature > 0.0 {
            self.images.resize(self.spec.vocab_size as usize, 0.0);
            let end = self.spec.sampling.end_tokens.first().copied();
            let image = |token| {
                if self.ends.contains(&token) {
                    end
                } else {
                    drafts.translator.image(token)
                }
            };
            draw(&self.spec.noise, image, probs, &mut self.images, position)
        } else {
            argmax(probs) as TokenId
        };
        if self.ends.contains(&token) {
            if let Some(&end) = self.spec.sampling.end_tokens.first() {
                drafts.ends_with(end);
            }
            return Ok(());
        }
        drafts.push(token);
        self.done.has_stopped = self.stopping.drawn();
        Ok(())
    }
}

/// Draws a draft token from `probs`, of which `image` tells the target's tokens, with the noise of output position `position`;
/// `images` is as long as the target's vocabulary.
fn draw(
    noise: &Noise,
    image: impl Fn(TokenId) -> Option<TokenId>,
    probs: &mut [f32],
    images: &mut [f32],
    position: u32,
) -> TokenId {
    images.fill(0.0);
    let mut mass = 0.0;
    for (&prob, token) in probs.iter().zip(0..) {
        if prob > 0.0
            && let Some(image) = image(token)
        {
            images[image as usize] += prob;
            mass += f64::from(prob);
        }
    }
    let uniform = noise.draw(Purpose::Draft, 0, position, InnerCall::default());
    let chosen = (uniform < mass).then(|| choice(images, noise, position));
    // Of several that are written alike the most likely one.
    for (prob, token) in probs.iter_mut().zip(0..) {
        if *prob > 0.0 && image(token) != chosen {
            *prob = 0.0;
        }
    }
    match chosen {
        Some(_) => argmax(probs) as TokenId,
        None => choice(probs, &noise.unshared(), position),
    }
}

/// Returns how draft tokens are drawn: as the request's are, but for what names tokens.
fn sampling(
    spec: &SessionSpec,
    drafts: Option<&TranslatedDrafts>,
    draft: &Translations,
) -> SamplingParams {
    let wanted = &spec.sampling;
    let special = drafts.iter().flat_map(|it| it.translator.special());
    let ends = !wanted.end_tokens.is_empty();
    let banned = special.filter(|token| !(ends && draft.ends.contains(token)));
    SamplingParams {
        temperature: wanted.temperature,
        top_k: wanted.top_k,
        top_p: wanted.top_p,
        min_p: wanted.min_p,
        banned_tokens: banned.copied().collect(),
        ..SamplingParams::default()
    }
}

impl Task for TranslatedTask {
    fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    fn scored_from(&self) -> usize {
        self.tokens.len() - 1
    }

    fn prefilled(&mut self, done: usize, total: usize) {
        if let Some(progress) = &mut self.progress {
            progress.part(done, total);
        }
    }

    fn step(&mut self, mut rows: StepRows<'_>) -> TaskProgress {
        let timing = rows.timing;
        self.done.forwards += 1;
        if self.progress.is_none() {
            // Nobody reads what a task that drafts ahead did.
            self.metrics
                .forwarded(timing.forward, timing.batch_sequences);
        }
        self.done.cost.add(&Cost::of(timing));
        if let Some(progress) = &mut self.progress {
            progress.step(timing.forwarded_tokens);
        }
        let drafted = self.draft(rows.row_mut(0)).map_err(RoundError::from);
        match drafted.and_then(|()| self.plan()) {
            Ok(true) => TaskProgress::Continue,
            Ok(false) => {
                let _nobody = self.reports.try_send(Ok(Report::Done(self.done)));
                TaskProgress::Done
            }
            Err(error) => {
                let _nobody = self.reports.try_send(Err(error));
                TaskProgress::Done
            }
        }
    }

    fn is_cancelled(&self) -> bool {
        self.reports.is_closed()
    }

    fn fail(self: Box<Self>, error: TaskError) {
        let _nobody = self.reports.try_send(Err(error.into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shared_is_drawn_with_the_targets_noise_and_the_rest_as_often_as_it_is_likely() {
        let probs = [0.05, 0.15, 0.2, 0.1, 0.3, 0.2];
        // The first two are written alike, the last two are no token of the target.
        let image = |token: TokenId| [7, 7, 3, 9].get(token as usize).copied();
        let mut expected = [0.0; 12];
        for (prob, token) in probs.into_iter().zip(0..) {
            if let Some(image) = image(token) {
                expected[image as usize] += prob;
            }
        }
        let noise = Noise::new(3, 0);
        let mut counts = [0_u32; 6];
        for position in 0..20_000 {
            let (mut row, mut images) = (probs, [0.5; 12]);
            let token = draw(&noise, image, &mut row, &mut images, position);
            counts[token as usize] += 1;
            if let Some(found) = image(token) {
                assert_eq!(found, choice(&expected, &noise, position));
            }
        }
        // The likelier of two that are alike.
        let likely = [0.0, 0.2, 0.2, 0.1, 0.3, 0.2];
        for (count, likely) in counts.into_iter().zip(likely) {
            let share = f64::from(count) / 20_000.0;
            assert!((share - likely).abs() < 0.015, "{counts:?}");
        }
    }
}
