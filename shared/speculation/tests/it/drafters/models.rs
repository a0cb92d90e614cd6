//! Models to run cascades on.

use std::sync::Arc;

use speculation::TokenId;
use speculation::cascade::{
    BlockLimits, CallChance, Cascade, CascadeConfig, CascadeStep, CascadeToken, DraftDistributions,
    DraftRows, Grams, Reviewing,
};
use speculation::max_gram::{Bigram, MaxGram};
use speculation::proposal::BadProposal;

use crate::tree::Distributions;

/// What a model says after a context: its sampling distribution and its unscaled distribution.
pub(crate) trait Model {
    fn after(&self, context: &[TokenId]) -> (Vec<f64>, Vec<f64>);
}

impl Model for Distributions {
    fn after(&self, context: &[TokenId]) -> (Vec<f64>, Vec<f64>) {
        let probs = Distributions::after(self, context);
        (probs.clone(), probs)
    }
}

/// A model at temperature 0: a one-hot sampling distribution.
pub(crate) struct AtZero<M>(pub(crate) M);

impl<M: Model> Model for AtZero<M> {
    fn after(&self, context: &[TokenId]) -> (Vec<f64>, Vec<f64>) {
        let (_, unscaled) = self.0.after(context);
        let best = speculation::real::argmax(&unscaled);
        let probs = (0..unscaled.len()).map(|token| f64::from(u8::from(token == best)));
        (probs.collect(), unscaled)
    }
}

/// A model's rows along a block, made as they are asked for.
pub(crate) struct Rows<'a> {
    pub(crate) model: &'a dyn Model,
    pub(crate) context: &'a [TokenId],
    pub(crate) tokens: &'a [TokenId],
    pub(crate) row: (Vec<f64>, Vec<f64>),
    pub(crate) next: usize,
}

/// Any error of a row.
#[derive(Debug)]
pub(crate) struct NoRow;

impl From<BadProposal> for NoRow {
    fn from(bad: BadProposal) -> Self {
        panic!("{bad}");
    }
}

impl DraftRows<f64> for Rows<'_> {
    type Error = NoRow;

    fn distributions(&mut self, offset: usize) -> Result<DraftDistributions<'_, f64>, NoRow> {
        assert_eq!(offset, self.next, "rows are asked for in order");
        self.next += 1;
        let prefix = [self.context, &self.tokens[..offset]].concat();
        self.row = self.model.after(&prefix);
        Ok(DraftDistributions {
            probs: &mut self.row.0,
            unscaled: Some(&self.row.1),
        })
    }
}

/// What drafts.
pub(crate) struct Drafts<'a> {
    pub(crate) config: Arc<CascadeConfig>,
    /// The draft models, the largest first.
    pub(crate) models: Vec<&'a dyn Model>,
    pub(crate) bigram: Bigram,
    pub(crate) ends: Vec<TokenId>,
}

impl<'a> Drafts<'a> {
    /// Drafts of as many of `models` as `config` has, with what follows each token in the table.
    pub(crate) fn new<M: Model>(
        config: Arc<CascadeConfig>,
        models: &'a [M],
        next: Vec<TokenId>,
    ) -> Self {
        let models = models[..config.models()].iter();
        Self {
            models: models.map(|model| model as &dyn Model).collect(),
            config,
            bigram: Bigram::new(next).expect("a table"),
            ends: Vec::new(),
        }
    }

    /// The draft block after `context`, whose last `base_len` tokens are output, and the calls.
    pub(crate) fn draft<C: CallChance<f64>>(
        &self,
        context: &[TokenId],
        base_len: u32,
        max_tokens: usize,
        reviewing: Reviewing<C>,
    ) -> (Vec<CascadeToken<f64>>, Vec<u32>) {
        let block = BlockLimits {
            base_len,
            max_tokens,
            ends: self.ends.clone(),
        };
        let config = self.config.clone();
        let mut cascade = Cascade::new(config, reviewing, block).expect("a cascade");
        let mut index = MaxGram::new(&[]);
        index.reconcile(context);
        loop {
            let grams = Grams {
                index: &mut index,
                bigram: &self.bigram,
            };
            let next = cascade.next(Some(grams));
            assert_eq!(index.tokens(), context, "the index is left as it was");
            let CascadeStep::Score { level, from, rows } = next else {
                break;
            };
            assert_eq!(
                cascade.next(None),
                next,
                "nothing changes until it is answered"
            );
            let tokens = cascade.tokens().to_vec();
            assert!(rows > 0 && from + rows <= tokens.len() + 1 && from + rows <= max_tokens);
            let mut distributions = Rows {
                model: self.models[level - 1],
                context,
                tokens: &tokens,
                row: Default::default(),
                next: from,
            };
            cascade.supply(&mut distributions, |_, _| ()).expect("rows");
            assert!(
                distributions.next <= from + rows,
                "no more rows than were wanted"
            );
        }
        let calls = cascade.calls().to_vec();
        (cascade.finish(), calls)
    }
}
