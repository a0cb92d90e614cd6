//! Rows for drafts that come while the target decodes.
//!
//! A forward is planned as if there were none: which tasks are in it, who gets room, who waits. Drafts then get rows in
//! what is free of tokens and memory, so they change the length of forwards and nothing else. The engine gives rows to those
//! that are worth most, over all tasks of the forward, for as long as tokens a second grow by it: a draft that stands with
//! probability s adds s tokens, and the time of its row is waited for by all.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use speculation::goodput::CostLine;
use speculation::ports::{KvCache, LanguageModel};

use super::Worker;
use crate::engine::{
    running::{RunningTask, Turn},
    task::Awaited,
};

/// Share of its time by which drafts may lengthen a forward, in the mean, while there are tasks that take none: what
/// others gain is nothing to them.
const PATIENCE: f64 = 0.04;

/// Most of that which may be saved up, as a share of a forward.
const SAVED: f64 = 0.25;

/// Forwards for which a task that takes no drafts counts as there: sessions in rounds come and go.
const LATELY: u32 = 16;

/// What a row is assumed to cost until it was measured, as a share of a forward.
const ASSUMED: f64 = 0.1;

/// Time of a forward until one was measured: nothing but costs relative to it counts then.
const UNMEASURED: f64 = 1.0;

/// Least cost of a row at any length of its sequence, as a share of the mean one.
const LEAST: f64 = 0.2;

/// Forwards in a row whose drafts were not worth a row until one is given all the same: what a row costs is measured only
/// where there are some.
const UNTRIED: u32 = 256;

/// Tokens of context in which the cost by context is counted.
const CONTEXT: f64 = 1024.0;

/// Decides how many draft rows each task of a forward gets, by their measured cost.
pub(in crate::engine) struct DraftRows {
    /// Seconds of forwards, as a line of the context that their rows look back on, all together.
    context_cost: CostLine,
    /// Mean context of a row.
    context: f64,
    /// Forwards since the last that had a task without drafts.
    alone: u32,
    /// Seconds by which drafts may lengthen forwards of those that take none.
    patience: f64,
    /// The least probability of standing that was worth a row in the next forward; 0 if nothing was offered.
    pub(super) price: f64,
    /// Forwards in a row whose drafts were not worth a row.
    untried: u32,
    worth: Vec<f32>,
    candidates: Vec<Candidate>,
}

/// Returns `seconds`, or what stands for them where nothing was measured yet.
fn measured(seconds: f64) -> f64 {
    if seconds > 0.0 { seconds } else { UNMEASURED }
}

/// A draft token that a task offers.
struct Candidate {
    task: usize,
    /// Probability that it stands.
    worth: f64,
    /// Seconds of its row.
    cost: f64,
}

impl DraftRows {
    pub(super) fn new(memory: f64) -> Self {
        Self {
            context_cost: CostLine::new(memory, 0.0),
            context: 0.0,
            alone: LATELY,
            patience: 0.0,
            price: 0.0,
            untried: 0,
            worth: Vec::new(),
            candidates: Vec::new(),
        }
    }

    /// Takes note of a forward without prompts that took `seconds`.
    pub(super) fn observe<C: KvCache>(
        &mut self,
        running: &[RunningTask<C>],
        rows_cost: &CostLine,
        seconds: f64,
    ) {
        let planned = running.iter().filter(|own| own.is_planned());
        let rows = planned.clone().map(RunningTask::planned_tokens);
        let contexts = planned.map(|own| own.planned_tokens() as f64 * own.planned_len() as f64);
        let (rows, context) = (rows.sum::<usize>() as f64, contexts.sum::<f64>() / CONTEXT);
        let left = seconds - rows_cost.slope() * rows;
        self.context_cost.observe(context, left.max(0.0));
        self.context += 0.1 * (context / rows.max(1.0) - self.context);
    }

    /// Seconds of a row that looks back on `len` tokens.
    fn cost(&self, rows_cost: &CostLine, len: usize) -> f64 {
        let mean = rows_cost.slope();
        if mean <= 0.0 {
            return ASSUMED * measured(rows_cost.mean());
        }
        let beyond = len as f64 / CONTEXT - self.context;
        (mean + self.context_cost.slope() * beyond).max(LEAST * mean)
    }

    /// Begins the next forward, which takes `seconds` without drafts; `has_others` says whether some of its tasks take no
    /// drafts.
    fn begins(&mut self, has_others: bool, seconds: f64) {
        self.alone = self.alone.saturating_add(1);
        if has_others {
            self.alone = 0;
        }
        self.patience = (self.patience + PATIENCE * seconds).min(SAVED * seconds);
        self.price = 0.0;
        self.candidates.clear();
    }

    /// Returns whether every task of the last [`LATELY`] forwards took drafts.
    fn is_shared(&self) -> bool {
        self.alone >= LATELY
    }

    /// Chooses from the candidates as many as are worth their rows, in a forward that takes `seconds` and gives `tokens` tokens
    /// without them, as far as there is `room`. `pages` tells what so many drafts of a task take. Returns, for each of
    /// `tasks` tasks, how many of its drafts it gets.
    fn choose(
        &mut self,
        (mut tokens, mut seconds): (f64, f64),
        mut room: Room,
        tasks: usize,
        pages: impl Fn(usize, usize) -> usize,
    ) -> Vec<usize> {
        let mut given = vec![0; tasks];
        let is_shared = self.is_shared();
        // The best draft, whatever it seems to cost.
        let mut tries = is_shared && self.untried >= UNTRIED;
        for &Candidate { task, worth, cost } in &self.candidates {
            self.price = tokens / seconds * cost;
            let is_bought = room.rows > 0 && (worth >= self.price || std::mem::take(&mut tries));
            if !is_bought || !is_shared && cost > self.patience {
                break;
            }
            let held = pages(task, given[task]);
            let more = pages(task, given[task] + 1).saturating_sub(held);
            // Others may have room in the pages that they hold.
            if more > room.pages {
                continue;
            }
            room.rows -= 1;
            room.pages -= more;
            given[task] += 1;
            tokens += worth;
            seconds += cost;
            if !is_shared {
                self.patience -= cost;
            }
        }
        let is_refused = given.iter().all(|&drafts| drafts == 0);
        self.untried = if is_refused { self.untried + 1 } else { 0 };
        given
    }
}

/// Rows and pages of a forward that drafts may use.
#[derive(Clone, Copy)]
struct Room {
    rows: usize,
    pages: usize,
}

impl<M: LanguageModel> Worker<M>
where
    M::Cache: Send,
{
    /// Adds the drafts to the planned forward that are worth their rows, as far as there is room.
    pub(super) fn give_drafts(&mut self) {
        let others = self.running.iter().any(|own| !own.task.takes_drafts());
        let tasks = self.running.iter().filter(|own| own.rows() > 0).count();
        let tokens: usize = self.running.iter().map(RunningTask::planned_tokens).sum();
        let seconds = self.rows_cost.fixed() + self.rows_cost.slope() * tokens as f64;
        let mut planned = self.running.iter().filter(|own| own.is_planned());
        // Of a first prompt nobody knows how long it takes anyway.
        let is_first_prompt = seconds <= 0.0 && planned.any(|own| own.prefilled() > 0);
        let seconds = measured(seconds);
        self.drafts.begins(others, seconds);
        self.collect();
        if self.drafts.candidates.is_empty() || is_first_prompt {
            return;
        }
        let chunk = self.config.prefill_chunk.get();
        let rows = self.config.max_batch_tokens.get().saturating_sub(tokens);
        let room = Room {
            rows: rows.min(self.config.max_draft_rows),
            pages: self.free_pages(),
        };
        let running = &self.running;
        let pages = |task: usize, drafts| running[task].draft_pages(drafts, chunk);
        let given = (self.drafts).choose((tasks as f64, seconds), room, running.len(), pages);
        let shape = self.model.shape();
        for (own, drafts) in self.running.iter_mut().zip(given) {
            if drafts > 0 {
                own.take_drafts(drafts, shape);
            }
        }
    }

    /// Collects what tasks offer, the best for its cost first.
    fn collect(&mut self) {
        // Where sequences are few, leaves of trees take some of them: a chain never does.
        let caps = self.model.caps();
        let chain = !caps.trees || caps.max_sequences < usize::MAX;
        let most = match self.config.tree_tokens {
            0 => self.config.max_draft_rows,
            tree_tokens => tree_tokens,
        };
        let drafts = &mut self.drafts;
        for (task, own) in self.running.iter_mut().enumerate() {
            if !own.may_draft() {
                continue;
            }
            drafts.worth.clear();
            own.task.offer(chain, &mut drafts.worth);
            let cost = drafts.cost(&self.rows_cost, own.planned_len());
            let offered = drafts.worth.iter().take(most).map(|&worth| Candidate {
                task,
                worth: worth.into(),
                cost,
            });
            drafts.candidates.extend(offered);
        }
        // Of one task's the order stays.
        drafts
            .candidates
            .sort_by(|one, other| (other.worth / other.cost).total_cmp(&(one.worth / one.cost)));
    }

    /// Pages that no sequence holds or was promised.
    fn free_pages(&self) -> usize {
        let Some(budget) = self.budget.pages else {
            return usize::MAX;
        };
        let chunk = self.config.prefill_chunk.get();
        let promised = self.running.iter().filter(|own| own.turn == Turn::HasRoom);
        let promised: usize = promised.map(|own| own.pages_needed(chunk)).sum();
        budget.saturating_sub(self.used_pages() + promised)
    }

    /// Waits a moment for drafts that are about to come, if every task of the next forward gains by it. Returns whether
    /// something came.
    pub(super) fn awaits_drafts(&mut self) -> bool {
        let all_take = self.running.iter().all(|own| own.task.takes_drafts());
        if !all_take || !self.drafts.is_shared() || !self.rows_cost.is_known() {
            return false;
        }
        // The flag is set before tasks are asked: a proposal that arrives in between must wake this thread.
        self.shared.awaits_drafts.store(true, Ordering::Release);
        let waits = self.until().is_some_and(|until| {
            let now = Instant::now();
            let job = (until > now).then(|| self.receiver.recv_timeout(until - now));
            job.and_then(Result::ok).map(|job| self.take(job)).is_some()
        });
        self.shared.awaits_drafts.store(false, Ordering::Release);
        waits
    }

    /// Until when drafts are awaited; none if a task expects none.
    fn until(&mut self) -> Option<Instant> {
        let forward = Duration::from_secs_f64(self.rows_cost.mean());
        let mut until = None;
        for own in &mut self.running {
            match own.task.awaited(forward) {
                Awaited::Nothing => return None,
                Awaited::Here => {}
                Awaited::Until(at) => until = until.max(Some(at)),
            }
        }
        until
    }
}

#[cfg(test)]
mod tests;
