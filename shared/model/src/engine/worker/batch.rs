//! What each task forwards next: who gets room in memory for it and who makes it, then rows to be scored first and prompts
//! in what they leave.

use std::cmp::Reverse;

use speculation::ports::{KvCache, LanguageModel};

use super::Worker;
use crate::engine::{pace, running::Turn, task::TaskError};

impl<M: LanguageModel> Worker<M>
where
    M::Cache: Send,
{
    /// Shares the tokens of the next forward among the tasks that have room in memory. Those that got
    /// nothing the last times come first.
    pub(super) fn share_tokens(&mut self) {
        let bound = self.config.max_batch_tokens.get();
        let chunk = self.config.prefill_chunk.get();
        let mut order: Vec<usize> = (0..self.running.len()).collect();
        order.sort_by_key(|&index| Reverse(self.running[index].waited));
        order.retain(|&index| {
            let running = &mut self.running[index];
            running.wait();
            running.turn == Turn::HasRoom
        });
        let (prefills, blocks): (Vec<usize>, Vec<usize>) = order
            .into_iter()
            .partition(|&index| self.running[index].missing() > 0);
        // Many blocks must not keep a prompt from ever being read.
        let kept = if prefills.is_empty() { 0 } else { bound / 4 };
        let mut taken = 0;
        for index in blocks {
            let running = &mut self.running[index];
            let rows = running.block();
            if taken == 0 || taken + rows <= bound - kept {
                running.forward_all();
                taken += rows;
            }
        }
        // Even if one block alone takes all of the bound.
        let mut left = bound.saturating_sub(taken).max(kept).max(1);
        let mut in_time = self.pace.tokens().saturating_sub(taken).max(pace::LEAST);
        let mut tasks = prefills.len();
        for index in prefills {
            let running = &mut self.running[index];
            let (missing, rows) = (running.missing(), running.block());
            // What a sequence has to catch up on is no prompt, and is not cut to save time.
            let is_prompt = missing > pace::LEAST;
            let share = if is_prompt { left.min(in_time) } else { left }.div_ceil(tasks);
            tasks -= 1;
            let mut taken = 0;
            if missing <= share.min(chunk) && missing + rows <= left {
                running.forward_all();
                taken = missing + rows;
            } else if share > 0 {
                taken = missing.min(share).min(chunk);
                running.forward_part(taken);
            }
            left -= taken;
            in_time = in_time.saturating_sub(taken);
        }
        self.share_encoding();
    }

    /// Sources are encoded whole. Of those that come to more than a chunk together only the first is read
    /// now, so that many of them do not stall the others.
    fn share_encoding(&mut self) {
        let chunk = self.config.prefill_chunk.get();
        let mut read = 0;
        for running in &mut self.running {
            let unread = running.unread();
            if unread == 0 || !running.is_planned() {
                continue;
            }
            if read > 0 && read + unread > chunk {
                running.wait();
            } else {
                read += unread;
            }
        }
    }

    /// Decides which tasks have room for all they ask for: the oldest first. For them idle sequences go,
    /// and then those of the youngest tasks, which wait. A task that would not fit alone fails.
    pub(super) fn make_room(&mut self) {
        let Some(budget) = self.budget.pages else {
            for running in &mut self.running {
                if running.turn == Turn::Waits {
                    running.turn = Turn::HasRoom;
                }
            }
            return;
        };
        let chunk = self.config.prefill_chunk.get();
        // Promised to older tasks, beyond what they hold.
        let mut promised = 0;
        let mut index = 0;
        while let Some(running) = self.running.get(index) {
            if running.turn == Turn::Follows {
                // It takes memory when what it waits for is read.
                index += 1;
                continue;
            }
            let held = running.sequence.cache().pages();
            let need = running.pages_needed(chunk);
            if held + need > budget {
                self.refuse(index, held + need);
                continue;
            }
            let fits = |worker: &Self| worker.used_pages() + promised + need <= budget;
            while !fits(self) && self.evict_idle() {}
            if !fits(self) {
                let younger = self.running[index + 1..].iter();
                let theirs: usize = younger.map(|own| own.sequence.cache().pages()).sum();
                if self.used_pages() + promised + need <= budget + theirs {
                    let mut youngest = self.running.len();
                    while !fits(self) && youngest > index + 1 {
                        youngest -= 1;
                        self.drop_sequence(youngest);
                    }
                }
            }
            // What is still in the oldest's way is no sequence of this engine.
            let has_room = index == 0 || fits(self);
            if has_room {
                self.running[index].turn = Turn::HasRoom;
                promised += need;
            }
            index += 1;
        }
    }

    /// After a forward that ran out of memory: has all that is idle give its own back, and tries once more. The
    /// budget alone does not prevent it, for it counts neither what forwards take nor what others take of the memory.
    pub(super) fn forward_again(&mut self, error: M::Error) -> Result<(), M::Error> {
        if !M::is_out_of_memory(&error) {
            return Err(error);
        }
        let mut evicted = 0;
        while self.evict_idle() {
            evicted += 1;
        }
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            evicted,
            "a forward ran out of memory"
        );
        if evicted == 0 {
            return Err(error);
        }
        self.forward()
    }

    /// Pages that all sequences and prefixes take.
    pub(super) fn used_pages(&self) -> usize {
        self.model.memory().map_or(0, |memory| memory.used_pages)
    }

    /// Makes the kept prefix, or the idle sequence, that was unused the longest give its memory back.
    fn evict_idle(&mut self) -> bool {
        if self.prefixes.evict_oldest() {
            return true;
        }
        let has_evicted = self.slots.evict_oldest();
        self.count_evictions(usize::from(has_evicted));
        has_evicted
    }

    /// Makes a running task's sequence give its memory back.
    fn drop_sequence(&mut self, index: usize) {
        let sequence = &mut self.running[index].sequence;
        if sequence.cache().pages() > 0 {
            sequence.forget();
            self.count_evictions(1);
        }
    }

    pub(super) fn count_evictions(&self, count: usize) {
        self.shared.stats.lock().evictions += count as u64;
    }

    fn refuse(&mut self, index: usize, pages: usize) {
        let running = self.running.remove(index);
        let tokens = (self.model.memory()).map_or(0, |memory| memory.tokens(pages));
        let error = TaskError::OverBudget {
            tokens,
            kv_tokens: self.budget.tokens,
        };
        self.end(running, error);
    }
}
