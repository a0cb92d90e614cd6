//! Parameters: taken, defaulted, held to their ranges.

use speculation::cascade::CascadeSettings;
use speculation::drafting::StopRule;
use speculation::drafting::policies::{CONFIDENCE, ENTROPY};
use speculation::methods::{METHODS, MethodSpec, Range, SettingValue};
use speculation::session::Plan;
use speculation::target::{Beta, RULES, Rule, TargetDistribution};
use speculation::verification::Verification;

use super::{of, refused, resolve};

const NAMES: [&str; 10] = [
    "rule",
    "alpha",
    "beta",
    "kl_budget",
    "fallback",
    "window",
    "verify_on_finish",
    "code_variant",
    "max_run",
    "mean",
];

/// Values at the bounds of `range`, and beyond.
fn bounds(range: Range) -> (Vec<SettingValue>, Vec<SettingValue>) {
    let values = |numbers: &[f64]| -> Vec<SettingValue> {
        numbers.iter().copied().map(SettingValue::Number).collect()
    };
    let beyond =
        |least: f64, most: f64| values(&[least - 1e-9, most + 1e-3, f64::NAN, f64::INFINITY]);
    let with = |mut values: Vec<SettingValue>, other| {
        values.push(other);
        values
    };
    match range {
        Range::Number(least, most) => (values(&[least, most]), beyond(least, most)),
        Range::NumberOrNone(least, most) => (
            with(values(&[least, most]), SettingValue::NONE),
            beyond(least, most),
        ),
        Range::NumberBelow(least, below) => (
            values(&[least, below - 1e-9]),
            values(&[least - 1e-9, below, f64::NAN]),
        ),
        Range::Count(least, most) => (
            [least, most].map(SettingValue::from).to_vec(),
            [least.wrapping_sub(1), most + 1]
                .map(SettingValue::from)
                .to_vec(),
        ),
        Range::Flag => ([false, true].map(SettingValue::Flag).to_vec(), Vec::new()),
        Range::Rule(rules) => {
            let (within, beyond): (Vec<_>, Vec<_>) =
                RULES.iter().partition(|rule| rules.contains(rule));
            let named = |rules: Vec<&Rule>| -> Vec<SettingValue> {
                rules.iter().map(|rule| rule.name.into()).collect()
            };
            (named(within), named(beyond))
        }
        Range::Beta(least, most) => (
            with(values(&[least, most]), "tuned".into()),
            beyond(least, most),
        ),
    }
}

fn some_value_of(name: &str) -> SettingValue {
    match name {
        "rule" => "chow".into(),
        "beta" => "tuned".into(),
        "window" | "max_run" => 5_u32.into(),
        "verify_on_finish" | "code_variant" => true.into(),
        "mean" => false.into(),
        _ => 0.5.into(),
    }
}

#[test]
fn every_method_takes_its_parameters_and_refuses_the_others_by_name() {
    let rules = RULES.iter().map(|rule| rule.name);
    let rules = rules.collect::<Vec<_>>().join(", ");
    let bild = "alpha 5 0 to 100; fallback 0.6 0 to 1; window 10 1 to 64; \
                verify_on_finish false true or false; code_variant false true or false";
    let lossy = "alpha 0.2 0 to below 1; beta 1 0.8 to 1000000, or tuned; \
                 kl_budget none 0 to 100, or none";
    let token_cascade = "rule chow chow, chow-log; alpha 0.5 0 to 1; max_run 10 0 to 1000";
    let sequence_cascade = "rule chow chow; alpha 0.95 0 to 1; mean true true or false";
    let spec_cascade = format!("rule token-v3 {rules}; alpha 0.3 -1 to 1");
    let oracle_cascade = format!("rule diff {rules}; alpha 0.1 -1 to 1");
    let table: [(&str, &str); 13] = [
        ("coupled", ""),
        ("rejection", ""),
        ("block", ""),
        ("block-greedy", ""),
        ("lossy", lossy),
        ("spec-cascade", &spec_cascade),
        ("spec-cascade-rejection", &spec_cascade),
        ("token-cascade", token_cascade),
        ("sequence-cascade", sequence_cascade),
        ("oracle-cascade", &oracle_cascade),
        ("bild", bild),
        ("target-only", ""),
        ("draft-only", ""),
    ];
    assert_eq!(METHODS.len(), table.len());
    for (method, (name, expected)) in METHODS.iter().zip(table) {
        let settings = method.parameters();
        let found = settings.iter().map(|setting| {
            let (default, range) = (&setting.default, setting.range);
            format!("{} {default} {range}", setting.name)
        });
        assert_eq!(method.name, name);
        assert_eq!(found.collect::<Vec<_>>().join("; "), expected, "{name}");
        let taken: Vec<_> = settings.iter().map(|setting| setting.name).collect();
        for parameter in NAMES {
            if taken.contains(&parameter) {
                continue;
            }
            let requested = of(name).with(parameter, some_value_of(parameter));
            let (field, problem) = refused(&requested, 1.0);
            assert_eq!(field, parameter);
            assert!(problem.contains(name), "{problem}");
            assert!(
                taken.iter().all(|taken| problem.contains(taken)),
                "{problem}"
            );
        }
    }
}

#[test]
fn every_parameter_is_held_to_its_range() {
    for method in METHODS {
        for setting in method.parameters() {
            let requested =
                |value: &SettingValue| of(method.name).with(setting.name, value.clone());
            assert!(setting.range.contains(&setting.default));
            let (within, beyond) = bounds(setting.range);
            for value in within {
                let choice = resolve(&requested(&value))
                    .unwrap_or_else(|error| panic!("{} {value:?}: {error}", method.name));
                let reported = choice
                    .effective_parameters()
                    .find(|(name, _)| *name == setting.name);
                assert_eq!(reported, Some((setting.name, value.to_string())));
            }
            for value in beyond {
                let (field, problem) = refused(&requested(&value), 1.0);
                assert_eq!(field, setting.name, "{} {value:?}", method.name);
                assert!(problem.contains("expected"), "{problem}");
            }
        }
    }
}

#[test]
fn alpha_has_the_range_and_default_of_its_rule() {
    for method in ["spec-cascade", "oracle-cascade"] {
        for rule in RULES.iter().copied() {
            let open = of(method).with("rule", rule.name);
            let with_alpha = |alpha: f64| open.clone().with("alpha", alpha);
            let (least, most) = rule.alpha.range;
            let target = |alpha| TargetDistribution::Deferral { rule, alpha };
            for alpha in [least, most] {
                let choice = resolve(&with_alpha(alpha)).expect("in range");
                assert_eq!(choice.target, target(alpha));
                choice.target.validate().expect("the target agrees");
            }
            for alpha in [least - 1e-9, most + 1e-9, f64::NAN] {
                assert_eq!(refused(&with_alpha(alpha), 1.0).0, "alpha");
                let bad = target(alpha).validate().expect_err("the target agrees");
                assert_eq!(bad.field, "alpha");
            }
            let choice = resolve(&open).expect("a default");
            assert_eq!(choice.target, target(rule.alpha.default), "{method}");
        }
    }
}

#[test]
fn parameters_follow_the_axes_and_not_the_methods_name() {
    let requested = MethodSpec::parse("coupled:target=lossy:alpha=0.5:beta=tuned");
    let requested = requested.expect("settings");
    let lossy = TargetDistribution::Lossy {
        alpha: 0.5,
        beta: Beta::Tuned,
    };
    assert_eq!(resolve(&requested).expect("taken").target, lossy);
    let requested = of("lossy").with("target", "exact").with("alpha", 0.1);
    let (field, problem) = refused(&requested, 1.0);
    assert_eq!(field, "alpha");
    assert!(
        problem.contains("target 'exact'") && problem.contains("no parameters"),
        "{problem}"
    );
}

#[test]
fn beta_is_at_least_what_alpha_leaves() {
    let requested = |alpha: f64, beta: f64| of("lossy").with("alpha", alpha).with("beta", beta);
    resolve(&requested(0.25, 0.75)).expect("the least");
    assert_eq!(refused(&requested(0.25, 0.749), 1.0).0, "beta");
    assert_eq!(refused(&requested(0.0, 0.75), 1.0).0, "beta");
    let wrong = of("lossy").with("beta", "x");
    assert_eq!(refused(&wrong, 1.0).0, "beta");
}

#[test]
fn a_budget_of_divergence_stands_in_place_of_alpha_and_beta() {
    let within = of("lossy").with("kl_budget", 0.1);
    let choice = resolve(&within).expect("taken");
    let target = TargetDistribution::LossyWithin { kl_budget: 0.1 };
    assert_eq!((choice.target, choice.effective_name()), (target, "lossy"));
    assert!(!choice.is_lossless());
    let parameters: Vec<_> = choice.effective_parameters().collect();
    assert_eq!(parameters, [("kl_budget", "0.1".to_owned())]);
    for (field, both) in [
        ("alpha", within.clone().with("alpha", 0.2)),
        ("beta", within.clone().with("beta", "tuned")),
    ] {
        let (found, problem) = refused(&both, 1.0);
        assert_eq!(found, field);
        assert!(problem.contains("with kl_budget"), "{problem}");
    }
    let none = within.with("kl_budget", 0.0);
    assert!(resolve(&none).expect("taken").is_lossless());
}

#[test]
fn cascades_hand_over_where_their_rule_says() {
    let choice = |spec: MethodSpec| resolve(&spec).expect("fits");
    let token_cascade = of("token-cascade").with("alpha", 0.25);
    let stop = |spec| choice(spec).stop_rule;
    assert_eq!(
        stop(token_cascade.clone()),
        StopRule::new(&CONFIDENCE, 0.75)
    );
    let log = token_cascade.with("rule", "chow-log");
    assert_eq!(stop(log), StopRule::new(&ENTROPY, 0.25));
    let endless = choice(of("token-cascade").with("max_run", 0));
    assert_eq!(endless.plan, Plan::TokenCascade { max_run: u32::MAX });
    assert!(
        endless
            .effective_parameters()
            .any(|reported| reported == ("max_run", "0".to_owned()))
    );
    for (alpha, least) in [(0.0, 0.0), (0.25, 0.75_f64.ln()), (1.0, f64::NEG_INFINITY)] {
        let Plan::SequenceCascade { threshold, mean } =
            choice(of("sequence-cascade").with("alpha", alpha)).plan
        else {
            panic!("another plan");
        };
        assert!(
            threshold == least || (threshold - least).abs() < 1e-15,
            "{threshold}"
        );
        // A sum would fall with every token, and hardly any answer be kept.
        assert!(mean);
    }
    let summed = choice(of("sequence-cascade").with("paper_defaults", true));
    assert!(matches!(
        summed.plan,
        Plan::SequenceCascade { mean: false, .. }
    ));
    let bild = MethodSpec::parse("bild:fallback=0.25:window=3:verify_on_finish:alpha=2.5");
    let bild = choice(bild.expect("settings"));
    assert_eq!(bild.verification, Verification::bild(2.5));
    assert_eq!(bild.stop_rule, StopRule::new(&CONFIDENCE, 0.25));
    assert_eq!(
        bild.plan,
        Plan::Bild {
            window: 3,
            verify_on_finish: true,
            code_variant: false
        }
    );
    let code = choice(of("bild").with("code_variant", true));
    assert_eq!(code.verification, Verification::bild_code(5.0));
    let runs_code = |plan| matches!(plan, Plan::Bild { code_variant, .. } if code_variant);
    assert!(runs_code(code.plan) && code.effective_name() == "bild");
}

#[test]
fn settings_of_the_drafters_cascade_go_with_drafting_cascade() {
    let choice = |spec: MethodSpec| resolve(&spec).expect("in range");
    let cascade = of("coupled").with("drafting", "cascade");
    assert!(choice(cascade.clone()).cascade.is_empty());
    let set = cascade.clone().with("cascade_k", "1+3/0+2");
    let set = choice(set.with("cascade_lenience", 1.5));
    let expected = [("cascade_k", "1+3/0+2"), ("cascade_lenience", "1.5")];
    let expected = expected.map(|(name, value)| (name, value.to_owned()));
    assert_eq!(set.effective_cascade().collect::<Vec<_>>(), expected);
    let published = cascade.with("paper_defaults", true);
    let paper = CascadeSettings::paper();
    assert_eq!(choice(published.clone()).cascade, paper);
    let k = choice(published.with("cascade_k", "1+3/0+2")).cascade;
    assert_eq!(
        (k.k, k.max_gram_tokens),
        (Some(vec![vec![1, 3], vec![0, 2]]), Some(10))
    );
    let bad = resolve(&of("coupled").with("cascade_k", "1+3/0+2")).expect_err("no cascade");
    let expected = "cascade_k: goes with drafting 'cascade', and it is 'model'; leave it out";
    assert_eq!(bad.to_string(), expected);
}
