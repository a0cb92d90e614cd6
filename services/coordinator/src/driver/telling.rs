//! What a request under way tells its client.

use speculation::session::{Action, FinishReason, Input, Plan};
use v1::generate_response::Part;
use wire::v1;

use super::{Cut, Driver, hexadecimal};
use crate::grpc::RESTART_RETRY_AFTER;
use crate::peer_links::RoundTimes;
use crate::report;

impl Driver {
    /// Reports the round that a peer just answered with tokens, to the observer, and to the client if it
    /// wants reports; `by_drafter` tells who answered.
    pub(super) async fn report_round(&mut self, by_drafter: bool) {
        // The tokens of the round come first: the report speaks of what the client has. A stop string
        // among them may cut the output, so where the round began is noted before.
        let len = self.session.output().len() as u32;
        let mut emitted = 0;
        while let Some(action) = self.session.poll_emit() {
            emitted += action.len() as u32;
            let _last = self.carry_out(Action::Emit(action)).await;
        }
        if emitted == 0 {
            return;
        }
        self.reported_rounds += 1;
        let statistics = self.session.statistics();
        let steps = statistics.per_step_drafted.len();
        let (drafted, accepted) = if by_drafter {
            // Nobody looks these over.
            (emitted, emitted)
        } else if steps > self.reported_steps {
            let last = steps - 1;
            let drafted = &statistics.per_step_drafted;
            (drafted[last], statistics.per_step_accepted[last])
        } else {
            (0, 0)
        };
        self.reported_steps = steps;
        let RoundTimes {
            draft,
            verify,
            drafter,
            verifier,
            ..
        } = std::mem::take(&mut self.links.times);
        let bytes = self.links.wire_bytes().rounds();
        let report = v1::RoundReport {
            round: self.reported_rounds,
            base_len: len - emitted,
            drafted,
            accepted,
            emitted,
            draft_us: draft.as_micros() as u32,
            verify_us: verify.as_micros() as u32,
            drafter: Some(drafter),
            verifier: Some(verifier),
            wire_bytes: bytes - self.reported_bytes,
            laws: self.links.laws.take(),
        };
        self.reported_bytes = bytes;
        self.observer.round(&report);
        if self.request.report_rounds {
            self.answer(Part::Round(report)).await;
        }
    }

    /// Tells the observer whom the session lost meanwhile, and where it moved.
    pub(super) fn observe_losses(&mut self) {
        let fallbacks = &self.session.statistics().fallbacks;
        self.observer.losses(fallbacks, self.links.migrations());
    }

    /// Sends a part to the client. A client that does not read holds its request up, until the
    /// request's deadline or the coordinator's last call and no longer.
    pub(super) async fn answer(&mut self, part: Part) {
        let tokens = match &part {
            Part::Chunk(chunk) => chunk.token_ids.len(),
            _ => 0,
        };
        let message = Ok(v1::GenerateResponse { part: Some(part) });
        let deadline = self.began + self.request.timeout;
        let sent = tokio::select! {
            biased;
            sent = self.answers.send(message) => sent,
            () = self.health.last_call() => return self.cut(Cut::LastCall),
            () = tokio::time::sleep_until(deadline.into()) => return self.cut(Cut::Deadline),
        };
        match sent {
            Ok(()) => self.delivered += tokens,
            Err(_) => self.session.handle(Input::Cancel, self.began.elapsed()),
        }
    }

    pub(super) fn started(&self) -> v1::Started {
        let request = &self.request;
        v1::Started {
            request_id: hexadecimal(&self.id),
            model: request.group.name().to_owned(),
            method: request.method.name().to_owned(),
            seed: request.seed,
            prompt_tokens: request.prompt.len() as u32,
            max_tokens: request.max_tokens,
        }
    }

    pub(super) async fn finish(mut self, reason: &FinishReason) {
        self.observer.flushing();
        let rest = match reason {
            FinishReason::Stop | FinishReason::Length => self.output.finish(),
            _ => String::new(),
        };
        if !rest.is_empty() {
            let chunk = v1::Chunk {
                text: rest,
                ..Default::default()
            };
            self.observer.emitted(&chunk);
            self.answer(Part::Chunk(chunk)).await;
        }
        if let Some(measured) = self.session.goodput() {
            self.request.keep_estimate(measured);
        }
        let (finish_reason, code, error) = match self.cut {
            Some(Cut::LastCall) => report::interrupted(),
            Some(Cut::Deadline) => report::finish(&FinishReason::DeadlineExceeded),
            None => report::finish(reason),
        };
        let moves = self.links.moves();
        let statistics = self.session.statistics();
        let bytes = self.links.wire_bytes();
        let tokens = self.delivered;
        let total = self.began.elapsed();
        let finished = v1::Finished {
            reason: finish_reason.into(),
            error,
            error_code: code as u32,
            usage: Some(v1::Usage {
                prompt_tokens: self.request.prompt.len() as u32,
                completion_tokens: tokens as u32,
            }),
            speculation: Some(v1::SpeculationStatistics {
                draft_forwards: statistics.draft_forwards + self.links.laws_fetched,
                migrations: moves.migrations,
                wire_bytes: bytes.opening() + bytes.rounds(),
                rounds: self.session.rounds(),
                wire_bytes_per_round: bytes.rounds() as f64 / self.session.rounds().max(1) as f64,
                ..report::statistics(statistics)
            }),
            timing: Some(report::timing(self.first_token, total, tokens)),
            effective_method: self.effective_method().to_owned(),
            exact: !moves.numerics_changed && self.session.is_exact(),
            seed: self.request.seed,
            settings: report::settings(&self.request.method, self.request.draft_len),
            lossless: self.request.method.is_lossless(),
            reproducible: self.request.method.is_reproducible(),
            retry_after_ms: match self.cut {
                Some(Cut::LastCall) => RESTART_RETRY_AFTER.as_millis() as u32,
                _ => 0,
            },
        };
        self.observer.finished(&finished, statistics);
        let part = Some(Part::Finished(finished));
        self.end.send(Ok(v1::GenerateResponse { part }));
    }

    /// The method that made the output: the target alone if nothing was ever drafted, although the
    /// method asked for it.
    fn effective_method(&self) -> &'static str {
        let method = &self.request.method;
        let statistics = self.session.statistics();
        let alone = !self.request.group.has_drafters()
            || !statistics.fallbacks.is_empty() && statistics.draft_forwards == 0;
        match method.plan {
            Plan::TargetOnly | Plan::DraftOnly => method.effective_name(),
            _ if alone => "target-only",
            _ => method.effective_name(),
        }
    }
}
