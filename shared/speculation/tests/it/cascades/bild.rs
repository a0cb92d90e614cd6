//! The original BiLD, greedy, event by event.

use outrider_tests::session;
use serde_json::{Value, json};
use speculation::TokenId;
use speculation::confidence::Confidence;
use speculation::drafting::StopRule;
use speculation::drafting::policies::CONFIDENCE;
use speculation::noise::Noise;
use speculation::proposal::BadProposal;
use speculation::session::{
    DraftBlock, DraftStop, FinishReason, Input, Plan, Request, SessionConfig,
};
use speculation::verification::{
    LastToken, PositionDistributions, RoundDistributions, Verification,
};

use super::number;
use super::plans::{Finished, run};
use crate::blocks::{block_of, seeded};
use crate::read::{cases, ids, numbers};

/// The target's distributions along a block: one-hot to sample from, and unscaled.
struct Rows(Vec<[Vec<f64>; 2]>);

impl Rows {
    fn new(drafts: &[TokenId], unscaled: impl Fn(&[TokenId]) -> Vec<f64>) -> Self {
        let positions = (0..=drafts.len()).map(|len| {
            let unscaled = unscaled(&drafts[..len]);
            let mut sampling = vec![0.0; unscaled.len()];
            sampling[likeliest(&unscaled) as usize] = 1.0;
            [sampling, unscaled]
        });
        Self(positions.collect())
    }
}

impl RoundDistributions<f64> for Rows {
    type Error = BadProposal;

    fn at(&mut self, offset: usize) -> Result<PositionDistributions<'_, f64>, BadProposal> {
        let [target, unscaled] = &self.0[offset];
        Ok(PositionDistributions {
            target,
            target_unscaled: Some(unscaled),
            draft: &mut [],
        })
    }
}

/// A case: greedy peers on Markov tables, and what they did.
struct Trace {
    case: Value,
    events: Vec<Value>,
}

impl Trace {
    /// The distribution after `output`, which the two latest tokens decide.
    fn probs(&self, table: &str, output: &[TokenId]) -> Vec<f64> {
        let context = [&ids(&self.case["prompt"]), output].concat();
        let &[.., before, last] = &context[..] else {
            panic!("a prompt of less than two tokens");
        };
        numbers(&self.case[table][before as usize][last as usize])
    }

    fn ends(&self) -> Vec<TokenId> {
        let end = self.case["eos"].as_u64();
        end.into_iter().map(|end| end as TokenId).collect()
    }

    fn drafted(&mut self, round: u64, output: &[TokenId], max_tokens: u32) -> Input {
        let unsure = StopRule::new(&CONFIDENCE, number(&self.case, "fallback_prob"));
        let mut context = output.to_vec();
        let mut stop = DraftStop::Length;
        for _ in 0..max_tokens {
            let probs = self.probs("q_table", &context);
            if unsure.stops(Confidence::of(&probs, false)) {
                self.events.push(json!(["fallback"]));
                stop = DraftStop::Policy;
                break;
            }
            let token = likeliest(&probs);
            self.events.push(json!(["small", token]));
            context.push(token);
            if self.ends().contains(&token) {
                stop = DraftStop::EndToken;
                break;
            }
        }
        Input::Drafted {
            round,
            block: DraftBlock {
                drafts: context.split_off(output.len()).into(),
                stop,
                logprobs: Vec::new(),
                forwards: Vec::new(),
            },
        }
    }

    fn verified(&mut self, round: u64, output: &[TokenId], drafts: &[TokenId]) -> Input {
        let most = number(&self.case, "alpha");
        let verification = if self.case["mode"] == "code" {
            Verification::bild_code(most)
        } else {
            Verification::bild(most)
        };
        // As at temperature 0: one-hot distributions, beside the model's own.
        let block = block_of(drafts, output.len() as u32);
        let rows = Rows::new(drafts, |drafted| {
            let context = [output, drafted].concat();
            self.probs("p_table", &context)
        });
        let verdict = seeded(verification, &block, Noise::new(0, 0), rows).expect("a verdict");
        let accepted = verdict.accepted();
        let (token, context) = (
            verdict.emitted[accepted],
            [output, &drafts[..accepted]].concat(),
        );
        let last = if let Some(old) = drafts.get(accepted) {
            let dropped = drafts.len() - accepted;
            let rollback = json!(["rollback", context.len(), dropped, old, token]);
            self.events.push(rollback);
            LastToken::Recovered
        } else {
            self.events.push(json!(["large", token, accepted]));
            LastToken::Bonus
        };
        assert_eq!(verdict.last, last);
        Input::Verified { round, verdict }
    }

    fn run(&mut self) -> Finished {
        let window = number(&self.case, "window") as u32;
        let max_tokens = number(&self.case, "max_new") as u32;
        let vocab_size = self.probs("q_table", &[]).len() as u32;
        let plan = Plan::Bild {
            window,
            verify_on_finish: self.case["verify_on_finish"] == true,
            code_variant: self.case["mode"] == "code",
        };
        let config = SessionConfig {
            end_tokens: self.ends(),
            ..session::limits(plan, 4, max_tokens, vocab_size)
        };
        run(config, |round, output, request| match request {
            Request::Draft { max_tokens, .. } => self.drafted(round, output, *max_tokens),
            Request::Verify { drafts, .. } => self.verified(round, output, drafts.tokens()),
            Request::Decode { .. } => panic!("no peer is lost"),
            Request::Score { .. } => panic!("nobody wants scores"),
        })
    }
}

fn likeliest(probs: &[f64]) -> TokenId {
    let by_mass = |&a: &usize, &b: &usize| probs[a].total_cmp(&probs[b]).then(b.cmp(&a));
    (0..probs.len()).max_by(by_mass).expect("a token") as TokenId
}

#[test]
fn bild_goes_to_and_fro_as_in_the_paper() {
    let cases = cases("bild");
    let cases: Vec<_> = cases
        .iter()
        .filter(|case| case["mode"] == "paper")
        .collect();
    assert!(!cases.is_empty());
    for case in cases {
        let mut trace = Trace {
            case: case.clone(),
            events: Vec::new(),
        };
        let finished = trace.run();
        let statistics = finished.session.statistics();
        let name = &case["id"];
        assert_eq!(json!(finished.tokens()), case["output"], "case {name}");
        assert_eq!(json!(trace.events), case["events"], "case {name}");
        let calls = json!([statistics.target_forwards, statistics.draft_forwards]);
        let expected = json!([case["large_calls"], case["small_calls"]]);
        assert_eq!(calls, expected, "case {name}");
        let length = FinishReason::Length;
        assert!(finished.reason == length || finished.reason == FinishReason::Stop);
    }
}

/// The authors' code, token by token: the target begins, goes on after a rollback, and keeps a block whole where it
/// would choose the first offending token itself. The output, and the calls of the target.
fn by_the_authors(trace: &Trace) -> (Vec<TokenId>, u32) {
    let of = |name| number(&trace.case, name);
    let (most, least) = (of("max_new") as usize, of("fallback_prob"));
    let best = |table: &str, output: &[TokenId]| likeliest(&trace.probs(table, output));
    let (mut output, mut calls) = (vec![best("p_table", &[])], 1);
    let ended = |output: &[TokenId]| {
        let last = output.last().expect("a token");
        trace.ends().contains(last)
    };
    while output.len() < most && !ended(&output) {
        let begin = output.len();
        loop {
            let probs = trace.probs("q_table", &output);
            let full = output.len() - begin == of("window") as usize;
            if full || probs.iter().all(|&mass| mass < least) {
                break;
            }
            output.push(likeliest(&probs));
            if output.len() == most || ended(&output) {
                return (output, calls);
            }
        }
        calls += 1;
        let offends = |&at: &usize| {
            let probs = trace.probs("p_table", &output[..at]);
            -probs[output[at] as usize].ln() > of("alpha")
        };
        if let Some(at) = (begin..output.len()).find(offends)
            && best("p_table", &output[..at]) != output[at]
        {
            output.truncate(at);
            output.push(best("p_table", &output));
            if output.len() == most || ended(&output) {
                break;
            }
            calls += 1;
        }
        output.push(best("p_table", &output));
    }
    (output, calls)
}

#[test]
fn its_code_variant_goes_to_and_fro_as_the_authors_code() {
    let (mut differs, mut kept) = (0, 0);
    for case in cases("bild") {
        for (alpha, fallback) in [(0.0, 0.3), (0.3, 0.4), (1.0, 0.0), (2.0, 0.5), (5.0, 0.6)] {
            let mut case = case.clone();
            (case["alpha"], case["fallback_prob"]) = (json!(alpha), json!(fallback));
            let run = |mode: &str| {
                let mut case = case.clone();
                case["mode"] = json!(mode);
                let mut trace = Trace {
                    case,
                    events: Vec::new(),
                };
                let finished = trace.run();
                let calls = finished.session.statistics().target_forwards;
                (finished.tokens(), calls, trace)
            };
            let (tokens, calls, trace) = run("code");
            assert_eq!((tokens.clone(), calls), by_the_authors(&trace), "{alpha}");
            differs += usize::from(run("paper").0 != tokens);
            let is_rollback = |event: &&Value| event[0] == "rollback";
            let same = trace.events.iter().filter(is_rollback);
            kept += same.filter(|event| event[3] == event[4]).count();
        }
    }
    assert!(differs > 0, "the variants write the same");
    assert_eq!(kept, 0, "a token replaced by itself");
}
