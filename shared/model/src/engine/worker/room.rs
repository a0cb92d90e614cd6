//! Who gets room in the next forward, and who makes it.

use speculation::ports::{KvCache, LanguageModel};

use super::Worker;
use crate::engine::task::EngineError;

impl<M: LanguageModel> Worker<M>
where
    M::Cache: Send,
{
    /// Decides which tasks have room for all they ask for: the oldest first. For them idle sequences go,
    /// and then those of the youngest tasks, which wait. A task that would not fit alone fails.
    pub(super) fn make_room(&mut self) {
        let Some(budget) = self.budget.pages else {
            for running in &mut self.running {
                running.has_room = true;
            }
            return;
        };
        let chunk = self.config.prefill_chunk.get();
        // Promised to older tasks, beyond what they hold.
        let mut promised = 0;
        let mut index = 0;
        while let Some(running) = self.running.get(index) {
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
            self.running[index].has_room = has_room;
            if has_room {
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
    fn used_pages(&self) -> usize {
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
        self.shared.figures().memory.evictions += count as u64;
    }

    fn refuse(&mut self, index: usize, pages: usize) {
        let running = self.running.remove(index);
        let tokens = (self.model.memory()).map_or(0, |memory| memory.tokens(pages));
        let error = EngineError::OverBudget {
            tokens,
            kv_tokens: self.budget.tokens,
        };
        self.end(running, error);
    }
}
