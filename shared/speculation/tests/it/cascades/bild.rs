//! The original BiLD, greedy, event by event.

use serde_json::{Value, json};
use speculation::TokenId;
use speculation::confidence::Confidence;
use speculation::drafting::StopRule;
use speculation::drafting::policies::CONFIDENCE;
use speculation::session::{
    DraftBlock, DraftStop, FinishReason, Input, Plan, Request, SessionConfig,
};
use speculation::verification::{LastToken, Verdict};

use super::number;
use super::plans::{Finished, run};
use crate::read::{cases, ids, numbers};

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
        let mut context = output.to_vec();
        for &draft in drafts {
            let probs = self.probs("p_table", &context);
            if -probs[draft as usize].ln() > most {
                break;
            }
            context.push(draft);
        }
        let accepted = context.len() - output.len();
        let token = likeliest(&self.probs("p_table", &context));
        let last = if let Some(old) = drafts.get(accepted) {
            let dropped = drafts.len() - accepted;
            let rollback = json!(["rollback", context.len(), dropped, old, token]);
            self.events.push(rollback);
            LastToken::Recovered
        } else {
            self.events.push(json!(["large", token, accepted]));
            LastToken::Bonus
        };
        context.push(token);
        Input::Verified {
            round,
            verdict: Verdict {
                emitted: context.split_off(output.len()),
                path: (0..accepted as u32).collect(),
                last,
                deferral: Vec::new(),
                layers: Vec::new(),
            },
        }
    }

    fn run(&mut self) -> Finished {
        let window = number(&self.case, "window") as u32;
        let max_tokens = number(&self.case, "max_new") as u32;
        let vocab_size = self.probs("q_table", &[]).len() as u32;
        let plan = Plan::Bild {
            window,
            verify_on_finish: self.case["verify_on_finish"] == true,
        };
        let config = SessionConfig {
            end_tokens: self.ends(),
            ..SessionConfig::new(plan, 4, max_tokens, vocab_size)
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
