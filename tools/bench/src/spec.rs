//! Methods as they are written on the command line: a name, and what overrides its presets after
//! colons, as in `spec-cascade:rule=opt:alpha=0.3`.

use std::fmt;

use anyhow::anyhow;
use clap::Parser;
use speculation::methods;
use wire::v1;

use outrider::args::MethodArgs;

/// Stands for every registered method with its defaults.
pub(crate) const ALL: &str = "all";

/// A method, with what overrides its presets.
#[derive(Clone, Debug)]
pub(crate) struct MethodSpec {
    text: String,
    args: MethodArgs,
}

/// Methods that differ in the values of a parameter.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    /// What they have in common.
    pub(crate) label: String,
    /// Each of them, in the order of the values.
    pub(crate) methods: Vec<Variant>,
}

/// One method of a series.
#[derive(Clone, Debug)]
pub(crate) struct Variant {
    /// The values it differs in, `alpha=0.3`; empty in a series of one.
    pub(crate) values: String,
    /// The method.
    pub(crate) method: MethodSpec,
}

/// The flags of a method and nothing else, so that a parameter is spelt as on other commands.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Flags {
    #[command(flatten)]
    args: MethodArgs,
}

impl fmt::Display for MethodSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl MethodSpec {
    /// Reads `NAME[:KEY=VALUE]...`; keys are the flags of `outrider generate` that choose a method.
    ///
    /// # Errors
    /// Names the method or the key that is unknown, or the value that does not fit. Whether they go
    /// together, the coordinator checks.
    pub(crate) fn parse(text: &str) -> anyhow::Result<Self> {
        let bad = |problem: String| anyhow!("'{text}': {problem}");
        let (name, settings) = split(text);
        if name.is_empty() {
            return Err(bad("names no method".to_owned()));
        }
        let method = methods::find(name).map_err(|error| bad(error.to_string()))?;
        let mut flags = vec![format!("--method={}", method.name)];
        for setting in settings {
            let (key, value) = setting.split_once('=').unwrap_or((&setting, "true"));
            if key.is_empty() {
                return Err(bad("a colon is followed by no parameter".to_owned()));
            }
            let key = key.replace('_', "-");
            flags.push(match value {
                "true" => format!("--{key}"),
                value => format!("--{key}={value}"),
            });
        }
        let Flags { args } = Flags::try_parse_from(flags).map_err(|error| {
            let reported = error.to_string();
            let line = reported.lines().next().unwrap_or_default();
            let line = line.trim_start_matches("error: ");
            // What is a flag elsewhere is a setting here.
            let known =
                "`outrider methods NAME` lists those of a method, `outrider generate --help` all";
            match line
                .strip_prefix("unexpected argument '--")
                .and_then(|rest| rest.split_once('\''))
            {
                Some((setting, _)) => bad(format!("{setting} is no setting; {known}")),
                None => bad(line.to_owned()),
            }
        })?;
        // Names of axes and rules are looked up when they are written to a request.
        args.apply(&mut v1::GenerateRequest::default())
            .map_err(|error| bad(error.to_string()))?;
        Ok(Self {
            text: text.to_owned(),
            args,
        })
    }

    /// The method's name.
    pub(crate) fn name(&self) -> &str {
        &self.args.method
    }

    /// Writes the choice to `request`.
    ///
    /// # Errors
    /// Never, for what [`MethodSpec::parse`] let pass.
    pub(crate) fn apply(&self, request: &mut v1::GenerateRequest) -> anyhow::Result<()> {
        self.args.apply(request)
    }
}

/// Reads the items of a list, in each of which values may be alternatives: `lossy:alpha=0/0.2/0.5`
/// is three methods. `all` stands for every registered method.
///
/// # Errors
/// As [`MethodSpec::parse`].
pub(crate) fn series(items: &[String]) -> anyhow::Result<Vec<Series>> {
    let all = || methods::names().into_iter().map(str::to_owned);
    let mut list = Vec::new();
    for item in items {
        if item == ALL {
            list.extend(all());
        } else {
            list.push(item.clone());
        }
    }
    list.iter().map(|item| Series::parse(item)).collect()
}

impl Series {
    fn parse(item: &str) -> anyhow::Result<Self> {
        let (name, settings) = split(item);
        let mut label = name.to_owned();
        let mut variants = vec![(String::new(), name.to_owned())];
        for setting in settings {
            let Some((key, values)) = setting.split_once('=').filter(|(_, v)| v.contains('/'))
            else {
                label = format!("{label}:{setting}");
                for (_, text) in &mut variants {
                    *text = format!("{text}:{setting}");
                }
                continue;
            };
            variants = variants
                .iter()
                .flat_map(|(varied, text)| {
                    values.split('/').map(move |value| {
                        let between = if varied.is_empty() { "" } else { ":" };
                        (
                            format!("{varied}{between}{key}={value}"),
                            format!("{text}:{key}={value}"),
                        )
                    })
                })
                .collect();
        }
        let methods = variants.into_iter().map(|(values, text)| {
            let method = MethodSpec::parse(&text)?;
            anyhow::Ok(Variant { values, method })
        });
        Ok(Self {
            label,
            methods: methods.collect::<Result<_, _>>()?,
        })
    }
}

/// The name, and the settings after it. A proposal form has a colon of its own, `sparse:8`: what
/// has no `=` and follows a proposal belongs to it.
fn split(text: &str) -> (&str, Vec<String>) {
    let mut parts = text.split(':');
    let name = parts.next().unwrap_or_default();
    let mut settings: Vec<String> = Vec::new();
    for part in parts {
        match settings.last_mut() {
            Some(last) if goes_on(last, part) => {
                *last = format!("{last}:{part}");
            }
            _ => settings.push(part.to_owned()),
        }
    }
    (name, settings)
}

/// Whether `part` belongs to the value of the setting before it: `sparse:8`, `dense:f16`,
/// `specdec++:0.7`, `comb:8`. What follows such a value is another setting, whose name begins with no
/// digit.
fn goes_on(setting: &str, part: &str) -> bool {
    let has_colons = ["proposal=", "draft-len=", "draft_len=", "tree="];
    let is_setting = part.contains('=');
    let is_number = part.starts_with(|first: char| first.is_ascii_digit() || first == '.');
    let is_precision = setting.starts_with("proposal=") && !is_setting;
    let takes_more = has_colons.iter().any(|name| setting.starts_with(name));
    takes_more && (is_number && !is_setting || is_precision)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str) -> v1::GenerateRequest {
        let mut request = v1::GenerateRequest::default();
        let spec = MethodSpec::parse(text).expect("a method");
        spec.apply(&mut request).expect("applied");
        request
    }

    fn refused(text: &str) -> String {
        MethodSpec::parse(text).expect_err("refused").to_string()
    }

    #[test]
    fn parameters_and_axes_reach_the_request() {
        let request_of = request("spec-cascade:rule=opt:alpha=-0.5:proposal=sparse:8");
        let parameters = request_of.parameters.expect("parameters");
        assert_eq!(request_of.method, "spec-cascade");
        assert_eq!(parameters.rule.as_deref(), Some("opt"));
        assert_eq!(parameters.alpha, Some(-0.5));
        assert_eq!(request_of.proposal_top, 8);
        let tuned = request("lossy:beta=tuned:verification=coupled");
        assert!(tuned.parameters.as_ref().expect("parameters").beta_tuned);
        assert_eq!(tuned.verification(), v1::Verification::Coupled);
        for flag in ["sequence-cascade:mean", "sequence-cascade:mean=true"] {
            assert_eq!(request(flag).parameters.expect("set").mean, Some(true));
        }
        let window = request("bild:verify_on_finish:window=3").parameters;
        assert_eq!(window.expect("parameters").window, Some(3));
    }

    #[test]
    fn values_with_colons_do_not_swallow_what_follows() {
        use v1::draft_length::Policy;
        let policy_of = |request: &v1::GenerateRequest| {
            let length = request.draft_length.clone();
            length.and_then(|length| length.policy)
        };
        let drafted = request("coupled:draft-len=confidence:0.4:draft-cap=12:tree=comb:8");
        assert_eq!(policy_of(&drafted), Some(Policy::Confidence(0.4)));
        assert_eq!(drafted.draft_len, Some(12));
        let shape = drafted.tree.and_then(|tree| tree.shape);
        assert_eq!(shape, Some(v1::tree_shape::Shape::Comb(8)));
        let learned = request("block:drafting=model:draft_len=specdec++:.7:proposal=dense:f16");
        assert!(matches!(policy_of(&learned), Some(Policy::Learned(_))));
        assert_eq!(learned.proposal_form(), v1::ProposalForm::DenseF16);
        // A flag after a value with no colon of its own.
        let flag = request("sequence-cascade:draft-len=4:mean");
        assert_eq!(flag.parameters.expect("set").mean, Some(true));
        let item = "coupled:draft-len=confidence:0.2/confidence:0.4/goodput".to_owned();
        let lists = series(&[item]).expect("series");
        let values: Vec<_> = (lists[0].methods.iter())
            .map(|variant| variant.values.as_str())
            .collect();
        let expected = [
            "draft-len=confidence:0.2",
            "draft-len=confidence:0.4",
            "draft-len=goodput",
        ];
        assert_eq!(values, expected);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, words) in [
            ("nonsense", "expected one of coupled"),
            (
                "lossy:alhpa=1",
                "alhpa is no setting; `outrider methods NAME`",
            ),
            ("coupled:foo", "foo is no setting"),
            ("", "names no method"),
            (":alpha=0.3", "names no method"),
            ("lossy:alpha=much", "much"),
            ("lossy:alpha", "alpha"),
            ("lossy:beta=most", "most"),
            ("lossy:verification=none", "none"),
            ("coupled:draft-len=confidence:much", "much"),
            ("coupled:tree=comb:1", "2 to 64"),
            ("coupled:", "no parameter"),
            ("coupled:method=lossy", "--method"),
        ] {
            let error = refused(text);
            assert!(error.contains(words) && error.contains(text), "{error}");
            assert!(!error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn alternatives_make_a_series() {
        let items = ["lossy:beta=tuned:alpha=0/0.25", "coupled"].map(str::to_owned);
        let lists = series(&items).expect("series");
        let reported = |at: usize| {
            let methods = &lists[at].methods;
            methods
                .iter()
                .map(|variant| (variant.values.clone(), variant.method.to_string()))
                .collect::<Vec<_>>()
        };
        assert_eq!(lists[0].label, "lossy:beta=tuned");
        let pair = |values: &str, text: &str| (values.to_owned(), text.to_owned());
        assert_eq!(
            reported(0),
            [
                pair("alpha=0", "lossy:beta=tuned:alpha=0"),
                pair("alpha=0.25", "lossy:beta=tuned:alpha=0.25")
            ]
        );
        assert_eq!(reported(1), [pair("", "coupled")]);
        let product = series(&["bild:alpha=1/2:window=3/4".to_owned()]).expect("series");
        assert_eq!(product[0].methods.len(), 4);
        assert_eq!(product[0].methods[1].values, "alpha=1:window=4");
    }

    #[test]
    fn all_is_every_registered_method() {
        let lists = series(&[ALL.to_owned()]).expect("series");
        let labels: Vec<_> = lists.iter().map(|series| series.label.as_str()).collect();
        assert_eq!(labels, methods::names());
    }
}
