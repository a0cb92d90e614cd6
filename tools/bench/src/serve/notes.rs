//! What stands below the tables: how figures are meant, and what may mislead in them.

use super::args::ServeArgs;
use super::bench::ServeBench;
use super::rows::MeasuredPoint;
use super::tally::Tally;
use crate::report::BenchReport;

/// Requests sent later than this after their time are told of, in milliseconds.
const LATE_MS: f64 = 20.0;

impl MeasuredPoint {
    /// Adds what is to be said of this load point.
    pub(super) fn notes(&self, tally: &Tally, report: &mut BenchReport) {
        let (rate, ended) = (self.rate, tally.completed + tally.failed);
        if ended < self.load.planned {
            report.note(format!(
                "interrupted: {ended} of {} requests of rate {rate} had ended; what was open is not counted",
                self.load.planned
            ));
        }
        if tally.without_usage > 0 {
            report.note(format!(
                "{} answers at rate {rate} told no usage: their output tokens are counted as events, each as one, and \
                 their input tokens are not known",
                tally.without_usage
            ));
        }
        if let Some(late_ms) = self.late_ms().filter(|late_ms| *late_ms > LATE_MS) {
            report.note(format!(
                "rate {rate}: requests were sent up to {late_ms:.0} ms after their time, for --concurrency or this \
                 machine held them back; times count from their sending"
            ));
        }
    }
}

impl ServeBench {
    /// Adds how the figures are meant.
    pub(super) fn notes(&self, args: &ServeArgs, points: usize, report: &mut BenchReport) {
        report.note(
            "time to first token: from sending a request to the first event with text, a connection that has to be \
             opened included; time per output token: from the first such event to the last, for each token after the \
             first; time between events: one event may bring several tokens (tokens/event); percentiles are those of \
             requests, or of gaps between events; rates are over the time from the first request to the end of the last",
        );
        if let Some(slo) = args.told.slo {
            report.note(format!(
                "goodput: requests a second that were completed with {slo}; within: their share of all that ended"
            ));
        }
        if self.prompts.repeats(points, args.asked.requests) {
            report.note(
                "prompts come more than once: a server that keeps what it computed starts sooner when they come again; \
                 --extra-body '{\"cache_prompt\": false}' where the server knows it, or --input-tokens, avoids that",
            );
        }
        report.note(
            "accepted: of the draft tokens, as the server tells it; tokens/round: those accepted and one more, where it \
             tells its rounds; - where nothing was drafted",
        );
    }
}
