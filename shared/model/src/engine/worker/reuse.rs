//! What is computed once for sequences that begin alike: the beginning is held by one that ended, waits or runs, or is being
//! read for one that runs.

use std::sync::Arc;

use speculation::{
    TokenId,
    ports::{KvCache, LanguageModel},
};

use super::Worker;
use crate::{
    cache::PAGE,
    engine::{
        handle::Queued,
        running::{RunningTask, Turn},
        task::SlotId,
    },
    sequence::in_common,
};

/// Forwards that a task waits for one that is not getting on, before it reads itself what both begin with.
const PATIENCE: u32 = 8;

impl<M: LanguageModel> Worker<M>
where
    M::Cache: Send,
{
    /// Returns the task with the sequence that it begins with: its slot's, or the longest beginning that a sequence of its
    /// tenant holds.
    pub(super) fn begin(&mut self, queued: Queued) -> RunningTask<M::Cache> {
        let sequence = (self.slots).take_or(queued.slot, || self.model.new_cache());
        let mut running = RunningTask::new(queued, sequence);
        if !running.sequence.tokens().is_empty() {
            return running;
        }
        if let Some(tenant) = self.sharing(&running)
            && let Some(shared) = self.longest(&tenant, running.beginning())
        {
            let tokens = running.take_over(shared);
            self.shared.stats.lock().shared_tokens += tokens as u64;
        }
        running
    }

    /// Forgets a slot; what its sequence began with may serve its tenant again.
    pub(super) fn free(&mut self, slot: SlotId) {
        self.gather.forget(slot);
        let freed = self.slots.free(slot);
        if let Some((tenant, sequence)) = freed.filter(|_| self.config.prefix_sharing) {
            let bound = self.config.max_cached_sequences.get();
            self.prefixes.keep(tenant, &sequence, bound);
        }
    }

    /// Has tasks wait while an older one reads what they begin with, too, and take it over when it is read.
    pub(super) fn follow(&mut self) {
        for index in 0..self.running.len() {
            let tenant = self.sharing(&self.running[index]);
            let (older, younger) = self.running.split_at_mut(index);
            let own = &mut younger[0];
            let had_room = std::mem::take(&mut own.turn) == Turn::HasRoom;
            // What was made to give its memory back does not take it again before there is room.
            let may_take = own.missing() >= PAGE && (had_room || own.sequence.lost() == 0);
            let (Some(tenant), true) = (tenant, may_take) else {
                continue;
            };
            let held = own.sequence.tokens().len();
            let ahead = older
                .iter()
                .filter(|it| it.tenant.as_ref() == Some(&tenant));
            let ahead = ahead.map(|it| {
                let alike = in_common(it.task.tokens(), own.beginning()) / PAGE * PAGE;
                (alike, alike.min(it.sequence.tokens().len()), it)
            });
            let Some((alike, there, first)) =
                ahead.max_by_key(|(alike, there, _)| (*alike, *there))
            else {
                continue;
            };
            if alike <= held {
                continue;
            }
            if there < alike {
                let is_read = first.missing() > 0 && first.waited < PATIENCE;
                if is_read || first.turn == Turn::Follows {
                    own.turn = Turn::Follows;
                }
            } else if let Some(cache) = (first.sequence.cache().share(alike))
                // Of what ends in a tree, or has a window, there may be less to share.
                .filter(|cache| cache.len() > held)
            {
                let tokens = own.take_over(cache);
                self.shared.stats.lock().shared_tokens += tokens as u64;
            }
        }
    }

    /// Returns the tenant among whose sequences `task` may find its beginning; none if it may not.
    fn sharing(&self, task: &RunningTask<M::Cache>) -> Option<Arc<str>> {
        // What a decoder with an encoder holds is of one source, whatever its tokens.
        let shares = self.config.prefix_sharing && task.task.source().is_empty();
        task.tenant.clone().filter(|_| shares)
    }

    /// Returns a cache that holds as many of `tokens` as that of a sequence of `tenant` that ended, waits or runs.
    fn longest(&mut self, tenant: &str, tokens: &[TokenId]) -> Option<M::Cache> {
        let of_tenant = |it: &&RunningTask<M::Cache>| it.tenant.as_deref() == Some(tenant);
        let running = self.running.iter().filter(of_tenant).map(|it| &it.sequence);
        let held = running.chain(self.slots.of_tenant(tenant));
        let held = held.map(|it| (in_common(it.tokens(), tokens), it));
        let longest = held.max_by_key(|(alike, _)| *alike);
        let kept = self.prefixes.longest(tenant, tokens);
        match longest {
            Some((alike, sequence)) if alike > kept => sequence.cache().share(alike),
            _ => self.prefixes.begin(tenant, tokens),
        }
    }
}
