//! The recorded vectors of cascades.

use std::sync::Arc;

use super::models::{Drafts, Model};
use crate::read::{cases_of, close, ids, numbers, row};
use serde_json::Value;
use speculation::TokenId;
use speculation::cascade::emission::{acceptance_ratio, emitted};
use speculation::cascade::{CallNoise, CascadeConfig, Reviewing};
use speculation::max_gram::Bigram;
use speculation::real::argmax;

/// A model that looks at the last two tokens.
struct Table(Vec<Vec<Vec<f64>>>);

impl Table {
    fn of(value: &Value) -> Self {
        let rows = value.as_array().expect("a table").iter();
        let distributions =
            |row: &Value| row.as_array().expect("rows").iter().map(numbers).collect();
        Self(rows.map(distributions).collect())
    }
}

impl Model for Table {
    fn after(&self, context: &[TokenId]) -> (Vec<f64>, Vec<f64>) {
        let [.., before, last] = context else {
            panic!("a context of two tokens");
        };
        let probs = self.0[*before as usize][*last as usize].clone();
        (probs.clone(), probs)
    }
}

#[test]
fn greedy_cascades_draft_what_was_recorded() {
    let mut found = 0;
    for case in cases_of("csdraft", "greedy") {
        let target = Table::of(&case["target_table"]);
        let tables = case["draft_tables"].as_array().expect("tables").iter();
        let tables: Vec<Table> = tables.map(Table::of).collect();
        let rows = case["K_increments"].as_array().expect("a matrix").iter();
        let config = CascadeConfig::new(
            tables.len() + 1,
            true,
            rows.map(ids).collect(),
            case["lenience"].as_f64().expect("a number"),
            case["mag_k"].as_u64().expect("a count") as u32,
        );
        let drafts = Drafts {
            config: Arc::new(config.expect("a cascade")),
            models: tables.iter().map(|table| table as &dyn Model).collect(),
            bigram: Bigram::new(ids(&case["bigram"])).expect("a table"),
            // The recording looks for an end in what the target emits only, and none is there.
            ends: vec![],
        };
        let prompt = ids(&case["prompt"]);
        let mut context = prompt.clone();
        let mut calls = vec![0; tables.len() + 1];
        for iteration in case["iterations"].as_array().expect("iterations") {
            let base_len = (context.len() - prompt.len()) as u32;
            let reviewing = Reviewing::<CallNoise>::Greedy;
            let (block, made) = drafts.draft(&context, base_len, 100, reviewing);
            let block: Vec<TokenId> = block.iter().map(|token| token.id).collect();
            assert_eq!(block, ids(&iteration["draft"]), "{}", case["id"]);
            for (sum, made) in calls.iter_mut().zip(made) {
                *sum += made;
            }
            let before = context.len();
            for draft in block.iter().map(Some).chain([None]) {
                let best = argmax(&target.after(&context).0) as TokenId;
                context.push(best);
                if draft != Some(&best) {
                    break;
                }
            }
            assert_eq!(
                context[before..],
                ids(&iteration["emitted"]),
                "{}",
                case["id"]
            );
        }
        let output = ids(&case["output"]);
        assert_eq!(context[prompt.len()..][..output.len()], output);
        assert_eq!(case["calls"]["mag"], calls.pop().expect("Max-Gram's"));
        for (level, made) in calls.into_iter().enumerate() {
            assert_eq!(case["calls"][format!("d{}", level + 1)], made);
        }
        found += 1;
    }
    assert_eq!(found, 3);
}

#[test]
fn a_review_emits_the_recorded_distribution() {
    let mut found = 0;
    for case in cases_of("csdraft", "emission") {
        let (q, p): (Vec<f64>, Vec<f64>) = (row(&case["q"]), row(&case["p"]));
        let lenience = case["lenience"].as_f64().expect("a number");
        let accept = |token: usize| match q[token] {
            0.0 => 1.0,
            _ => acceptance_ratio(&q, &p, lenience, token as TokenId).min(1.0),
        };
        let accepted: Vec<f64> = (0..q.len()).map(accept).collect();
        close(&accepted, &numbers(&case["accept"]), 1e-12);
        let kept: f64 = accepted.iter().zip(&q).map(|(kept, q)| kept * q).sum();
        close(&[1.0 - kept], &numbers(&case["reject_rate"]), 1e-12);
        close(
            &emitted(&q, &p, lenience),
            &numbers(&case["emission"]),
            1e-12,
        );
        found += 1;
    }
    assert_eq!(found, 2);
}
