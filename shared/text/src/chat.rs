//! Conversations turned into prompts, by the chat template that comes with the model.
//!
//! Templates are written for Python's Jinja2 as the transformers library sets it up: blocks trimmed, loop
//! controls, methods of Python's strings, and a few functions of its own.

mod dialect;
mod python;

use std::io;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{Environment, Error, ErrorKind, context};
use wire::v1::ChatMessage;

/// Name of the template in its environment.
const NAME: &str = "chat template";
/// The role that clients have given the operator's instructions since OpenAI's o1, and what it was called before.
const DEVELOPER: &str = "developer";
const SYSTEM: &str = "system";
/// Steps a template may take: far more than any needs, and few enough to end soon.
const FUEL: u64 = 20_000_000;
/// Longest piece of a template's line that a message shows, in characters.
const MAX_EXCERPT: usize = 160;

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

    /// Renders the prompt for `messages`, of at most the given number of bytes; special tokens are in it as text.
    ///
    /// # Errors
    /// Names the line of the template that fails or refuses these messages, or says that the prompt is too long.
    pub(crate) fn render(
        &self,
        messages: &[ChatMessage],
        most_bytes: usize,
    ) -> Result<String, String> {
        let messages: Vec<Value> = messages
            .iter()
            .map(|message| {
                let ChatMessage {
                    role,
                    content,
                    name,
                } = message;
                // Templates ask whether there is a name, so an empty one is left out.
                let name = Some(("name", name.as_str())).filter(|(_, name)| !name.is_empty());
                let role = if role == DEVELOPER && !self.knows_developer {
                    SYSTEM
                } else {
                    role
                };
                let fields = [("role", role), ("content", content.as_str())];
                Value::from_pairs(fields.into_iter().chain(name))
            })
            .collect();
        let given = |token: &String| match token.as_str() {
            "" => Value::UNDEFINED,
            token => Value::from(token),
        };
        let context = context! {
            messages,
            add_generation_prompt => true,
            bos_token => given(&self.bos_token),
            eos_token => given(&self.eos_token),
            tools => Value::from(()),
            documents => Value::from(()),
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
