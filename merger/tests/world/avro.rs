//! Writes job histories as Hadoop's binary format has them, from those that it wrote as JSON.

use std::collections::HashMap;

use serde_json::Value;

/// The same history in binary: its events by the schema in its second line.
pub fn binary(json: &str) -> Vec<u8> {
    let mut lines = json.lines();
    assert_eq!(lines.next(), Some("Avro-Json"));
    let schema = lines.next().expect("a schema");
    let mut bytes = format!("Avro-Binary\n{schema}\n").into_bytes();
    let encoder = Encoder::new(&serde_json::from_str(schema).expect("a schema is JSON"));
    for line in lines.filter(|line| !line.is_empty()) {
        let event: Value = serde_json::from_str(line).expect("an event is JSON");
        encoder.put(&encoder.schema, &event, &mut bytes);
    }
    bytes
}

struct Encoder {
    schema: Value,
    named: HashMap<String, Value>,
}

impl Encoder {
    fn new(schema: &Value) -> Self {
        let mut named = HashMap::new();
        collect(schema, &mut named);
        Self { schema: schema.clone(), named }
    }

    fn put(&self, schema: &Value, value: &Value, out: &mut Vec<u8>) {
        if let Value::Array(branches) = schema {
            let wrapped = value.as_object().and_then(|object| object.iter().next());
            let at = branches.iter().position(|branch| match wrapped {
                Some((name, _)) => name.rsplit('.').next() == Some(short(branch)),
                None => branch == "null",
            });
            let at = at.unwrap_or_else(|| panic!("{value} is of no branch of {schema}"));
            integer(at as i64, out);
            return wrapped.map_or((), |(_, value)| self.put(&branches[at], value, out));
        }
        let kind = schema.get("type").unwrap_or(schema);
        match kind.as_str() {
            Some("record") => {
                for field in schema["fields"].as_array().expect("fields") {
                    let value = &value[field["name"].as_str().expect("a field has a name")];
                    self.put(&field["type"], value, out);
                }
            }
            Some("enum") => {
                let at = schema["symbols"].as_array().and_then(|symbols| symbols.iter().position(|it| it == value));
                integer(at.expect("a symbol") as i64, out);
            }
            Some("array") => {
                let items = value.as_array().expect("an array");
                // As Avro's writer does: one block, then the empty one.
                if !items.is_empty() {
                    integer(items.len() as i64, out);
                }
                items.iter().for_each(|item| self.put(&schema["items"], item, out));
                integer(0, out);
            }
            Some("map") => {
                let items = value.as_object().expect("an object");
                if !items.is_empty() {
                    integer(items.len() as i64, out);
                }
                for (key, item) in items {
                    text(key, out);
                    self.put(&schema["values"], item, out);
                }
                integer(0, out);
            }
            Some("int" | "long") => integer(value.as_i64().expect("a number"), out),
            Some("boolean") => out.push(u8::from(value.as_bool().expect("true or false"))),
            Some("string") => text(value.as_str().expect("text"), out),
            Some("null") => {}
            Some(name) => self.put(self.named.get(name).unwrap_or_else(|| panic!("{name} is no type")), value, out),
            None => self.put(kind, value, out),
        }
    }
}

fn collect(schema: &Value, named: &mut HashMap<String, Value>) {
    match schema {
        Value::Object(fields) => {
            if let (Some(name), Some("record" | "enum")) =
                (fields.get("name").and_then(Value::as_str), fields.get("type").and_then(Value::as_str))
            {
                named.insert(name.to_owned(), schema.clone());
            }
            fields.values().for_each(|value| collect(value, named));
        }
        Value::Array(values) => values.iter().for_each(|value| collect(value, named)),
        _ => {}
    }
}

fn short(branch: &Value) -> &str {
    let name = branch.get("name").or_else(|| branch.get("type")).unwrap_or(branch).as_str().unwrap_or_default();
    name.rsplit('.').next().unwrap_or_default()
}

fn text(text: &str, out: &mut Vec<u8>) {
    integer(text.len() as i64, out);
    out.extend(text.as_bytes());
}

/// Zigzag, seven bits a byte, the lowest first.
pub fn integer(number: i64, out: &mut Vec<u8>) {
    let mut number = ((number << 1) ^ (number >> 63)).cast_unsigned();
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}
