//! The tools of a request: how the model is told of them, how its output is read, and the grammar that its calls follow.

use std::sync::Arc;

use calls::{CallForm, CallGrammar, OutputReading, ReasoningMarks, Tools, WhetherToCall};
use fleet::Target;
use serde_json::{Map, Value};
use speculation::constraint::GrammarSpec;
use speculation::sampling::SamplingParams;
use text::Conversation;
use wire::bounds::{MAX_CALLS, MAX_SETTINGS};
use wire::grammar::{FIELD, MAX_GRAMMAR_BYTES};
use wire::status::BadField;
use wire::{json, v1};

use crate::limits::MAX_RENDERED_BYTES;

/// What a request says of tools, and of its model's reasoning.
#[derive(Debug)]
pub(crate) struct Calls {
    tools: Tools,
    form: &'static CallForm,
    reasoning: Option<ReasoningMarks>,
    begins_in_reasoning: bool,
    /// The marks that are special tokens.
    special: Vec<(&'static str, u32)>,
    arguments: Map<String, Value>,
    /// Whether a grammar holds calls from their mark on.
    is_held: bool,
    /// What could not be had as it was asked for.
    pub(crate) warnings: Vec<String>,
}

impl Calls {
    /// Takes the tools and the arguments of the chat template out of `request`; `form` is the name of the form of calls, if it
    /// is set.
    ///
    /// # Errors
    /// Names the field that is not in order.
    pub(crate) fn take(
        request: &mut v1::GenerateRequest,
        target: &Target,
        form: Option<&'static CallForm>,
    ) -> Result<Self, BadField> {
        let is_chat = !request.messages.is_empty();
        for (field, is_given) in [
            ("tools", !request.tools.is_empty()),
            ("template_arguments", request.template_arguments.is_some()),
        ] {
            if is_given && !is_chat {
                let problem = "go with messages, which the chat template lays out; give messages";
                return Err(BadField::new(field, problem));
            }
        }
        let tools = Tools::take(request)?;
        let arguments = request.template_arguments.take().unwrap_or_default();
        let arguments = json::from_wire(arguments);
        BadField::at_most(
            "template_arguments",
            arguments.len(),
            MAX_SETTINGS,
            "entries",
        )?;
        let form = form.unwrap_or_else(|| target.text.call_form());
        let reasoning = target.text.reasoning_marks().filter(|_| is_chat);
        let mut warnings = Vec::new();
        if form.is_generic() && !tools.is_empty() {
            warnings.push(
                "the model's chat template shows no form of calls that is known here: the system message tells of the \
                 tools, and calls have a generic form"
                    .to_owned(),
            );
        }
        Ok(Self {
            special: target
                .text
                .special_among(OutputReading::marks(Some(form), reasoning)),
            tools,
            form,
            reasoning,
            begins_in_reasoning: false,
            is_held: false,
            arguments,
            warnings,
        })
    }

    /// Renders the prompt of a conversation.
    ///
    /// # Errors
    /// What the chat template refuses.
    pub(crate) fn prompt(
        &mut self,
        messages: &[v1::ChatMessage],
        target: &Target,
    ) -> Result<String, String> {
        let described = (!self.tools.is_empty()).then(|| self.tools.to_template());
        let with_calls =
            |turn: &v1::ChatMessage| !turn.tool_calls.is_empty() || turn.role == "tool";
        let is_told =
            self.form.is_generic() && (described.is_some() || messages.iter().any(with_calls));
        let instructions = match &described {
            Some(_) if is_told => calls::instructions(&self.tools),
            _ => String::new(),
        };
        let told = is_told.then(|| calls::instructed(messages, &instructions));
        let conversation = Conversation {
            messages: told.as_deref().unwrap_or(messages),
            tools: described.as_ref().filter(|_| !is_told),
            arguments: Some(&self.arguments),
        };
        let prompt = target.text.prompt(&conversation, MAX_RENDERED_BYTES)?;
        if let Some(marks) = self.reasoning {
            // What the user says begins no reasoning.
            let is_said = |turn: &v1::ChatMessage| marks.begin_at_end_of(&turn.content);
            self.begins_in_reasoning =
                marks.begin_at_end_of(&prompt) && !messages.last().is_some_and(is_said);
        }
        Ok(prompt)
    }

    /// Returns how the output is to be read; none if it is text and nothing else.
    pub(super) fn reading(&self, is_chat: bool) -> Option<OutputReading> {
        let form = (self.form.is_in_channels() || !self.tools.is_empty()).then_some(self.form);
        let is_read = is_chat && (form.is_some() || self.reasoning.is_some());
        is_read.then(|| OutputReading {
            form,
            reasoning: self.reasoning,
            begins_in_reasoning: self.begins_in_reasoning,
            tools: Arc::new(self.tools.clone()),
            special_marks: self.special.iter().map(|(mark, _)| *mark).collect(),
            is_held: self.is_held,
        })
    }

    /// Has the output follow the grammar of its calls, and what `params` say only behind reasoning and where there is no call.
    ///
    /// # Errors
    /// Names the tool whose schema must be enforced and cannot be, or the field that does not go with a grammar.
    pub(super) fn constrain(
        &mut self,
        params: &mut SamplingParams,
        ignore_eos: bool,
        target: &Target,
    ) -> Result<(), BadField> {
        let thinks = self.reasoning.is_some() || self.form.is_in_channels();
        let is_needed = match self.tools.whether() {
            None => thinks && params.grammar.is_some(),
            Some(_) => true,
        };
        if !is_needed {
            return Ok(());
        }
        let may_be_free = match self.tools.whether() {
            Some(WhetherToCall::Auto) => {
                params.grammar.is_none() && !self.tools.iter().any(|tool| tool.strict)
            }
            _ => false,
        };
        match hindrance(params, ignore_eos, target) {
            Some((field, problem)) if may_be_free => {
                self.warnings.push(format!(
                    "calls are not held to their schemas: {field}: {problem}"
                ));
                return Ok(());
            }
            Some((field, problem)) => return Err(BadField::new(field, problem)),
            None => {}
        }
        let compile = |spec: &GrammarSpec| match spec.bytes() {
            bytes if bytes > MAX_GRAMMAR_BYTES => Err(format!(
                "its grammar has {bytes} bytes, expected at most {MAX_GRAMMAR_BYTES}"
            )),
            _ => target
                .grammars
                .compile(spec)
                .map(drop)
                .map_err(|error| error.to_string()),
        };
        let mut spec = self.grammar(params.grammar.as_ref());
        if compile(&spec).is_err() {
            self.free_tools(&compile)?;
            spec = self.grammar(params.grammar.as_ref());
            if let Err(problem) = compile(&spec) {
                let problem = format!("their calls cannot be held to a grammar: {problem}");
                if !may_be_free {
                    return Err(BadField::new("tools", problem));
                }
                self.warnings.push(format!("tools: {problem}"));
                return Ok(());
            }
        }
        params.grammar = Some(spec);
        self.is_held = true;
        Ok(())
    }

    fn grammar(&self, otherwise: Option<&GrammarSpec>) -> GrammarSpec {
        let grammar = CallGrammar {
            form: self.form,
            tools: &self.tools,
            reasoning: self.reasoning,
            begins_in_reasoning: self.begins_in_reasoning,
            otherwise,
            special: &self.special,
        };
        grammar.lark()
    }

    /// Lets any object be the arguments of the tools whose schemas cannot be enforced; if all can by themselves, they are too
    /// many together, and any object may be the arguments of all.
    fn free_tools(
        &mut self,
        compile: &impl Fn(&GrammarSpec) -> Result<(), String>,
    ) -> Result<(), BadField> {
        let mut problems: Vec<(usize, String)> = Vec::new();
        for (at, tool) in self.tools.iter().enumerate() {
            let schema = GrammarSpec::JsonSchema(tool.enforced().to_string());
            if let Err(problem) = compile(&schema) {
                problems.push((at, problem));
            }
        }
        if problems.is_empty() {
            let problem = "all schemas together are too large for one grammar";
            problems = (0..self.tools.iter().count())
                .map(|at| (at, problem.to_owned()))
                .collect();
        }
        let mut problems = problems.into_iter().peekable();
        for (at, tool) in self.tools.iter_mut().enumerate() {
            let Some((_, problem)) = problems.next_if(|(of, _)| *of == at) else {
                continue;
            };
            let name = &tool.name;
            if tool.strict {
                let problem =
                    format!("'{name}' is strict, and its parameters cannot be enforced: {problem}");
                return Err(BadField::new("tools", problem));
            }
            self.warnings.push(format!(
                "the arguments of '{name}' may be any object: {problem}"
            ));
            tool.is_free = true;
        }
        Ok(())
    }
}

/// Returns the field with which a grammar does not go, and why.
fn hindrance(
    params: &SamplingParams,
    ignore_eos: bool,
    target: &Target,
) -> Option<(&'static str, &'static str)> {
    let at_end = "does not go with a grammar, which says where the output ends";
    if target.description.rows_are_parts {
        let problem = "the verifier's engine follows no grammar, so that nothing can be required of the output";
        Some((FIELD, problem))
    } else if ignore_eos {
        Some(("ignore_eos", at_end))
    } else {
        (params.min_tokens > 0).then_some(("min_tokens", at_end))
    }
}

/// Checks the calls of a conversation, and the answers to them; gives answers the names of their tools, and puts those to the
/// calls of one turn into the order of the calls: agents send them as they come, and the prompt should not depend on that.
///
/// # Errors
/// Names the turn.
pub(super) fn settle_turns(messages: &mut [v1::ChatMessage]) -> Result<(), BadField> {
    let bad = |turn: usize, problem: String| {
        Err(BadField::new("messages", format!("turn {turn} {problem}")))
    };
    let calls = messages.iter().map(|message| message.tool_calls.len());
    BadField::at_most("messages", calls.sum(), MAX_CALLS, "calls")?;
    let mut called: Vec<(String, String)> = Vec::new();
    for (turn, message) in messages.iter_mut().enumerate() {
        let from = called.len();
        for call in &message.tool_calls {
            if call.name.is_empty() {
                return bad(turn, "has a call without a name".to_owned());
            }
            let is_same = |(id, _): &(String, String)| !id.is_empty() && *id == call.id;
            if called[from..].iter().any(is_same) {
                return bad(turn, format!("has two calls with the id '{}'", call.id));
            }
            called.push((call.id.clone(), call.name.clone()));
        }
        if !message.tool_calls.is_empty() && message.role != "assistant" {
            return bad(turn, "has calls, which only an assistant makes".to_owned());
        }
        if message.tool_call_id.is_empty() {
            continue;
        }
        let answered = called
            .iter()
            .rev()
            .find(|(id, _)| *id == message.tool_call_id);
        let Some((_, name)) = answered else {
            let problem = format!(
                "answers the call '{}', which no turn before it makes",
                message.tool_call_id
            );
            return bad(turn, problem);
        };
        if message.name.is_empty() {
            message.name.clone_from(name);
        }
    }
    let place = |id: &String| called.iter().rposition(|(of, _)| of == id);
    for answers in
        messages.chunk_by_mut(|a, b| !a.tool_call_id.is_empty() && !b.tool_call_id.is_empty())
    {
        answers.sort_by_key(|answer| place(&answer.tool_call_id));
    }
    Ok(())
}
