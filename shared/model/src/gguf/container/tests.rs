use candle_core::quantized::GgmlDType;

use super::*;
use crate::gguf::tests::bytes;
use crate::gguf::tests::floats;
use crate::gguf::tests::open;
use crate::gguf::tests::refused;
use crate::gguf_writer::header::MetadataFields;

fn sample() -> Vec<u8> {
    let mut metadata = MetadataFields::default();
    metadata.insert("a.string", "zwölf");
    metadata.insert("a.number", 12_u32);
    metadata.insert("a.fraction", 0.5_f32);
    metadata.insert("a.flag", true);
    metadata.insert("strings", vec!["x", ""]);
    metadata.insert("numbers", vec![3, 3]);
    metadata.insert("different", vec![3, 4]);
    metadata.insert("none", Vec::<bool>::new());
    let numbers: Vec<f32> = (0..6_u8).map(f32::from).collect();
    bytes(
        &metadata,
        &[
            ("first", &[2, 3], GgmlDType::F32, floats(&numbers)),
            ("second", &[1, 32], GgmlDType::Q8_0, vec![7; 34]),
        ],
    )
}

#[test]
fn what_was_written_is_read() {
    let file = open(&sample()).unwrap();
    let metadata = &file.metadata;
    assert_eq!(metadata.string("a.string").unwrap(), Some("zwölf"));
    assert_eq!(metadata.whole("a.number").unwrap(), Some(12));
    assert_eq!(metadata.real("a.fraction").unwrap(), Some(0.5));
    assert_eq!(metadata.bool("a.flag").unwrap(), Some(true));
    assert_eq!(metadata.strings("strings").unwrap(), Some(vec!["x", ""]));
    assert_eq!(metadata.whole("numbers").unwrap(), Some(3));
    assert_eq!(metadata.wholes("different").unwrap(), Some(vec![3, 4]));
    assert_eq!(metadata.bools("none").unwrap(), Some(vec![]));
    assert_eq!(metadata.whole("missing").unwrap(), None);
    let error = metadata.whole("different").unwrap_err().to_string();
    assert!(
        error.ends_with("different is an array of 2, expected a whole number"),
        "{error}"
    );
    let (info, contents) = file.tensors.get("first").unwrap();
    assert_eq!(
        (info.format_name.as_str(), info.shape.as_slice()),
        ("F32", &[2, 3][..])
    );
    assert_eq!(contents[4..8], 1.0_f32.to_le_bytes());
    assert_eq!(file.tensors.get("second").unwrap().1, [7; 34]);
    assert!(file.tensors.get("third").is_none());
    let names: Vec<&str> = file.tensors.iter().map(|(name, ..)| name).collect();
    assert_eq!(names, ["first", "second"]);
}

#[test]
fn what_is_no_text_is_replaced() {
    let mut metadata = MetadataFields::default();
    metadata.insert("strings", vec!["", "a??z", "zw\u{f6}lf"]);
    let mut file = bytes(&metadata, &[]);
    let at = file.windows(2).position(|pair| pair == b"??").unwrap();
    file[at..at + 2].fill(0xff);
    let file = open(&file).unwrap();
    let found = file.metadata.strings("strings").unwrap();
    assert_eq!(found, Some(vec!["", "a\u{fffd}\u{fffd}z", "zw\u{f6}lf"]));
}

#[test]
fn arrays_that_are_not_wanted_are_passed_over() {
    let mut metadata = MetadataFields::default();
    metadata.insert("arrays", vec![vec!["x", "yz"], vec![], vec!["\u{f6}"]]);
    metadata.insert("long", vec![true; (1 << 21) + 1]);
    metadata.insert("then", 3_u32);
    let metadata = open(&bytes(&metadata, &[])).unwrap().metadata;
    assert_eq!(metadata.whole("then").unwrap(), Some(3));
    let message = |error: GgufError| error.to_string();
    assert_eq!(
        metadata.strings("arrays").map_err(message),
        Err("its metadata arrays is an array of 3, expected an array of strings".to_owned())
    );
    assert_eq!(
        metadata.bools("long").map_err(message),
        Err(
            "its metadata long is an array of 2097153, expected an array of at most 2097152"
                .to_owned()
        )
    );
    let mut deep = MetadataFields::default();
    deep.insert("deep", vec![vec![vec![vec![vec![1_u32]]]]]);
    let reason = refused(&bytes(&deep, &[]));
    assert_eq!(reason, "the metadata deep is of the unknown type 9");
}

#[test]
fn every_truncation_is_an_error() {
    let whole = sample();
    // Up to where the last tensor ends; only padding follows.
    let end = whole.len() - (34_usize.next_multiple_of(32) - 34);
    for length in 0..end {
        let reason = refused(&whole[..length]);
        let says_where = reason.contains("ends") || reason.contains("begin");
        assert!(says_where || length == 0, "{length}: {reason}");
    }
    assert!(open(&whole[..end]).is_ok());
    let reason = refused(&whole[..end - 1]);
    let reported = "tensor second ends at byte ";
    assert!(reason.starts_with(reported), "{reason}");
}

#[test]
fn corruption_never_panics() {
    let whole = sample();
    for at in 0..whole.len() {
        for flip in [0xff, 0x80, 0x01] {
            let mut broken = whole.clone();
            broken[at] ^= flip;
            if let Ok(file) = open(&broken) {
                let mut tensors = file.tensors.iter();
                assert!(tensors.all(|(_, _, bytes)| bytes.len() <= whole.len()));
            }
        }
    }
}

#[test]
fn headers_that_promise_too_much_are_refused() {
    for (at, reported) in [
        (8, "it has 131073 tensors, at most 131072 are read"),
        (
            16,
            "it has 131073 values in its metadata, at most 131072 are read",
        ),
    ] {
        let mut file = sample();
        file[at..at + 8].copy_from_slice(&131_073_u64.to_le_bytes());
        assert_eq!(refused(&file), reported);
    }
    let mut metadata = MetadataFields::default();
    metadata.insert("a".repeat(1 << 16), 1_u32);
    let reason = refused(&bytes(&metadata, &[]));
    assert_eq!(reason, "a name in the metadata is 65536 bytes long");
}

#[test]
fn what_is_not_gguf_says_so() {
    let zip = refused(b"PK\x03\x04 and more");
    assert_eq!(zip, "it does not begin with GGUF");
    let version = |version: [u8; 4]| {
        let mut file = sample();
        file[4..8].copy_from_slice(&version);
        refused(&file)
    };
    let reported = [version([0, 0, 0, 3]), version([1, 0, 0, 0])];
    assert_eq!(
        reported[0],
        "it is big-endian, little-endian files are read"
    );
    assert_eq!(reported[1], "it is of version 1, 2 and 3 are read");
    let missing = GgufFile::open(Path::new("/nowhere/m.gguf")).err().unwrap();
    assert_eq!(missing.to_string(), "/nowhere/m.gguf cannot be read");
}

#[test]
fn alignments_that_make_no_sense_are_refused() {
    for (key, number, reason) in [
        ("general.alignment", 0, "general.alignment is 0: "),
        ("general.alignment", 4, "general.alignment is 4: "),
        ("general.alignment", 48, "general.alignment is 48: "),
    ] {
        let mut metadata = MetadataFields::default();
        metadata.insert(key, number);
        let found = refused(&bytes(&metadata, &[]));
        assert!(found.starts_with(reason), "{found}");
    }
}

#[test]
fn tensors_that_contradict_their_format_are_named() {
    let none = MetadataFields::default();
    let one = |shape: &[usize], format| {
        let tensor = ("t", shape, format, vec![0; 64]);
        refused(&bytes(&none, &[tensor]))
    };
    let rows = "tensor t has rows of 33, its format Q8_0 needs a multiple of 32";
    assert_eq!(one(&[2, 33], GgmlDType::Q8_0), rows);
    let large = one(&[1 << 31, 1 << 31], GgmlDType::F32);
    assert_eq!(large, "tensor t is too large");
    let tensor = ("t", &[1][..], GgmlDType::F32, floats(&[1.0]));
    let twice = refused(&bytes(&none, &[tensor.clone(), tensor]));
    assert_eq!(twice, "there are two tensors t");
}
