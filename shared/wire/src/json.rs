//! JSON as protobuf's well-known types carry it.

use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value as WireValue};
use serde_json::{Map, Value};

/// An object on the wire.
pub type Object = Struct;

/// Greatest whole number that a double tells from its neighbours.
const MOST_EXACT: f64 = (1_u64 << f64::MANTISSA_DIGITS) as f64;

/// Returns whether a field is as where it is left out.
pub(crate) fn is_default<Field: Default + PartialEq>(field: &Field) -> bool {
    *field == Field::default()
}

/// Reads an object. Numbers without a fraction become whole ones.
pub fn from_wire(object: Struct) -> Map<String, Value> {
    let fields = object.fields.into_iter();
    fields
        .map(|(name, value)| (name, value_from_wire(value)))
        .collect()
}

fn value_from_wire(value: WireValue) -> Value {
    match value.kind {
        None | Some(Kind::NullValue(_)) => Value::Null,
        Some(Kind::BoolValue(flag)) => Value::from(flag),
        Some(Kind::NumberValue(number)) if number.fract() == 0.0 && number.abs() < MOST_EXACT => {
            Value::from(number as i64)
        }
        Some(Kind::NumberValue(number)) => Value::from(number),
        Some(Kind::StringValue(text)) => Value::from(text),
        Some(Kind::ListValue(list)) => list.values.into_iter().map(value_from_wire).collect(),
        Some(Kind::StructValue(object)) => Value::Object(from_wire(object)),
    }
}

/// Writes an object.
pub fn to_wire(object: &Map<String, Value>) -> Struct {
    let fields = object.iter();
    let fields = fields.map(|(name, value)| (name.clone(), value_to_wire(value)));
    Struct {
        fields: fields.collect(),
    }
}

fn value_to_wire(value: &Value) -> WireValue {
    let kind = match value {
        Value::Null => Kind::NullValue(0),
        Value::Bool(flag) => Kind::BoolValue(*flag),
        Value::Number(number) => Kind::NumberValue(number.as_f64().unwrap_or(f64::NAN)),
        Value::String(text) => Kind::StringValue(text.clone()),
        Value::Array(items) => {
            let values = items.iter().map(value_to_wire).collect();
            Kind::ListValue(ListValue { values })
        }
        Value::Object(object) => Kind::StructValue(to_wire(object)),
    };
    WireValue { kind: Some(kind) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_survive_the_wire() {
        let object = json!({ "a": true, "b": [1, 2.5, null, "x", -7], "c": { "d": {} } });
        let object = object.as_object().expect("an object");
        assert_eq!(from_wire(to_wire(object)), *object);
    }
}
