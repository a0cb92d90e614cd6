//! Drafts that come while a task decodes: they get rows in free room, and change nothing else.

mod order;
mod rows;
mod waiting;

use std::{thread, time::Instant};

use speculation::{
    TokenId,
    ports::{Caps, KvMemory, LanguageModel, ModelShape, Rows, Segment},
};

use super::*;

/// A token that is a draft, and that no task decodes.
const DRAFT: TokenId = 63;

/// The tokens of a forward, one entry a segment.
type Tokens = Vec<Vec<TokenId>>;

/// A model whose forwards are recorded.
struct Recorded<M> {
    model: M,
    caps: Caps,
    forwards: Arc<Mutex<Vec<Tokens>>>,
}

impl<M: LanguageModel> Recorded<M> {
    fn new(model: M) -> Self {
        Self {
            caps: model.caps(),
            model,
            forwards: Arc::default(),
        }
    }
}

impl<M: LanguageModel> LanguageModel for Recorded<M> {
    type Cache = M::Cache;
    type Error = M::Error;

    fn shape(&self) -> ModelShape {
        self.model.shape()
    }

    fn caps(&self) -> Caps {
        self.caps
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

    fn forward(
        &mut self,
        batch: &mut [Segment<'_, M::Cache>],
        rows: &mut Rows,
    ) -> Result<(), M::Error> {
        let tokens = batch.iter().map(|segment| segment.tokens.to_vec());
        self.forwards.lock().unwrap().push(tokens.collect());
        self.model.forward(batch, rows)
    }
}

/// What a task of these tests tells.
#[derive(Debug)]
enum Told {
    /// It was asked for drafts: whether for a chain.
    Asked(bool),
    /// It was asked whether drafts are worth a wait.
    Waits,
    /// A step: the drafts that had rows, the rows and the tokens forwarded for it.
    Step(Vec<u32>, Vec<f32>, usize),
}

/// Drafts that a task offers, the best first.
#[derive(Clone, Default)]
struct Offer {
    worth: Vec<f32>,
    tokens: Vec<TokenId>,
    /// Of each the number of its parent among them; empty for a chain.
    parents: Vec<Option<u32>>,
    /// Of its first drafts the numbers of those that stand.
    stands: Vec<u32>,
}

impl Offer {
    /// A chain of drafts that never stand.
    fn wrong(worth: &[f32]) -> Self {
        Self {
            worth: worth.to_vec(),
            tokens: vec![DRAFT; worth.len()],
            ..Self::default()
        }
    }
}

/// Decodes `extra` tokens after the first, each the first of its tokens, or what drafts stand; takes drafts if it offers any.
struct Stream {
    tokens: Vec<TokenId>,
    /// Number of the tokens that are no drafts.
    own: usize,
    extra: usize,
    offer: Option<Offer>,
    /// What it expects.
    awaited: Arc<dyn Fn() -> Awaited + Send + Sync>,
    /// Held by a test that holds up the engine.
    gate: Arc<Mutex<()>>,
    told: Sender<Told>,
}

impl Stream {
    fn new(tokens: &[TokenId], extra: usize, offer: Option<Offer>) -> (Self, Receiver<Told>) {
        let (told, receiver) = channel();
        let task = Self {
            tokens: tokens.to_vec(),
            own: tokens.len(),
            extra,
            offer,
            awaited: Arc::new(|| Awaited::Nothing),
            gate: Arc::default(),
            told,
        };
        (task, receiver)
    }

    fn tell(&self, told: Told) {
        let _closed = self.told.send(told);
    }

    fn drafts(&self) -> usize {
        self.tokens.len() - self.own
    }
}

impl Task for Stream {
    fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    fn scored_from(&self) -> usize {
        self.own - 1
    }

    fn parents(&self) -> &[Option<u32>] {
        let offer = self.offer.as_ref();
        let parents = offer.map_or(&[][..], |offer| &offer.parents);
        &parents[..self.drafts().min(parents.len())]
    }

    fn takes_drafts(&self) -> bool {
        self.offer.is_some()
    }

    fn offer(&mut self, chain: bool, worth: &mut Vec<f32>) {
        self.tell(Told::Asked(chain));
        worth.extend(self.offer.iter().flat_map(|offer| &offer.worth));
    }

    fn prepare(&mut self, drafts: usize) {
        self.tokens.truncate(self.own);
        let offer = self.offer.as_ref().expect("it takes some");
        self.tokens.extend(&offer.tokens[..drafts]);
    }

    fn awaited(&mut self, _: Duration) -> Awaited {
        self.tell(Told::Waits);
        (self.awaited)()
    }

    fn step(&mut self, rows: StepRows<'_>) -> TaskProgress {
        let _gate = self.gate.lock();
        let drafts = self.tokens.split_off(self.own);
        let (logits, forwarded) = (rows.logits.to_vec(), rows.timing.forwarded_tokens);
        self.tell(Told::Step(drafts.clone(), logits, forwarded));
        if self.extra == 0 {
            return TaskProgress::Done;
        }
        self.extra -= 1;
        let offer = self.offer.as_ref();
        let stands = offer.map_or(&[][..], |offer| &offer.stands);
        let has_row = |node: &&u32| (**node as usize) < drafts.len();
        let stand = stands.iter().take_while(has_row);
        let stand = stand.map(|&node| drafts[node as usize]);
        self.tokens.extend(stand);
        self.tokens.push(self.tokens[0]);
        self.own = self.tokens.len();
        TaskProgress::Continue
    }

    fn fail(self: Box<Self>, error: TaskError) {
        panic!("{error}");
    }
}

/// The drafts with rows in each step, and what else came of it.
fn steps(receiver: &Receiver<Told>) -> Vec<(Vec<u32>, Vec<f32>, usize)> {
    let steps = std::iter::from_fn(|| receiver.recv_timeout(PATIENCE).ok());
    let steps = steps.filter_map(|told| match told {
        Told::Step(drafts, rows, forwarded) => Some((drafts, rows, forwarded)),
        Told::Asked(_) | Told::Waits => None,
    });
    steps.collect()
}

fn drafts_of(receiver: &Receiver<Told>) -> Vec<usize> {
    let steps = steps(receiver).into_iter();
    steps.map(|(drafts, ..)| drafts.len()).collect()
}

/// Waits until the engine has nothing to do, and returns what it did.
fn at_rest(handle: &EngineHandle) -> EngineStats {
    let until = Instant::now() + PATIENCE;
    loop {
        let stats = handle.stats();
        if stats.running + stats.queued == 0 {
            return stats;
        }
        assert!(Instant::now() < until, "{stats:?}");
        thread::yield_now();
    }
}
