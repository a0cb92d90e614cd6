//! The rules of calls, in each layout.

use serde_json::{Value, json};

use super::CallGrammar;
use super::rules::{Rules, json_rule, literal};
use crate::form::{CallLayout, DEEPSEEK_SEPARATOR, channels};
use crate::tools::{CalledTool, WhetherToCall, is_text};

impl CallGrammar<'_> {
    /// Returns the rule of the calls behind the mark that begins them, and of the mark that ends them.
    pub(super) fn calls(&self, rules: &mut Rules, several: bool) -> String {
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
