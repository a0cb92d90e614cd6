//! Schemas: of tools, written by hand, and others that are made.

use serde_json::{Map, Value, json};

/// The schemas of `tests/prompts/schemas.jsonl`, and `made` others, each with its name.
pub(super) fn all(made: u64) -> Vec<(String, Value)> {
    let lines = include_str!("../../prompts/schemas.jsonl").lines();
    let written = lines.map(|line| {
        let row: Value = serde_json::from_str(line).expect("a JSON line");
        let name = row["name"].as_str().expect("a name").to_owned();
        (name, row["schema"].clone())
    });
    let made = (0..made).map(|seed| (format!("made {seed}"), Maker(seed + 1).any(3)));
    written.chain(made).collect()
}

/// Makes schemas of numbers that look random.
struct Maker(u64);

impl Maker {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    /// A schema of values that are at most `depth` deep.
    fn any(&mut self, depth: u64) -> Value {
        match self.below(if depth == 0 { 5 } else { 8 }) {
            0 => json!({"type": "boolean"}),
            1 => {
                let least = self.below(50);
                json!({"type": "integer", "minimum": least, "maximum": least + self.below(100)})
            }
            2 => json!({"type": "string", "maxLength": 1 + self.below(9)}),
            3 => json!({"enum": ["a", 1, null, "two words"]}),
            4 => {
                json!({"type": "string", "pattern": format!("^[a-{}]{{1,4}}$", ['d', 'k', 'z'][self.below(3) as usize])})
            }
            5 => json!({"type": "array", "items": self.any(depth - 1), "maxItems": self.below(4)}),
            6 => json!({"anyOf": [self.any(depth - 1), {"type": "null"}]}),
            _ => {
                let fields = 1 + self.below(4);
                let mut properties = Map::new();
                for at in 0..fields {
                    properties.insert(format!("field {at}"), self.any(depth - 1));
                }
                let required: Vec<_> = properties
                    .keys()
                    .take(self.below(fields + 1) as usize)
                    .cloned()
                    .collect();
                json!({
                    "type": "object",
                    "properties": properties,
                    "required": required,
                    "additionalProperties": false,
                })
            }
        }
    }
}
