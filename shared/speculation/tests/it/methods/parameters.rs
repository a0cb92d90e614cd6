//! Parameters: taken, defaulted, held to their ranges.

use speculation::drafting::StopRule;
use speculation::drafting::policies::{CONFIDENCE, ENTROPY};
use speculation::methods::{METHODS, MethodRequest, Parameters, Range, TargetKind, Value, names};
use speculation::session::Plan;
use speculation::target::{Beta, RULES, TargetDistribution, rules};
use speculation::verification::Verification;

use super::{of, refused, resolve, set};

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

/// The parameter called `name` with this value, and no other.
fn with(name: &str, value: Value) -> Parameters {
    let mut parameters = Parameters::default();
    match (name, value) {
        ("rule", Value::Rule(rule)) => parameters.rule = Some(rule),
        ("alpha", Value::Number(number)) => parameters.alpha = Some(number),
        ("beta", Value::Beta(beta)) => parameters.beta = Some(beta),
        ("kl_budget", Value::Number(number)) => parameters.kl_budget = Some(number),
        ("kl_budget", Value::None) => parameters.kl_budget = None,
        ("fallback", Value::Number(number)) => parameters.fallback = Some(number),
        ("window", Value::Count(count)) => parameters.window = Some(count),
        ("verify_on_finish", Value::Flag(flag)) => parameters.verify_on_finish = Some(flag),
        ("code_variant", Value::Flag(flag)) => parameters.code_variant = Some(flag),
        ("max_run", Value::Count(count)) => parameters.max_run = Some(count),
        ("mean", Value::Flag(flag)) => parameters.mean = Some(flag),
        _ => panic!("{name} is never {value:?}"),
    }
    parameters
}

/// Values at the bounds of `range`, and beyond.
fn bounds(range: Range) -> (Vec<Value>, Vec<Value>) {
    let beyond = |least: f64, most: f64| [least - 1e-9, most + 1e-3, f64::NAN, f64::INFINITY];
    match range {
        Range::Number(least, most) => (
            [least, most].map(Value::Number).to_vec(),
            beyond(least, most).map(Value::Number).to_vec(),
        ),
        Range::NumberOrNone(least, most) => (
            vec![Value::Number(least), Value::Number(most), Value::None],
            beyond(least, most).map(Value::Number).to_vec(),
        ),
        Range::NumberBelow(least, below) => (
            [least, below - 1e-9].map(Value::Number).to_vec(),
            [least - 1e-9, below, f64::NAN].map(Value::Number).to_vec(),
        ),
        Range::Count(least, most) => (
            [least, most].map(Value::Count).to_vec(),
            [least.wrapping_sub(1), most + 1].map(Value::Count).to_vec(),
        ),
        Range::Flag => ([false, true].map(Value::Flag).to_vec(), Vec::new()),
        Range::Rule(rules) => (
            rules.iter().map(|&rule| Value::Rule(rule)).collect(),
            RULES
                .iter()
                .copied()
                .filter(|rule| !rules.contains(rule))
                .map(Value::Rule)
                .collect(),
        ),
        Range::Beta(least, most) => (
            [Beta::Fixed(least), Beta::Fixed(most), Beta::Tuned]
                .map(Value::Beta)
                .to_vec(),
            beyond(least, most)
                .map(|number| Value::Beta(Beta::Fixed(number)))
                .to_vec(),
        ),
    }
}

fn default_of(name: &str) -> Value {
    match name {
        "rule" => Value::Rule(rules::CHOW),
        "beta" => Value::Beta(Beta::Tuned),
        "window" | "max_run" => Value::Count(5),
        "verify_on_finish" | "code_variant" => Value::Flag(true),
        "mean" => Value::Flag(false),
        _ => Value::Number(0.5),
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
    let table: [(&str, &str); 12] = [
        ("coupled", ""),
        ("rejection", ""),
        ("block", ""),
        ("block-greedy", ""),
        ("lossy", lossy),
        ("spec-cascade", &spec_cascade),
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
            let (default, range) = (setting.default, setting.range);
            format!("{} {default} {range}", setting.name)
        });
        assert_eq!(method.name, name);
        assert_eq!(found.collect::<Vec<_>>().join("; "), expected, "{name}");
        let taken: Vec<_> = settings.iter().map(|setting| setting.name).collect();
        for parameter in NAMES {
            if taken.contains(&parameter) {
                continue;
            }
            let requested = set(with(parameter, default_of(parameter)), name);
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
            let requested = |value| set(with(setting.name, value), method.name);
            assert!(setting.range.contains(setting.default));
            let (within, beyond) = bounds(setting.range);
            for value in within {
                let choice = resolve(&requested(value))
                    .unwrap_or_else(|error| panic!("{} {value:?}: {error}", method.name));
                let reported = choice
                    .effective_parameters()
                    .find(|(name, _)| *name == setting.name);
                assert_eq!(reported, Some((setting.name, value.to_string())));
            }
            for value in beyond {
                let (field, problem) = refused(&requested(value), 1.0);
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
            let with_alpha = |alpha| MethodRequest {
                parameters: Parameters {
                    rule: Some(rule),
                    alpha,
                    ..Parameters::default()
                },
                ..of(method)
            };
            let (least, most) = rule.alpha.range;
            let target = |alpha| TargetDistribution::Deferral { rule, alpha };
            for alpha in [least, most] {
                let choice = resolve(&with_alpha(Some(alpha))).expect("in range");
                assert_eq!(choice.target, target(alpha));
                choice.target.validate().expect("the target agrees");
            }
            for alpha in [least - 1e-9, most + 1e-9, f64::NAN] {
                assert_eq!(refused(&with_alpha(Some(alpha)), 1.0).0, "alpha");
                let bad = target(alpha).validate().expect_err("the target agrees");
                assert_eq!(bad.field, "alpha");
            }
            let choice = resolve(&with_alpha(None)).expect("a default");
            assert_eq!(choice.target, target(rule.alpha.default), "{method}");
        }
    }
}

#[test]
fn parameters_follow_the_axes_and_not_the_methods_name() {
    let requested = MethodRequest {
        target: Some(TargetKind::Lossy),
        parameters: Parameters {
            alpha: Some(0.5),
            beta: Some(Beta::Tuned),
            ..Parameters::default()
        },
        ..of("coupled")
    };
    let lossy = TargetDistribution::Lossy {
        alpha: 0.5,
        beta: Beta::Tuned,
    };
    assert_eq!(resolve(&requested).expect("taken").target, lossy);
    let requested = MethodRequest {
        target: Some(TargetKind::Exact),
        parameters: with("alpha", Value::Number(0.1)),
        ..of("lossy")
    };
    let (field, problem) = refused(&requested, 1.0);
    assert_eq!(field, "alpha");
    assert!(
        problem.contains("target 'exact'") && problem.contains("no parameters"),
        "{problem}"
    );
}

#[test]
fn beta_is_at_least_what_alpha_leaves() {
    let requested = |alpha, beta| MethodRequest {
        parameters: Parameters {
            alpha: Some(alpha),
            beta: Some(Beta::Fixed(beta)),
            ..Parameters::default()
        },
        ..of("lossy")
    };
    resolve(&requested(0.25, 0.75)).expect("the least");
    assert_eq!(refused(&requested(0.25, 0.749), 1.0).0, "beta");
    assert_eq!(refused(&requested(0.0, 0.75), 1.0).0, "beta");
    assert_eq!(names::beta("tuned"), Ok(Beta::Tuned));
    assert_eq!(names::beta("1.5"), Ok(Beta::Fixed(1.5)));
    assert_eq!(names::beta("x").expect_err("no number").field, "beta");
    assert_eq!(names::beta_of(None, false), Ok(None));
    assert_eq!(names::beta_of(None, true), Ok(Some(Beta::Tuned)));
    assert_eq!(names::beta_of(Some(2.0), false), Ok(Some(Beta::Fixed(2.0))));
    assert_eq!(
        names::beta_of(Some(2.0), true).expect_err("both").field,
        "beta"
    );
}

#[test]
fn a_budget_of_divergence_stands_in_place_of_alpha_and_beta() {
    let within = Parameters {
        kl_budget: Some(0.1),
        ..Parameters::default()
    };
    let choice = resolve(&set(within.clone(), "lossy")).expect("taken");
    let target = TargetDistribution::LossyWithin { kl_budget: 0.1 };
    assert_eq!((choice.target, choice.effective_name()), (target, "lossy"));
    assert!(!choice.is_lossless());
    let parameters: Vec<_> = choice.effective_parameters().collect();
    assert_eq!(parameters, [("kl_budget", "0.1".to_owned())]);
    for (field, both) in [
        (
            "alpha",
            Parameters {
                alpha: Some(0.2),
                ..within.clone()
            },
        ),
        (
            "beta",
            Parameters {
                beta: Some(Beta::Tuned),
                ..within.clone()
            },
        ),
    ] {
        let (found, problem) = refused(&set(both, "lossy"), 1.0);
        assert_eq!(found, field);
        assert!(problem.contains("with kl_budget"), "{problem}");
    }
    let none = Parameters {
        kl_budget: Some(0.0),
        ..within
    };
    assert!(resolve(&set(none, "lossy")).expect("taken").is_lossless());
}

#[test]
fn cascades_hand_over_where_their_rule_says() {
    let choice = |method, parameters| resolve(&set(parameters, method)).expect(method);
    let with_alpha = |alpha| with("alpha", Value::Number(alpha));
    let stop = |parameters| choice("token-cascade", parameters).stop_rule;
    assert_eq!(stop(with_alpha(0.25)), StopRule::new(&CONFIDENCE, 0.75));
    let log = Parameters {
        rule: Some(rules::CHOW_LOG),
        ..with_alpha(0.25)
    };
    assert_eq!(stop(log), StopRule::new(&ENTROPY, 0.25));
    let endless = choice("token-cascade", with("max_run", Value::Count(0)));
    assert_eq!(endless.plan, Plan::TokenCascade { max_run: u32::MAX });
    assert!(
        endless
            .effective_parameters()
            .any(|reported| reported == ("max_run", "0".to_owned()))
    );
    for (alpha, least) in [(0.0, 0.0), (0.25, 0.75_f64.ln()), (1.0, f64::NEG_INFINITY)] {
        let Plan::SequenceCascade { threshold, mean } =
            choice("sequence-cascade", with_alpha(alpha)).plan
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
    let bild = choice(
        "bild",
        Parameters {
            fallback: Some(0.25),
            window: Some(3),
            verify_on_finish: Some(true),
            ..with_alpha(2.5)
        },
    );
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
    let code = choice("bild", with("code_variant", Value::Flag(true)));
    assert_eq!(code.verification, Verification::bild_code(5.0));
    let runs_code = |plan| matches!(plan, Plan::Bild { code_variant, .. } if code_variant);
    assert!(runs_code(code.plan) && code.effective_name() == "bild");
}
