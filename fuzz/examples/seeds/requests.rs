//! What clients ask for.

use speculation::methods::MethodSpec;
use wire::v1::*;

use crate::{PROMPT, sampling};

/// Chooses the method and the settings of `spec`.
fn choose(request: &mut GenerateRequest, spec: &str) {
    let spec = MethodSpec::parse(spec).expect("a method");
    wire::settings::to_wire(&spec, request);
}

/// Each with a name.
pub fn all() -> Vec<(&'static str, GenerateRequest)> {
    let text = |text: &str| Some(generate_request::Prompt::Text(text.to_owned()));
    let plain = GenerateRequest {
        prompt: text("Once upon a time"),
        max_tokens: Some(12),
        seed: Some(7),
        ..Default::default()
    };
    let with = |change: &dyn Fn(&mut GenerateRequest)| {
        let mut request = plain.clone();
        change(&mut request);
        request
    };
    let mut all = vec![
        ("plain", plain.clone()),
        ("sampled", with(&|it| it.sampling = Some(sampling()))),
        (
            "tokens",
            with(&|it| {
                it.prompt = Some(generate_request::Prompt::TokenIds(TokenIds {
                    ids: PROMPT.to_vec(),
                }));
            }),
        ),
        (
            "stops",
            with(&|it| it.stop = vec!["a".to_owned(), "é".to_owned()]),
        ),
        (
            "reports",
            with(&|it| {
                it.report_distributions = true;
                choose(it, "rejection:accept_at=coordinator");
            }),
        ),
        ("tree", with(&|it| choose(it, "coupled:tree=comb:2"))),
        ("tuned", with(&|it| choose(it, "token-cascade:alpha=0.5"))),
    ];
    let methods = wire::settings::listing(false).methods;
    for method in methods {
        let name: &'static str = method.name.clone().leak();
        all.push((name, with(&|it| it.method = name.to_owned())));
    }
    all
}
