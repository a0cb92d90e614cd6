//! A model's vocabulary, as llama.cpp reads it.

use llama_cpp_2::model::LlamaModel;

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VocabularyPiece {
    /// Its id.
    pub id: u32,
    /// What it adds to a text; never empty.
    pub bytes: Vec<u8>,
    /// Whether it is of no text but controls the model.
    pub is_control: bool,
}

/// All tokens that stand for something, and whether texts begin with the token for that.
#[derive(Clone, Debug)]
pub struct LlamaVocabulary {
    /// The tokens, by id.
    pub pieces: Vec<VocabularyPiece>,
    /// Whether texts begin with a token of their own.
    pub begins: bool,
}

/// Reads the vocabulary of `model`.
pub(crate) fn read(model: &LlamaModel) -> LlamaVocabulary {
    let vocab = model.vocab();
    let pieces = (0..)
        .zip(vocab.tokens())
        .map(|(id, token)| VocabularyPiece {
            id,
            bytes: vocab.token_to_piece(token, true, None),
            is_control: vocab.is_control(token),
        });
    LlamaVocabulary {
        pieces: pieces.filter(|piece| !piece.bytes.is_empty()).collect(),
        begins: vocab.should_add_bos(),
    }
}
