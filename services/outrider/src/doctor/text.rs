//! Whether the tokenizer gives back a text, and whether the chat template can be used.

use model::source::Inspected;
use text::{Conversation, ServedText};
use wire::v1::{ChatMessage, TokenizerPart};

use super::files::InspectedModels;
use super::report::Findings;

/// A text that every tokenizer should give back, but for white space at its ends.
const PROBE: &str = "Once upon a time, 3 cats met 2 dogs.";

/// More than any template makes of it.
const MAX_PROMPT_BYTES: usize = 1 << 20;

/// Returns what is found of the target's text, or of the draft model's where there is no target.
pub(super) fn findings(models: &InspectedModels) -> Findings {
    let draft = models.drafts.first().map(|(_, model)| model);
    let mut tokenizer = Findings::of("tokenizer");
    let Some(model) = models.target.as_ref().or(draft) else {
        return tokenizer;
    };
    let name = &model.outline.name;
    match served(model) {
        Ok(text) => {
            round_trip(&mut tokenizer, name, &text);
            tokenizer.add(chat(name, model, &text));
        }
        Err(error) => tokenizer.error(
            format!("'{name}': {error}"),
            "take the tokenizer.json that came with the model",
        ),
    }
    tokenizer
}

fn served(model: &Inspected) -> Result<ServedText, String> {
    let text = &model.text;
    let special = text.special_tokens.clone();
    let part = TokenizerPart {
        chat_template: text.chat_template.clone().unwrap_or_default(),
        bos_token: special.bos.unwrap_or_default(),
        eos_token: special.eos.unwrap_or_default(),
        tokenizer_json: Vec::new(),
    };
    ServedText::new(&text.tokenizer_json, part)
}

fn round_trip(findings: &mut Findings, name: &str, text: &ServedText) {
    match text.tokens(PROBE, false, usize::MAX) {
        Ok(tokens) if text.text_of(&tokens).trim() == PROBE => {
            let count = tokens.len();
            findings.ok(format!("'{name}': a text of {count} tokens comes back as it was"));
        }
        Ok(tokens) => findings.warning(
            format!("'{name}': {PROBE:?} comes back as {:?}", text.text_of(&tokens)),
            "see whether tokenizer.json belongs to the model; some models know no capitals or no digits",
        ),
        Err(error) => findings.error(
            format!("'{name}': {PROBE:?} cannot be made into tokens: {error}"),
            "take the tokenizer.json that came with the model",
        ),
    }
}

fn chat(name: &str, model: &Inspected, text: &ServedText) -> Findings {
    let mut findings = Findings::of("chat template");
    if model.text.chat_template.is_none() {
        findings.info(format!(
            "'{name}' has none: prompts are taken as text, chats are refused"
        ));
        return findings;
    }
    let asked = ChatMessage {
        role: "user".to_owned(),
        content: PROBE.to_owned(),
        ..Default::default()
    };
    match text.prompt(&Conversation::of(&[asked]), MAX_PROMPT_BYTES) {
        Ok(prompt) if prompt.contains(PROBE) => {
            findings.ok(format!("'{name}': it makes a prompt of a conversation"));
        }
        Ok(prompt) => findings.warning(
            format!("'{name}': what the user says is not in the prompt it makes: {prompt:?}"),
            "see chat_template.jinja or tokenizer_config.json beside the model",
        ),
        Err(error) => findings.warning(
            format!("'{name}': it cannot be used: {error}"),
            "see chat_template.jinja or tokenizer_config.json beside the model; prompts as text are served",
        ),
    }
    findings
}
