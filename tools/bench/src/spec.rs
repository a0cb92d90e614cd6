//! Methods as they are written on the command line: a name, and what overrides its presets after
//! colons, as in `spec-cascade:rule=opt:alpha=0.3`.

use std::fmt;

use anyhow::anyhow;
use speculation::methods::table::{CAP, DRAFT_LEN, DRAFTING};
use speculation::methods::{self, MethodSpec};
use wire::{settings, v1};

/// Stands for every registered method with its defaults.
pub(crate) const ALL: &str = "all";

/// A method, with what overrides its presets.
#[derive(Clone, Debug)]
pub(crate) struct MeasuredMethod {
    text: String,
    spec: MethodSpec,
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
    pub(crate) method: MeasuredMethod,
}

impl fmt::Display for MeasuredMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl MeasuredMethod {
    /// Reads `NAME[:KEY=VALUE]...`; keys are the flags of `outrider generate` that choose a method.
    ///
    /// # Errors
    /// Names the method or the key that is unknown, or the value that does not fit. Whether they go
    /// together, the coordinator checks.
    pub(crate) fn parse(text: &str) -> anyhow::Result<Self> {
        let bad = |problem: String| anyhow!("'{text}': {problem}");
        let mut spec = MethodSpec::parse(text).map_err(|error| match &error.field[..] {
            "method" if error.problem == "missing" => bad("names no method".to_owned()),
            "" => bad("a colon is followed by no parameter".to_owned()),
            name => bad(format!(
                "{name} is no setting; `outrider methods NAME` lists those of a method, `outrider generate --help` all"
            )),
        })?;
        let method = methods::find(&spec.method).map_err(|error| bad(error.to_string()))?;
        method.name.clone_into(&mut spec.method);
        spec.check().map_err(|error| bad(error.to_string()))?;
        Ok(Self {
            text: text.to_owned(),
            spec,
        })
    }

    /// The method's name.
    pub(crate) fn name(&self) -> &str {
        &self.spec.method
    }

    /// Writes the choice to `request`; blocks have `draft_len` tokens if the method does not say how many, nor how many at
    /// most, and no cascade of drafters does.
    pub(crate) fn apply_with(&self, draft_len: Option<u32>, request: &mut v1::GenerateRequest) {
        let mut spec = self.spec.clone();
        let is_cascade = spec.text(&DRAFTING).is_some_and(|who| who == "cascade");
        if let Some(draft_len) = draft_len
            && !(spec.gives(&DRAFT_LEN) || spec.gives(&CAP) || is_cascade)
        {
            spec = spec.with(DRAFT_LEN.name, draft_len);
        }
        settings::to_wire(&spec, request);
    }

    /// Writes the choice to `request`.
    pub(crate) fn apply(&self, request: &mut v1::GenerateRequest) {
        settings::to_wire(&self.spec, request);
    }
}

/// Reads the items of a list, in each of which values may be alternatives: `lossy:alpha=0/0.2/0.5`
/// is three methods. `all` stands for every registered method.
///
/// # Errors
/// As [`MeasuredMethod::parse`].
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
        let (name, settings) = MethodSpec::split(item);
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
            let method = MeasuredMethod::parse(&text)?;
            anyhow::Ok(Variant { values, method })
        });
        Ok(Self {
            label,
            methods: methods.collect::<Result<_, _>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str) -> v1::GenerateRequest {
        let mut request = v1::GenerateRequest::default();
        let spec = MeasuredMethod::parse(text).expect("a method");
        spec.apply(&mut request);
        request
    }

    fn refused(text: &str) -> String {
        MeasuredMethod::parse(text)
            .expect_err("refused")
            .to_string()
    }

    #[test]
    fn settings_reach_the_request() {
        for (text, expected) in [
            (
                "spec-cascade:rule=opt:alpha=-0.5:proposal=sparse:8",
                MethodSpec::new("spec-cascade")
                    .with("rule", "opt")
                    .with("alpha", -0.5)
                    .with("proposal", "sparse:8"),
            ),
            (
                "bild:verify_on_finish:window=3",
                MethodSpec::new("bild")
                    .with("verify_on_finish", true)
                    .with("window", 3),
            ),
            // Values with colons do not swallow what follows.
            (
                "coupled:draft-len=confidence:0.4:draft-cap=12:tree=comb:8",
                MethodSpec::new("coupled")
                    .with("draft_len", "confidence:0.4")
                    .with("draft_cap", 12)
                    .with("tree", "comb:8"),
            ),
            (
                "block:drafting=model:draft_len=specdec++:.7:proposal=dense:f16",
                MethodSpec::new("block")
                    .with("drafting", "model")
                    .with("draft_len", "specdec++:.7")
                    .with("proposal", "dense:f16"),
            ),
            (
                "sequence-cascade:draft-len=4:mean",
                MethodSpec::new("sequence-cascade")
                    .with("draft_len", 4)
                    .with("mean", true),
            ),
            ("gumbel", MethodSpec::new("coupled")),
        ] {
            assert_eq!(settings::from_wire(&request(text)), Ok(expected), "{text}");
        }
        let item = "coupled:draft-len=confidence:0.2/confidence:0.4/auto".to_owned();
        let lists = series(&[item]).expect("series");
        let values: Vec<_> = (lists[0].methods.iter())
            .map(|variant| variant.values.as_str())
            .collect();
        let expected = [
            "draft-len=confidence:0.2",
            "draft-len=confidence:0.4",
            "draft-len=auto",
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
            ("coupled:method=lossy", "method is no setting"),
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
