//! The grammar of an output with calls: it is free until a mark begins a call, and what follows is a call of one of the
//! tools, with arguments of its schema.
//!
//! It is Lark as llguidance reads it: a rule with `[lazy]` ends where it first can, and `<[7]>` is the token 7.

mod bodies;
mod rules;

use speculation::constraint::GrammarSpec;

use crate::form::{CallForm, CallLayout, ReasoningMarks, channels};
use crate::tools::{Tools, WhetherToCall};
use rules::{Rules, TEXT, json_rule, literal, regex_of, slashed};

/// The grammar of an output.
#[derive(Clone, Copy, Debug)]
pub struct CallGrammar<'a> {
    /// The form of its calls.
    pub form: &'static CallForm,
    /// The tools, of which there may be none.
    pub tools: &'a Tools,
    /// The marks around reasoning, which comes first and is free; and whether the prompt ends within it.
    pub reasoning: Option<ReasoningMarks>,
    /// See `reasoning`.
    pub begins_in_reasoning: bool,
    /// What the output follows where no tool is called; none if it is any text.
    pub otherwise: Option<&'a GrammarSpec>,
    /// The marks that are special tokens, with their ids.
    pub special: &'a [(&'static str, u32)],
}

impl CallGrammar<'_> {
    /// Returns the grammar.
    pub fn lark(&self) -> GrammarSpec {
        let mut rules = Rules::default();
        let start = match self.form.layout {
            CallLayout::Channels => self.channels(&mut rules),
            _ => self.marked(&mut rules),
        };
        GrammarSpec::Lark(format!("start: {start}\n{}", rules.text))
    }

    /// Returns the item that matches `mark`.
    fn mark(&self, mark: &str) -> String {
        match self.special.iter().find(|(special, _)| *special == mark) {
            Some((_, token)) => format!("<[{token}]>"),
            None => literal(mark),
        }
    }

    fn is_special(&self, mark: &str) -> bool {
        self.special.iter().any(|(special, _)| *special == mark)
    }

    /// Returns the rule of an output whose calls begin with a mark.
    fn marked(&self, rules: &mut Rules) -> String {
        let rest = self.after_reasoning(rules, "", "");
        let Some(marks) = self.reasoning else {
            return rest;
        };
        let space = rules.add("SPACE", r"/\s+/");
        let is_spelled = !self.is_special(marks.close);
        let close = regex_of(&[marks.close]);
        if self.begins_in_reasoning {
            let lead = if is_spelled {
                rules.add("lead[lazy]", &format!(r"/(.|\n)*{close}/"))
            } else {
                rules.add("lead", &format!("{TEXT}? {}", self.mark(marks.close)))
            };
            return format!("{lead} {space}? ({rest})");
        }
        if !is_spelled {
            let (open, close) = (self.mark(marks.open), self.mark(marks.close));
            let lead = rules.add("lead", &format!("{open} {TEXT}? {close}"));
            return format!("({lead} {space}?)? ({rest})");
        }
        let open = regex_of(&[marks.open]);
        let lead = rules.add("lead[lazy]", &format!(r"/\s*{open}(.|\n)*{close}/"));
        // What does not begin with reasoning must not be able to: a mark within reasoning begins no call.
        let unlike = format!(r" & ~/\s*{open}(.|\n)*/");
        let first = self.after_reasoning(rules, "first_", &unlike);
        format!("{lead} {space}? ({rest}) | {first}")
    }

    /// Returns the rule of what follows reasoning. Rules for free text have names that begin with `prefix`, and are bounded by
    /// `unlike`.
    fn after_reasoning(&self, rules: &mut Rules, prefix: &str, unlike: &str) -> String {
        let Some(whether) = self.tools.whether() else {
            return self.other(rules);
        };
        let is_bare = matches!(self.form.layout, CallLayout::Json { bare: true, .. });
        let several = self.tools.may_be_several(self.form.is_generic());
        let opens = [self.form.around, self.form.opens].concat();
        let opens = opens.first().copied().unwrap_or_default();
        let open = self.mark(opens);
        let calls = self.calls(rules, several);
        let closes = !self.form.closes.is_empty() && self.form.around.is_empty();
        if *whether != WhetherToCall::Auto {
            return match () {
                () if is_bare => calls,
                () if several && closes => format!("{open} {calls} (\"\\n\" {open} {calls})*"),
                () => format!("{open} {calls}"),
            };
        }
        if self.otherwise.is_some() {
            let other = self.other(rules);
            return format!("{open} {calls} | {other}");
        }
        if is_bare {
            // A brace at the beginning is a call.
            let text = rules.add(
                &format!("{prefix}BARE").to_uppercase(),
                &format!(r"/\s*([^\s\{{](.|\n)*)?/{unlike}"),
            );
            return format!("{open}? {calls} | {text}");
        }
        let prose = |rules: &mut Rules, prefix: &str, unlike: &str| {
            let name = format!("{prefix}prose");
            if self.is_special(opens) {
                rules.add(&name, &format!("({TEXT}{unlike})? {open}"))
            } else {
                let marks = regex_of(&[opens]);
                rules.add(
                    &format!("{name}[lazy]"),
                    &format!(r"/(.|\n)*{marks}/{unlike}"),
                )
            }
        };
        let tail = |rules: &mut Rules, prefix: &str, unlike: &str| {
            rules.add(
                &format!("{prefix}TAIL").to_uppercase(),
                &format!("{TEXT}{unlike}"),
            )
        };
        let first = prose(rules, prefix, unlike);
        let only = tail(rules, prefix, unlike);
        if !(several && closes) {
            return format!("{first} {calls} | {only}?");
        }
        let next = prose(rules, "next_", "");
        let rest = tail(rules, "next_", "");
        format!("{first} {calls} ({next} {calls})* {rest}? | {only}?")
    }

    /// Returns the rule of what the output is without a call.
    fn other(&self, rules: &mut Rules) -> String {
        let Some(otherwise) = self.otherwise else {
            return rules.add("OTHER", TEXT) + "?";
        };
        let is = match otherwise {
            GrammarSpec::JsonSchema(schema) => match serde_json::from_str(schema) {
                Ok(schema) => json_rule(schema),
                // It is refused by itself before.
                Err(_) => literal(schema),
            },
            GrammarSpec::Regex(regex) => slashed(regex),
            GrammarSpec::Choice(texts) => {
                let texts: Vec<String> = texts.iter().map(|text| literal(text)).collect();
                texts.join(" | ")
            }
            GrammarSpec::Lark(lark) => format!("%lark {{\n{lark}\n}}"),
        };
        rules.add("other", &is)
    }

    /// Returns the rule of an output in OpenAI's channels.
    fn channels(&self, rules: &mut Rules) -> String {
        let mark = |mark: &str| self.mark(mark);
        let (channel, message) = (mark(channels::CHANNEL), mark(channels::MESSAGE));
        let (end, start) = (mark(channels::END), mark(channels::START));
        let thought = format!(
            r#"{channel} ("analysis" | "commentary") {message} {TEXT}? {end} {start} "assistant""#
        );
        let thought = rules.add("thought", &thought);
        let other = self.other(rules);
        let last = rules.add("last", &format!("{channel} \"final\" {message} {other}"));
        let Some(whether) = self.tools.whether() else {
            return format!("{thought}* {last}");
        };
        let calls = self.calls(rules, false);
        let call = format!("{channel} {calls}");
        if *whether == WhetherToCall::Auto {
            format!("{thought}* ({call} | {last})")
        } else {
            format!("{thought}* {call}")
        }
    }
}
