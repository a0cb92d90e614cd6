//! A model whose forwards take as long as a test wants, and can be spoilt.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use model::Model;
use model::source::ServedModel;
use speculation::ports::{Caps, KvMemory, LanguageModel, ModelShape, Rows, Segment};

/// How a paced model goes; clones are one.
#[derive(Clone, Default)]
pub(crate) struct Pace(Arc<(Mutex<Gate>, Condvar)>);

#[derive(Default)]
struct Gate {
    is_held: bool,
    is_spoilt: bool,
    per_forward: Duration,
}

impl Pace {
    /// Every forward takes at least this long.
    pub(crate) fn slow(&self, per_forward: Duration) {
        self.0.0.lock().expect("whole").per_forward = per_forward;
    }

    /// No forward ends until [`Pace::release`].
    pub(crate) fn hold(&self) {
        self.0.0.lock().expect("whole").is_held = true;
    }

    /// Lets forwards go on.
    pub(crate) fn release(&self) {
        self.0.0.lock().expect("whole").is_held = false;
        self.0.1.notify_all();
    }

    /// From now on the fourth logit of each row is NaN.
    pub(crate) fn spoil(&self) {
        self.0.0.lock().expect("whole").is_spoilt = true;
    }

    /// Waits as long as a forward takes; whether it is spoilt.
    fn wait(&self) -> bool {
        let (gate, released) = &*self.0;
        let gate = gate.lock().expect("whole");
        let gate = released.wait_while(gate, |gate| gate.is_held);
        let gate = gate.expect("whole");
        let (pause, is_spoilt) = (gate.per_forward, gate.is_spoilt);
        drop(gate);
        std::thread::sleep(pause);
        is_spoilt
    }
}

/// A model that goes at a pace.
pub(crate) struct Paced<M> {
    model: M,
    pace: Pace,
}

/// `served`, at `pace`.
pub(crate) fn paced(served: ServedModel<Model>, pace: &Pace) -> ServedModel<Paced<Model>> {
    let pace = pace.clone();
    with_model(served, |model| Paced { model, pace })
}

/// `served`, with another model in its place.
pub(crate) fn with_model<M, N>(
    served: ServedModel<M>,
    change: impl FnOnce(M) -> N,
) -> ServedModel<N> {
    ServedModel {
        model: change(served.model),
        outline: served.outline,
        text: served.text,
        numerics: served.numerics,
        is_on_processors: served.is_on_processors,
        weights_fingerprint: served.weights_fingerprint,
        is_converted: served.is_converted,
        head_format: served.head_format,
        heads: served.heads,
        eos_token_ids: served.eos_token_ids,
        load_time: served.load_time,
    }
}

impl<M: LanguageModel> LanguageModel for Paced<M> {
    type Cache = M::Cache;
    type Error = M::Error;

    fn shape(&self) -> ModelShape {
        self.model.shape()
    }

    fn caps(&self) -> Caps {
        self.model.caps()
    }

    fn new_cache(&self) -> M::Cache {
        self.model.new_cache()
    }

    fn memory(&self) -> Option<KvMemory> {
        self.model.memory()
    }

    fn free_pages(&self) -> Option<usize> {
        self.model.free_pages()
    }

    fn is_out_of_memory(error: &M::Error) -> bool {
        M::is_out_of_memory(error)
    }

    fn forward(
        &mut self,
        batch: &mut [Segment<'_, M::Cache>],
        rows: &mut Rows,
    ) -> Result<(), M::Error> {
        let is_spoilt = self.pace.wait();
        self.model.forward(batch, rows)?;
        if is_spoilt {
            let each = rows.logits.chunks_mut(self.model.shape().vocab_size);
            each.for_each(|row| row[3] = f32::NAN);
        }
        Ok(())
    }
}
