//! Conversations turned into prompts, by the chat template that comes with the model.
//!
//! Templates are written for Python's Jinja2 as the transformers library sets it up: blocks trimmed, loop
//! controls, methods of Python's strings, and a few functions of its own.

mod dialect;
mod python;
mod turns;

use std::io;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{Environment, Error, ErrorKind, context};
use serde_json::{Map, Value as Json};
use wire::v1::ChatMessage;

use turns::{ArgumentsAs, Turns};

/// Name of the template in its environment.
const NAME: &str = "chat template";
/// The role that clients have given the operator's instructions since OpenAI's o1, and what it was called before.
const DEVELOPER: &str = "developer";
const SYSTEM: &str = "system";
/// Steps a template may take: far more than any needs, and few enough to end soon.
const FUEL: u64 = 20_000_000;
/// Longest piece of a template's line that a message shows, in characters.
const MAX_EXCERPT: usize = 160;

/// Signs of templates that read the tools where the system message is, and not where all others do.
const TOOLS_IN_SYSTEM: [&str; 2] = ["message['tools']", "message.tools"];
/// A sign of Mistral's templates, which refuse ids of calls that are not nine letters and digits.
const MISTRALS_CALLS: &str = "[TOOL_CALLS]";

/// What a template makes a prompt of.
#[derive(Clone, Copy, Debug, Default)]
pub struct Conversation<'a> {
    /// The turns.
    pub messages: &'a [ChatMessage],
    /// The tools as Hugging Face's templates get them; none if there are none.
    pub tools: Option<&'a Json>,
    /// Further arguments, such as `enable_thinking`.
    pub arguments: Option<&'a Map<String, Json>>,
}

impl<'a> Conversation<'a> {
    /// Returns the conversation of these turns, without tools and further arguments.
    pub fn of(messages: &'a [ChatMessage]) -> Self {
        Self {
            messages,
            ..Self::default()
        }
    }
}

/// A model's chat template, ready to render.
#[derive(Debug)]
pub(crate) struct ChatTemplate {
    environment: Environment<'static>,
    source: String,
    /// Whether it says anything of developers. If not, what they say is the system's: most templates would drop it
    /// without a word.
    knows_developer: bool,
    bos_token: String,
    eos_token: String,
}

impl ChatTemplate {
    /// Compiles `source`; a special token the model does not have is empty.
    ///
    /// # Errors
    /// Names the line that is no Jinja.
    pub(crate) fn new(
        source: String,
        bos_token: String,
        eos_token: String,
    ) -> Result<Self, String> {
        let mut environment = Environment::new();
        let mut syntax = SyntaxConfig::builder();
        syntax.trim_blocks(true).lstrip_blocks(true);
        let syntax = syntax.build().map_err(|error| reported(&error, &source))?;
        environment.set_syntax(syntax);
        environment.set_fuel(Some(FUEL));
        environment.set_debug(true);
        environment.add_function("raise_exception", raise_exception);
        python::add_to(&mut environment);
        let added = environment.add_template_owned(NAME, dialect::translated(&source));
        added.map_err(|error| reported(&error, &source))?;
        Ok(Self {
            environment,
            knows_developer: source.contains(DEVELOPER),
            source,
            bos_token,
            eos_token,
        })
    }

    /// Returns its text.
    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// Renders the prompt for `conversation`, of at most the given number of bytes; special tokens are in it as text.
    ///
    /// # Errors
    /// Names the line of the template that fails or refuses the conversation, or says that the prompt is too long.
    pub(crate) fn render(
        &self,
        conversation: &Conversation<'_>,
        most_bytes: usize,
    ) -> Result<String, String> {
        let rendered = self.render_with(conversation, most_bytes, ArgumentsAs::Value);
        let mut messages = conversation.messages.iter();
        if rendered.is_err() && messages.any(|message| !message.tool_calls.is_empty()) {
            // Some templates write the arguments of calls as they are, and take texts only.
            let as_text = self.render_with(conversation, most_bytes, ArgumentsAs::Text);
            return as_text.or(rendered);
        }
        rendered
    }

    fn render_with(
        &self,
        conversation: &Conversation<'_>,
        most_bytes: usize,
        arguments_as: ArgumentsAs,
    ) -> Result<String, String> {
        let given = |token: &String| match token.as_str() {
            "" => Value::UNDEFINED,
            token => Value::from(token),
        };
        let Conversation {
            messages,
            tools,
            arguments,
        } = conversation;
        let turns = Turns {
            developer: if self.knows_developer {
                DEVELOPER
            } else {
                SYSTEM
            },
            short_ids: self.source.contains(MISTRALS_CALLS),
            arguments_as,
        };
        let mut messages: Vec<Value> = messages.iter().map(|turn| turns.value(turn)).collect();
        let in_system = TOOLS_IN_SYSTEM
            .iter()
            .any(|sign| self.source.contains(sign));
        if in_system && let Some(tools) = tools {
            turns::add_tools(&mut messages, tools);
        }
        let context = context! {
            messages,
            add_generation_prompt => true,
            bos_token => given(&self.bos_token),
            eos_token => given(&self.eos_token),
            tools => tools.map_or(Value::from(()), turns::value_of),
            documents => Value::from(()),
            ..turns::of_fields(arguments.unwrap_or(&Map::new()))
        };
        let mut prompt = BoundedPrompt {
            bytes: Vec::new(),
            most_bytes,
            is_longer: false,
        };
        let template = self.environment.get_template(NAME);
        let rendered = template
            .and_then(|template| template.render_captured_to(context, &mut prompt).map(drop));
        if prompt.is_longer {
            return Err(format!(
                "the chat template: the prompt has more than {most_bytes} bytes"
            ));
        }
        rendered.map_err(|error| reported(&error, &self.source))?;
        String::from_utf8(prompt.bytes).map_err(|error| format!("the chat template: {error}"))
    }
}

/// The output of a template, of bounded length.
struct BoundedPrompt {
    bytes: Vec<u8>,
    most_bytes: usize,
    /// Whether the template has written more than the bound.
    is_longer: bool,
}

impl io::Write for BoundedPrompt {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if piece.len() > self.most_bytes - self.bytes.len() {
            self.is_longer = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Refuses a conversation: templates call it.
fn raise_exception(message: String) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, message))
}

/// Says what is wrong with a template, or with a conversation it refuses, and in which line, from 1; 0 if that is not
/// known.
fn reported(error: &Error, source: &str) -> String {
    let line = error.line().unwrap_or(0);
    let text = source.lines().nth(line.wrapping_sub(1)).unwrap_or_default();
    // Where in the line, as many templates are one line.
    let before = error.range().map_or(0, |range| {
        let begins = source
            .split_inclusive('\n')
            .take(line.saturating_sub(1))
            .map(str::len)
            .sum::<usize>();
        let before = text.get(..range.start.saturating_sub(begins));
        before.map_or(0, |before| before.chars().count())
    });
    let length = text.chars().count();
    let from = if length <= MAX_EXCERPT {
        0
    } else {
        before.saturating_sub(MAX_EXCERPT / 4)
    };
    let mut excerpt: String = text.chars().skip(from).take(MAX_EXCERPT).collect();
    if from > 0 {
        excerpt.insert(0, '…');
    }
    if from + MAX_EXCERPT < length {
        excerpt.push('…');
    }
    let kind = error.kind();
    let problem = match (kind, error.detail()) {
        // What a template itself has to say.
        (ErrorKind::InvalidOperation, Some(detail)) => detail.to_owned(),
        (_, Some(detail)) => format!("{kind}: {detail}"),
        (_, None) => kind.to_string(),
    };
    match line {
        0 => format!("the chat template: {problem}"),
        _ => format!(
            "the chat template, line {line} `{}`: {problem}",
            excerpt.trim()
        ),
    }
}

#[cfg(test)]
mod tests;
