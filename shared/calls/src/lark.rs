//! The grammar of an output with calls: it is free until a mark begins a call, and what follows is a call of one of the
//! tools, with arguments of its schema.
//!
//! It is Lark as llguidance reads it: a rule with `[lazy]` ends where it first can, and `<[7]>` is the token 7.

use std::collections::HashSet;
use std::fmt::Write;

use serde_json::{Value, json};
use speculation::constraint::GrammarSpec;
use wire::grammar::one_line;

use crate::form::{CallForm, CallLayout, DEEPSEEK_SEPARATOR, ReasoningMarks, channels};
use crate::tools::{CalledTool, Tools, WhetherToCall, is_text};

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

/// Any text, a character at least.
const TEXT: &str = r"/(.|\n)+/";

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

    /// Returns the rule of the calls behind the mark that begins them, and of the mark that ends them.
    fn calls(&self, rules: &mut Rules, several: bool) -> String {
        let bodies: Vec<String> = (self.tools.iter().enumerate())
            .filter(|(_, tool)| match self.tools.whether() {
                Some(WhetherToCall::Named(name)) => tool.name == *name,
                _ => true,
            })
            .map(|(index, tool)| self.body(rules, index, tool))
            .collect();
        let call = rules.add("call", &bodies.join(" | "));
        let close = self.form.closes.first().map(|close| self.mark(close));
        let close = close.unwrap_or_default();
        let is = match self.form.layout {
            CallLayout::Json { list: true, .. } if several => {
                format!("\" \"? \"[\" {call} (\", \" {call})* \"]\" {close}")
            }
            CallLayout::Json { list: true, .. } => format!("\" \"? \"[\" {call} \"]\" {close}"),
            CallLayout::Json { bare: true, .. } if several => format!("{call} (\"; \" {call})*"),
            CallLayout::Json { bare: true, .. } => call,
            CallLayout::Json { .. } | CallLayout::Xml => format!("\"\\n\" {call} \"\\n\" {close}"),
            CallLayout::Named { .. } | CallLayout::Channels => {
                let open = self.form.opens.first().map(|open| self.mark(open));
                let open = open.unwrap_or_default();
                let more = if several {
                    format!(r#"("\n"? {open} {call} {close})*"#)
                } else {
                    String::new()
                };
                match self.form.around {
                    [_, end] => format!("{open} {call} {close} {more} {}", self.mark(end)),
                    _ => format!("{call} {close} {more}"),
                }
            }
        };
        rules.add("calls", &is)
    }

    /// Returns the rule of a call of `tool`.
    fn body(&self, rules: &mut Rules, index: usize, tool: &CalledTool) -> String {
        let name = literal(&tool.name);
        let rule = format!("call_{index}");
        if self.form.layout == CallLayout::Xml {
            let parameters = xml_parameters(rules, index, tool);
            let (begin, end) = (
                literal(&format!("<function={}>\n", tool.name)),
                literal("</function>"),
            );
            return rules.add(&rule, &format!("{begin} {parameters} {end}"));
        }
        let arguments = rules.add(&format!("arguments_{index}"), &json_rule(tool.enforced()));
        let is = match self.form.layout {
            CallLayout::Json { arguments: key, .. } => {
                let begin = format!("{{\"name\": {name}, \"{key}\": ");
                format!("{} {arguments} \"}}\"", literal(&begin))
            }
            CallLayout::Named {
                separators: [separator, ..],
            } => {
                let mark = self.mark(separator);
                let plain = format!("{name} {mark} {arguments}");
                if *separator == DEEPSEEK_SEPARATOR {
                    let begin = literal(&format!("{}\n```json\n", tool.name));
                    let end = literal("\n```");
                    format!("{plain} | \"function\" {mark} {begin} {arguments} {end}")
                } else {
                    plain
                }
            }
            _ => {
                let header = literal(&format!("commentary {}{} ", channels::RECIPIENT, tool.name));
                let (constrain, message) =
                    (self.mark(channels::CONSTRAIN), self.mark(channels::MESSAGE));
                format!("{header} {constrain} \"json\" {message} {arguments}")
            }
        };
        rules.add(&rule, &is)
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

/// Returns the rule of the parameters of a call as Qwen3-Coder writes them, in the order of the schema.
fn xml_parameters(rules: &mut Rules, index: usize, tool: &CalledTool) -> String {
    let schema = tool.enforced();
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |key: &String| required.is_some_and(|keys| keys.contains(&json!(key)));
    let none = serde_json::Map::new();
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut all = Vec::new();
    let end = literal("\n</parameter>\n");
    for (at, (key, property)) in properties.unwrap_or(&none).iter().enumerate() {
        let name = format!("parameter_{index}_{at}");
        let choices = property.get("enum").and_then(Value::as_array);
        let value = match choices.filter(|_| is_text(property)) {
            Some(choices) => {
                let texts = choices.iter().filter_map(Value::as_str);
                let texts: Vec<String> = texts.map(literal).collect();
                format!("({}) {end}", texts.join(" | "))
            }
            None if is_text(property) => rules.add(
                &format!("value_{index}_{at}[lazy]"),
                r"/(.|\n)*\n<\/parameter>\n/",
            ),
            None => {
                let mut property = property.clone();
                for definitions in ["$defs", "definitions"] {
                    if let (Value::Object(to), Some(given)) =
                        (&mut property, schema.get(definitions))
                    {
                        to.insert(definitions.to_owned(), given.clone());
                    }
                }
                let value = rules.add(&format!("value_{index}_{at}"), &json_rule(property));
                format!("{value} {end}")
            }
        };
        let begin = literal(&format!("<parameter={key}>\n"));
        let parameter = rules.add(&name, &format!("{begin} {value}"));
        all.push(if is_required(key) {
            parameter
        } else {
            parameter + "?"
        });
    }
    all.join(" ")
}

/// Returns the rule of JSON that `schema` describes.
fn json_rule(schema: Value) -> String {
    format!("%json {}", one_line(schema))
}

/// Returns the regular expression that matches any of `texts`, as it stands between slashes.
fn regex_of(texts: &[&str]) -> String {
    let texts: Vec<String> = texts
        .iter()
        .map(|text| regex_syntax::escape(text))
        .collect();
    format!("({})", texts.join("|")).replace('/', r"\/")
}

/// Returns `regex` between slashes.
fn slashed(regex: &str) -> String {
    let mut out = String::from("/");
    let mut is_escaped = false;
    for c in regex.chars() {
        match c {
            '/' if !is_escaped => out.push_str(r"\/"),
            '\n' => out.push_str(r"\n"),
            '\r' => out.push_str(r"\r"),
            c => out.push(c),
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    out.push('/');
    out
}

/// Rules beside the first.
#[derive(Debug, Default)]
struct Rules {
    text: String,
    names: HashSet<String>,
}

impl Rules {
    /// Adds a rule, unless there is one of its name, and returns the name without its attributes.
    fn add(&mut self, name: &str, is: &str) -> String {
        let plain = name.split('[').next().unwrap_or_default().to_owned();
        if self.names.insert(plain.clone()) {
            // Writing to a text does not fail.
            let _ = writeln!(self.text, "{name}: {is}");
        }
        plain
    }
}

/// Returns the literal text `text`.
fn literal(text: &str) -> String {
    Value::from(text).to_string()
}
