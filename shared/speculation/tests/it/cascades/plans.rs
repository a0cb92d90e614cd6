//! Peers that answer a shipped session with every token their distributions allow, each with its probability.

use std::time::Duration;

use speculation::TokenId;
use speculation::confidence::Confidence;
use speculation::drafting::StopRule;
use speculation::session::{
    Action, DraftBlock, DraftStop, FinishReason, Input, Origin, Request, Session, SessionConfig,
};
use speculation::target::TargetDistribution;
use speculation::verification::{LastToken, Verdict};

use crate::model::{self, apply};
use crate::tree::{Branch, OutputDistribution, enumerate};

/// A language model: the distribution after a prefix.
pub(crate) type Model<'a> = &'a dyn Fn(&[TokenId]) -> Vec<f64>;

/// A request from beginning to end.
pub(crate) struct Finished {
    pub(crate) session: Session,
    pub(crate) emitted: Vec<(TokenId, Origin)>,
    pub(crate) reason: FinishReason,
}

impl Finished {
    pub(crate) fn tokens(&self) -> Vec<TokenId> {
        self.emitted.iter().map(|&(token, _)| token).collect()
    }
}

/// Runs a session; `answer` is told the round, the output and the request.
pub(crate) fn run(
    config: SessionConfig,
    mut answer: impl FnMut(u64, &[TokenId], &Request) -> Input,
) -> Finished {
    let mut session = Session::new(config);
    let mut emitted = Vec::new();
    loop {
        match session
            .poll(Duration::ZERO)
            .expect("a request that is not over")
        {
            Action::Send {
                round,
                base_len,
                request,
                ..
            } => {
                assert_eq!(base_len as usize, session.output().len());
                let input = answer(round, session.output(), &request);
                session.handle(input, Duration::ZERO);
            }
            Action::Emit(tokens) => emitted.extend(tokens),
            Action::Close(_) | Action::EmitScores { .. } => {}
            Action::Finish(reason) => {
                assert!(
                    emitted
                        .iter()
                        .map(|&(token, _)| token)
                        .eq(session.output().to_vec())
                );
                return Finished {
                    session,
                    emitted,
                    reason,
                };
            }
        }
    }
}

/// A drafter with a stop rule, and a verifier that speaks for the target distribution.
pub(crate) struct Peers<'a> {
    pub(crate) draft: Model<'a>,
    pub(crate) target: Model<'a>,
    pub(crate) stop: StopRule,
    /// Most tokens the drafter drafts at once, whatever it is asked for.
    pub(crate) most: u32,
    /// What the verifier speaks for.
    pub(crate) distribution: TargetDistribution,
    pub(crate) ends: &'a [TokenId],
}

impl<'a> Peers<'a> {
    /// Peers that speak for the target model, of which the drafter stops at its rule alone.
    pub(crate) fn new(draft: Model<'a>, target: Model<'a>, stop: StopRule) -> Self {
        Self {
            draft,
            target,
            stop,
            most: u32::MAX,
            distribution: TargetDistribution::Exact,
            ends: &[],
        }
    }

    /// The distribution of a session's outputs; `see` is shown every way it may go, with its probability.
    pub(crate) fn probs(
        &self,
        config: &SessionConfig,
        mut see: impl FnMut(f64, &Finished),
    ) -> OutputDistribution {
        let mut probs = OutputDistribution::new();
        enumerate(|branch| {
            let finished = self.run(config.clone(), branch);
            see(branch.weight(), &finished);
            *probs.entry(finished.tokens()).or_default() += branch.weight();
        });
        probs
    }

    /// Runs a session of `config` with these peers.
    fn run(&self, config: SessionConfig, branch: &mut Branch) -> Finished {
        run(config, |round, output, request| match *request {
            Request::Draft { max_tokens, .. } => self.drafted(round, output, max_tokens, branch),
            Request::Verify { ref drafts, .. } => {
                assert!(drafts.is_empty(), "no block is verified in these plans");
                self.verified(round, output, branch)
            }
            Request::Decode { max_tokens } => self.decoded(round, output, max_tokens, branch),
            Request::Score { .. } => panic!("nobody wants scores"),
        })
    }

    fn drafted(&self, round: u64, output: &[TokenId], max: u32, branch: &mut Branch) -> Input {
        let mut context = output.to_vec();
        let mut logprobs = Vec::new();
        let mut stop = DraftStop::Length;
        for _ in 0..max.min(self.most) {
            let probs = (self.draft)(&context);
            if self.stop.stops(Confidence::of(&probs, true)) {
                stop = DraftStop::Policy;
                break;
            }
            let token = branch.choice(&probs);
            logprobs.push(probs[token as usize].ln() as f32);
            context.push(token);
            if self.ends.contains(&token) {
                stop = DraftStop::EndToken;
                break;
            }
        }
        Input::Drafted {
            round,
            block: DraftBlock {
                drafts: context.split_off(output.len()).into(),
                stop,
                logprobs,
                forwards: Vec::new(),
            },
        }
    }

    fn verified(&self, round: u64, output: &[TokenId], branch: &mut Branch) -> Input {
        let [draft, target] =
            [self.draft, self.target].map(|model| model::Model::plain(&model(output)));
        let (deferred, probs) = apply(self.distribution, &draft, &target, false);
        Input::Verified {
            round,
            verdict: Verdict {
                emitted: vec![branch.choice(&probs)],
                path: Vec::new(),
                last: LastToken::Bonus,
                deferral: deferred.map(|share| share as f32).into_iter().collect(),
                layers: Vec::new(),
            },
        }
    }

    fn decoded(&self, round: u64, output: &[TokenId], max: u32, branch: &mut Branch) -> Input {
        let mut context = output.to_vec();
        for _ in 0..max {
            let token = branch.choice(&(self.target)(&context));
            context.push(token);
            if self.ends.contains(&token) {
                break;
            }
        }
        Input::Decoded {
            round,
            at: output.len() as u32,
            tokens: context.split_off(output.len()),
            drafts: None,
        }
    }
}
