//! Verifiers that do and do not have a feature, at a time.

use super::Choosing;
use crate::client::{With, generate, request, try_generate};
use crate::cluster::{config, coordinator, pair};

use crate::tampering::{Mode, Tampering};

/// One that lacks what a request needs gets none of its rounds.
#[tokio::test]
async fn what_a_verifier_lacks_is_asked_of_another() {
    let (drafter, verifier) = pair().await;
    let (plain, url) = Tampering::start(Mode::Plain, drafter.address, verifier.address).await;
    let drafters = [drafter.url()];
    let requested = |seed| {
        let requested = request("Once upon a time", 12).method("block-greedy");
        requested.policy("confidence:0.4:0").seed(seed)
    };
    let both = coordinator(config(&drafters, &[url.clone(), verifier.url()])).await;
    for seed in 0..8 {
        let answer = generate(&both, requested(seed)).await;
        assert_eq!(answer.finished.effective_method, "block-greedy");
    }
    assert_eq!(plain.verified(), 0);
    // What it can do it is asked, too: chance gives each session one of them.
    let mut seeds = 0..64;
    while plain.verified() == 0 {
        let seed = seeds.next().expect("one of 64 is asked of it");
        generate(&both, request("Once upon a time", 12).seed(seed)).await;
    }

    let alone = coordinator(config(&drafters, &[url])).await;
    let refused = try_generate(&alone, requested(0)).await;
    let said = refused.expect_err("refused").message().to_owned();
    assert!(
        said.contains("settings.draft_len") && said.contains("no stop rule"),
        "{said}"
    );
}
