//! The answer as text, coloured by where each token came from.

use std::io::{IsTerminal, Write};

use anstream::{AutoStream, eprintln, stdout};
use anstyle::{AnsiColor, Style};
use client::CollectedAnswer;
use wire::v1;
use wire::v1::output_part::Part;

use super::{AnswerFault, Printer};

/// Prints text as it comes.
pub(crate) struct Terminal {
    out: AutoStream<std::io::Stdout>,
    /// What the text goes on from, until it is shown.
    prompt: Option<String>,
    /// Whether the last character printed was no newline.
    mid_line: bool,
    /// Whether the last thing printed is what the model thought.
    in_reasoning: bool,
    /// Whether a line of statistics follows the answer.
    with_stats: bool,
}

impl Terminal {
    /// Shows `prompt` dimmed before the text that goes on from it, if stdout is a terminal; a line of statistics follows
    /// an answer if `with_stats`.
    pub(crate) fn new(prompt: Option<&str>, with_stats: bool) -> Self {
        let is_terminal = std::io::stdout().is_terminal();
        Self {
            out: stdout(),
            prompt: prompt.filter(|_| is_terminal).map(str::to_owned),
            mid_line: false,
            in_reasoning: false,
            with_stats,
        }
    }

    /// Prints what is told apart: reasoning dimmed, content in the colours of its tokens. Calls are shown when they are whole.
    fn parts(&mut self, chunk: &v1::Chunk) -> anyhow::Result<()> {
        for part in &chunk.parts {
            let (style, text) = match &part.part {
                Some(Part::Reasoning(text)) => (DIMMED, text),
                Some(Part::Content(text)) => {
                    let origin = chunk.origins.get(part.token as usize);
                    (origin.map_or(Style::new(), |&origin| style(origin)), text)
                }
                Some(Part::Call(_) | Part::Arguments(_)) | None => continue,
            };
            let is_reasoning = style == DIMMED;
            if std::mem::replace(&mut self.in_reasoning, is_reasoning) && !is_reasoning {
                write!(self.out, "\n\n")?;
            }
            write!(self.out, "{style}{text}{style:#}")?;
            self.mid_line = !text.ends_with('\n');
        }
        Ok(self.out.flush()?)
    }

    fn show_prompt(&mut self) -> std::io::Result<()> {
        match self.prompt.take() {
            Some(prompt) => write!(self.out, "{DIMMED}{prompt}{DIMMED:#}"),
            None => Ok(()),
        }
    }
}

/// The method without a drafter.
const TARGET_ONLY: &str = "target-only";

/// Style of what the model did not write.
const DIMMED: Style = Style::new().dimmed();

/// Colour of a token: green where the draft model did the work.
fn style(origin: i32) -> Style {
    let colour = |colour: AnsiColor| Style::new().fg_color(Some(colour.into()));
    match v1::Origin::try_from(origin) {
        Ok(v1::Origin::Accepted) => colour(AnsiColor::Green),
        Ok(v1::Origin::Recovered) => colour(AnsiColor::Yellow),
        Ok(v1::Origin::Bonus) => colour(AnsiColor::Cyan),
        Ok(v1::Origin::Deferred) => colour(AnsiColor::Magenta),
        Ok(v1::Origin::Target | v1::Origin::Unspecified) | Err(_) => Style::new(),
    }
}

impl Printer for Terminal {
    fn chunk(&mut self, chunk: &v1::Chunk) -> anyhow::Result<()> {
        self.show_prompt()?;
        if !chunk.parts.is_empty() || chunk.text.is_empty() {
            return self.parts(chunk);
        }
        for (piece, &origin) in chunk.pieces.iter().zip(&chunk.origins) {
            let style = style(origin);
            write!(self.out, "{style}{piece}{style:#}")?;
        }
        if chunk.pieces.is_empty() {
            // Text that was held back until the end.
            write!(self.out, "{}", chunk.text)?;
        }
        if let Some(last) = chunk.text.chars().last() {
            self.mid_line = last != '\n';
        }
        Ok(self.out.flush()?)
    }

    fn note(&mut self, line: &str) {
        if self.mid_line && std::io::stdout().is_terminal() {
            // On one terminal the note gets a line of its own; the text goes on below it.
            let _ = writeln!(self.out);
            let _ = self.out.flush();
            self.mid_line = false;
        }
        eprintln!("{line}");
    }

    fn ended(
        &mut self,
        answer: &CollectedAnswer,
        fault: Option<&AnswerFault>,
    ) -> anyhow::Result<()> {
        if fault.is_some() && answer.token_ids.is_empty() {
            // Nothing was shown; the failure says all there is to say.
            return Ok(());
        }
        // Calls alone are shown by whoever answers them.
        if answer.tool_calls.is_empty() || self.mid_line {
            writeln!(self.out)?;
            self.out.flush()?;
        }
        if self.with_stats {
            eprintln!("{}", stats(answer));
        }
        if !answer.is_whole() {
            return Ok(());
        }
        let (started, finished) = (&answer.started, &answer.finished);
        let fallbacks = finished.speculation.iter().flat_map(|it| &it.fallbacks);
        if let Some(fallback) = fallbacks.into_iter().next() {
            let (position, reason) = (fallback.position, &fallback.reason);
            eprintln!("went on without the drafter from token {position}: {reason}");
        } else if finished.effective_method == TARGET_ONLY && started.method != TARGET_ONLY {
            eprintln!(
                "the target decoded alone: no drafter answers the coordinator, or none fits the target; \
                 `outrider health` on its machine, or /readyz of its admin port, says which, and a draft model of the \
                 target's family with the same tokenizer.json fits"
            );
        }
        if !finished.exact {
            eprintln!(
                "not exact: a peer was lost or replaced by one that computes other numbers, so not every \
                 token is what the method promises"
            );
        }
        Ok(())
    }
}

/// Returns the method asked for, and the one it came to if that is another.
fn method_name(started: &v1::Started, finished: &v1::Finished) -> String {
    if started.method == finished.effective_method {
        return started.method.clone();
    }
    format!(
        "{} (asked for as {})",
        finished.effective_method, started.method
    )
}

/// Returns one line of what is known of an answer, whole or not.
pub(crate) fn stats(answer: &CollectedAnswer) -> String {
    let CollectedAnswer {
        started, finished, ..
    } = answer;
    if answer.is_whole() {
        return summary(started, finished);
    }
    let tokens = answer.token_ids.len();
    let (method, seed) = (&started.method, started.seed);
    format!("[{tokens} tokens, method {method}, seed {seed}]")
}

/// Returns a whole answer in one line.
fn summary(started: &v1::Started, finished: &v1::Finished) -> String {
    let tokens = finished.usage.unwrap_or_default().completion_tokens;
    let timing = finished.timing.unwrap_or_default();
    let speculation = finished.speculation.clone().unwrap_or_default();
    let rounds = match speculation.num_spec_steps {
        0 => String::new(),
        count => {
            let (s, length) = (
                if count == 1 { "" } else { "s" },
                speculation.mean_acceptance_length,
            );
            format!(", {count} round{s}, mean acceptance length {length:.2}")
        }
    };
    let calls = speculation.target_calls_per_token;
    let deferral = match speculation.deferral_rate {
        Some(rate) => format!(", deferral rate {rate:.2}"),
        None => String::new(),
    };
    format!(
        "[{tokens} tokens, {:.0} tokens/s{rounds}, {calls:.2} target calls a token{deferral}, \
         method {}, seed {}]",
        timing.tokens_per_second,
        method_name(started, finished),
        finished.seed
    )
}

/// Returns a round in one line.
pub(super) fn round_line(round: &v1::RoundReport) -> String {
    let ms = |us: u32| f64::from(us) / 1e3;
    let drafter = round.drafter.unwrap_or_default();
    let verifier = round.verifier.unwrap_or_default();
    format!(
        "round {:>3}  at {:>4}  drafted {:>2}  accepted {:>2}  emitted {:>2}  \
         draft {:.2} ms (forward {:.2})  verify {:.2} ms (forward {:.2})",
        round.round,
        round.base_len,
        round.drafted,
        round.accepted,
        round.emitted,
        ms(round.draft_us),
        ms(drafter.forward_us),
        ms(round.verify_us),
        ms(verifier.forward_us),
    )
}
