use tokenizers::normalizers::{NFC, NFKC};

use super::*;
use crate::tests::samples;

impl Cuts {
    /// Cuts texts wherever that is possible.
    pub(crate) fn everywhere(self) -> Self {
        Self {
            piece_bytes: 1,
            ..self
        }
    }

    pub(crate) fn are_known(&self) -> bool {
        self.sure.is_some()
    }
}

#[test]
fn where_a_tokenizer_is_understood_it_is_known() {
    for (name, json, is_sure) in samples::splitting::tokenizers() {
        let tokenizer = Tokenizer::from_bytes(json).expect("a tokenizer");
        assert_eq!(Cuts::of(&tokenizer).are_known(), is_sure, "{name}");
    }
}

#[test]
fn pieces_end_at_the_first_place_after_so_many_bytes() {
    let json = &samples::splitting::tokenizers()[1].1;
    let cuts = Cuts::of(&Tokenizer::from_bytes(json).expect("a tokenizer"));
    let text = "ab 12 ".repeat(PIECE_BYTES / 2);
    let pieces: Vec<_> = cuts.pieces(&text).collect();
    assert_eq!(pieces.len(), 3);
    for pair in pieces.windows(2) {
        let end = pair[0].range.end;
        assert_eq!((pair[0].next, pair[1].range.start), (end, end));
        assert!((PIECE_BYTES..PIECE_BYTES + 8).contains(&pair[0].range.len()));
        assert!(text[..end].ends_with("ab") && text[end..].starts_with(' '));
    }
    assert_eq!(pieces[2].range.end, text.len());
}

/// What a cut stands after must be a letter to the tokenizer, too.
#[test]
fn normalisation_leaves_letters_as_they_are() {
    for (first, last) in LETTERS {
        for letter in first..=last {
            let mut composed = NormalizedString::from(letter.to_string());
            NFC.normalize(&mut composed).expect("a text");
            NFKC.normalize(&mut composed).expect("a text");
            assert_eq!(composed.get(), letter.to_string());
            assert!(letter.is_alphabetic());
        }
    }
    let mut all = ClassUnicode::empty();
    all.union(&letters(false));
    let hir = regex_syntax::parse(r"\p{L}").expect("a class");
    let regex_syntax::hir::HirKind::Class(regex_syntax::hir::Class::Unicode(known)) = hir.kind()
    else {
        panic!("a class");
    };
    all.difference(known);
    assert!(all.ranges().is_empty(), "{all:?}");
}
