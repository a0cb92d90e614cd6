//! What cutting distributions changes, and what it does not.

use speculation::confidence::Confidence;
use speculation::target::{Rule, TargetDistribution, rules};
use speculation::verification::Verification;

use super::distributions::{Model, recorded};
use super::{aims, close, figures};
use crate::recording::{RecordedBlock, Rest, WholeProbs, cut};

/// Where distributions are cut, what a rule judges by is whole and the overlap of the two distributions is too: for the
/// exact target and for rules that judge positions nothing changes. Elsewhere no more than the rest.
#[test]
fn a_cut_changes_nothing_where_pi_is_one_of_the_two_distributions() {
    let mut token_rules = 0;
    for seed in 0..20 {
        let (draft, target) = (Model::new(seed, 40), Model::new(seed + 100, 40));
        let probs = draft.after(&[]).probs;
        let token = (0..40).find(|&v| probs[v] > 0.0).expect("a token") as u32;
        let whole = recorded(draft, target, &[token], 0);
        let cut = recorded(draft, target, &[token], 6);
        let position = &cut.positions[0];
        let of = |mass: fn(&Rest) -> f32| position.rest.iter().map(mass).sum::<f32>();
        let rest = f64::from(of(|rest| rest.draft).min(of(|rest| rest.target)));
        assert!(rest > 0.0);
        assert!(position.ids.len() < whole.positions[0].ids.len());
        for aim in aims() {
            let of = |block| figures(aim, Some(Verification::TOKEN), [block]);
            let (whole, cut) = (of(&whole), of(&cut));
            let (by_whole, by_cut) = (whole.acceptance, cut.acceptance);
            let gained = by_cut.expect("verified") - by_whole.expect("verified");
            let what = format!("seed {seed}, {aim:?}: {gained:e} of {rest:e}");
            match aim {
                TargetDistribution::Deferral { rule, alpha } if rule.judges_tokens() => {
                    if refuses_the_rest(rule, alpha, (draft, target), &position.ids) {
                        token_rules += 1;
                        let rates = [cut, whole].map(|figures| figures.deferral_rate);
                        let [cut, whole] = rates.map(|rate| rate.expect("a rule"));
                        close(cut, whole, &what);
                    }
                }
                TargetDistribution::Lossy { .. } | TargetDistribution::LossyWithin { .. } => {
                    assert!(gained.abs() <= rest, "{what}");
                }
                _ => {
                    assert_eq!(cut.deferral_rate, whole.deferral_rate, "{what}");
                    close(gained, 0.0, &what);
                    close(cut.between, whole.between, &what);
                    close(cut.from_target, whole.from_target, &what);
                }
            }
        }
    }
    assert!(token_rules > 10, "{token_rules}");
}

/// Many unlikely tokens together are no likely token.
#[test]
fn token_rules_judge_the_rest_as_unlikely_whatever_its_mass() {
    let mut draft = vec![1.0 / 32.0_f32; 25];
    draft[0] = 0.25;
    let mut target = vec![1.0 / 64.0_f32; 25];
    target[0] = 0.625;
    let [draft, target] = [&draft, &target].map(|probs| WholeProbs {
        probs,
        unscaled: None,
        confidence: Confidence::of(probs, true),
    });
    let block = RecordedBlock {
        drafts: vec![0],
        positions: vec![cut(draft, target, 0, 1)],
        ..RecordedBlock::default()
    };
    let rest = &block.positions[0].rest;
    assert_eq!((rest.len(), rest[0].draft), (1, 0.75));
    for (rule, alpha, deferred) in [
        (rules::TOKEN_V1, 0.25, 1.0),
        (rules::TOKEN_V1, 0.5, 0.75),
        (rules::TOKEN_V2, 0.25, 0.75),
        (rules::TOKEN_V3, 0.75, 0.75),
        (rules::TOKEN_V3, 1.0, 0.0),
    ] {
        let aim = TargetDistribution::Deferral { rule, alpha };
        let rate = figures(aim, None, [&block]).deferral_rate;
        assert_eq!(rate, Some(deferred), "{rule:?} {alpha}");
    }
}

/// Whether a token rule refuses every token but `kept`.
fn refuses_the_rest(rule: Rule, alpha: f64, models: (Model, Model), kept: &[u32]) -> bool {
    let (q, p) = (models.0.after(&[]), models.1.after(&[]));
    let (judged, least) = match rule.name {
        "token-v1" => (q.unscaled, p.max() - alpha),
        "token-v2" => (p.unscaled.clone(), p.max() - alpha),
        _ => (p.unscaled.clone(), p.max() * (1.0 - alpha)),
    };
    let mut rest = (0..40).filter(|id| !kept.contains(id));
    rest.all(|id| judged[id as usize] < least)
}
