//! Any text as a chat template: it is refused, or renders a conversation, in bounded time.

#![no_main]

use libfuzzer_sys::fuzz_target;
use outrider_fuzz::models::TOKENIZER_JSON;
use text::{Conversation, ServedText};
use wire::v1::{ChatMessage, TokenizerPart};

fuzz_target!(|template: &str| {
    let part = TokenizerPart {
        chat_template: template.to_owned(),
        bos_token: "<s>".to_owned(),
        eos_token: "</s>".to_owned(),
        tokenizer_json: Vec::new(),
    };
    let text = ServedText::new(TOKENIZER_JSON.as_bytes(), part).expect("a tokenizer");
    let messages = [
        ("system", "Be brief."),
        ("user", "  Tell me. "),
        ("assistant", "No."),
    ];
    let messages = messages.map(|(role, content)| ChatMessage {
        role: role.to_owned(),
        content: content.to_owned(),
        ..Default::default()
    });
    let _ = text.prompt(&Conversation::of(&messages), 1 << 20);
});
