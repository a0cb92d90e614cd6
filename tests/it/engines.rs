//! Requests that need what an engine lacks are refused at admission, and its limits are kept.

use futures_util::future::join_all;
use ops::process::Process;
use speculation::ports::{Caps, LanguageModel, ModelShape, Rows, Segment};
use verifier::VerifierConfig;

use crate::client::{With, generate, request, try_generate};
use crate::cluster::{config, coordinator, draft, drafter, target, verifier, verifier_in};
use crate::paced::with_model;

/// Our own runtime, as if it could do no more than `caps` says.
pub(crate) struct Lesser {
    pub(crate) model: model::Model,
    pub(crate) caps: Caps,
}

impl LanguageModel for Lesser {
    type Cache = model::SequenceCache;
    type Error = <model::Model as LanguageModel>::Error;

    fn shape(&self) -> ModelShape {
        self.model.shape()
    }

    fn caps(&self) -> Caps {
        self.caps
    }

    fn new_cache(&self) -> Self::Cache {
        self.model.new_cache()
    }

    fn forward(
        &mut self,
        batch: &mut [Segment<'_, Self::Cache>],
        rows: &mut Rows,
    ) -> Result<(), Self::Error> {
        let are_chains = batch.iter().all(|segment| segment.parents.is_empty());
        assert!(
            are_chains || self.caps.trees,
            "a tree, which it does not take"
        );
        self.model.forward(batch, rows)
    }
}

#[tokio::test]
async fn what_the_verifiers_engine_lacks_is_refused_by_name() {
    let caps = Caps {
        trees: false,
        bit_invariant: false,
        ..Caps::ALL
    };
    let lesser = with_model(target(), |model| Lesser { model, caps });
    let (lesser, _) = verifier_in(Process::default(), lesser, VerifierConfig::default()).await;
    let (full, _) = verifier(target()).await;
    let (drafter, _) = drafter(draft()).await;
    let drafters = [drafter.url()];
    let lesser = coordinator(config(&drafters, &[lesser.url()])).await;
    let full = coordinator(config(&drafters, &[full.url()])).await;

    let tree = request("Once upon a time", 8).with("tree", "comb:2");
    let refused = try_generate(&lesser, tree.clone())
        .await
        .expect_err("refused");
    let message = refused.message();
    assert!(
        message.contains("settings.tree: verifier 'target' does not verify trees"),
        "{message}"
    );
    let of_tree = generate(&full, tree).await;

    // A chain is drafted, and the answer does not promise that its seed gives it again.
    let answer = generate(&lesser, request("Once upon a time", 8)).await;
    assert!(answer.statistics().num_draft_tokens > 0);
    assert!(!answer.finished.reproducible && answer.finished.lossless);
    assert!(of_tree.finished.reproducible);
    assert_eq!(answer.tokens, of_tree.tokens);
}

#[tokio::test]
async fn no_more_sequences_are_held_than_the_engine_has() {
    let caps = Caps {
        max_sequences: 3,
        ..Caps::ALL
    };
    let lesser = with_model(target(), |model| Lesser { model, caps });
    let mut settings = VerifierConfig::default();
    settings.engine.prefix_sharing = true;
    let (verifier, monitor) = verifier_in(Process::default(), lesser, settings).await;
    let coordinator = coordinator(config(&[], &[verifier.url()])).await;
    let requests = (0..8).map(|seed| request("Once upon a time", 24).seed(seed));
    let watched = async {
        let mut most = 0;
        loop {
            most = most.max(monitor.engines[0].stats().sequences);
            assert!(most <= 3, "{most} sequences");
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    };
    let answers = join_all(requests.map(|requested| generate(&coordinator, requested)));
    tokio::select! {
        answers = answers => assert!(answers.iter().all(|answer| !answer.tokens.is_empty())),
        () = watched => {}
    }
}
