//! What each task forwards next: rows to be scored first, prompts in the room they leave.

use std::cmp::Reverse;

use speculation::ports::LanguageModel;

use super::{pace, worker::Worker};

impl<M: LanguageModel> Worker<M> {
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
            running.has_room
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
}
