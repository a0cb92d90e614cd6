mod page;

use super::*;

fn given(name: &str, kind: Kind) -> v1::GenerateRequest {
    let value = Value { kind: Some(kind) };
    v1::GenerateRequest {
        settings: Some(Struct {
            fields: BTreeMap::from([(name.to_owned(), value)]),
        }),
        ..Default::default()
    }
}

#[test]
fn what_is_written_is_read_back() {
    let spec = MethodSpec::new("spec-cascade")
        .with("rule", "opt")
        .with("alpha", 0.3)
        .with("draft_len", 4.0)
        .with("verify_on_finish", false);
    let mut request = v1::GenerateRequest::default();
    to_wire(&spec, &mut request);
    assert_eq!(from_wire(&request), Ok(spec));
    to_wire(&MethodSpec::default(), &mut request);
    assert_eq!(request, v1::GenerateRequest::default());
}

#[test]
fn what_is_no_setting_or_no_value_is_named() {
    let list = prost_types::ListValue::default();
    for (name, kind) in [
        ("alhpa", Kind::NumberValue(0.3)),
        ("alpha", Kind::NumberValue(f64::NAN)),
        ("alpha", Kind::NumberValue(f64::INFINITY)),
        ("rule", Kind::ListValue(list)),
        ("rule", Kind::StructValue(Struct::default())),
    ] {
        let bad = from_wire(&given(name, kind)).expect_err(name);
        assert_eq!(bad.field, format!("settings.{name}"));
    }
    let nothing = given("alpha", Kind::NullValue(0));
    assert_eq!(from_wire(&nothing), Ok(MethodSpec::default()));
}
