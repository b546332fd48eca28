//! Avro's binary encoding, as far as a schema of records goes: values in the form of Avro's JSON.
//!
//! Integers are zigzag varints, text and bytes come behind their length, arrays and maps in blocks behind their counts,
//! unions and enumerations as the number of what was chosen. What a file says of its lengths is not believed: memory is
//! taken as bytes arrive, and no more of it than a budget allows.

use std::collections::HashMap;
use std::io::{self, BufRead};

use serde_json::{Map, Value};

use super::input::Input;

/// Values within values: more than this is a schema that refers to itself.
const MAX_DEPTH: usize = 64;
/// What a value takes of the budget beside its bytes: about its size in memory.
const VALUE_COST: usize = 64;

/// A type; the numbers are those of other types in the schema.
#[derive(Debug)]
enum Kind {
    Null,
    Boolean,
    /// `int` and `long`.
    Integer,
    Float,
    Double,
    Bytes,
    Text,
    Fixed(usize),
    Enumeration(Vec<String>),
    Array(usize),
    Map(usize),
    /// With the names by which Avro's JSON tells what was chosen.
    Union(Vec<(String, usize)>),
    Record(Vec<(String, usize)>),
}

/// The schema with which a file was written.
#[derive(Debug)]
pub struct Schema {
    kinds: Vec<Kind>,
    root: usize,
}

impl Schema {
    /// Reads it from its JSON. The error says what is wrong.
    pub fn parse(json: &[u8]) -> Result<Self, String> {
        let json: Value = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        let mut parser = Parser::default();
        let root = parser.add(&json, "")?;
        Ok(Self { kinds: parser.kinds, root })
    }
}

#[derive(Default)]
struct Parser {
    kinds: Vec<Kind>,
    named: HashMap<String, usize>,
}

impl Parser {
    /// Adds a type and those within it. JSON that `serde_json` has read is not so deep that this could go too far.
    fn add(&mut self, schema: &Value, namespace: &str) -> Result<usize, String> {
        match schema {
            Value::String(name) => match primitive(name) {
                Some(kind) => Ok(self.push(kind)),
                None => self.named.get(&full_name(name, namespace)).copied().ok_or(format!("{name} is no type")),
            },
            Value::Array(branches) => {
                let branches = branches
                    .iter()
                    .map(|branch| Ok((branch_name(branch, namespace), self.add(branch, namespace)?)))
                    .collect::<Result<_, String>>()?;
                Ok(self.push(Kind::Union(branches)))
            }
            Value::Object(fields) => self.add_object(fields, namespace),
            other => Err(format!("{other} is no type")),
        }
    }

    fn add_object(&mut self, fields: &Map<String, Value>, namespace: &str) -> Result<usize, String> {
        let of = |name: &str| fields.get(name).ok_or(format!("a type has no \"{name}\""));
        let list = |name: &str| of(name)?.as_array().ok_or(format!("\"{name}\" is no list"));
        let kind = match of("type")? {
            Value::String(kind) => kind.as_str(),
            // {"type": {"type": "array", ...}}
            inner => return self.add(inner, namespace),
        };
        let kind = match kind {
            "array" => Kind::Array(self.add(of("items")?, namespace)?),
            "map" => Kind::Map(self.add(of("values")?, namespace)?),
            "record" | "error" | "enum" | "fixed" => {
                let at = self.push(Kind::Null);
                let name = full_name(of("name")?.as_str().unwrap_or_default(), namespace_of(fields, namespace));
                self.named.insert(name.clone(), at);
                self.kinds[at] = match kind {
                    "enum" => Kind::Enumeration(list("symbols")?.iter().map(text).collect()),
                    "fixed" => Kind::Fixed(of("size")?.as_u64().and_then(|size| size.try_into().ok()).unwrap_or(0)),
                    _ => {
                        let namespace = name.rsplit_once('.').map_or("", |(namespace, _)| namespace);
                        let mut record = Vec::new();
                        for field in list("fields")? {
                            let kind = field.get("type").ok_or(format!("a field of {name} has no type"))?;
                            record.push((text(&field["name"]), self.add(kind, namespace)?));
                        }
                        Kind::Record(record)
                    }
                };
                return Ok(at);
            }
            // A primitive with properties of its own: {"type": "string", "avro.java.string": "String"}
            other => return self.add(&Value::from(other), namespace),
        };
        Ok(self.push(kind))
    }

    fn push(&mut self, kind: Kind) -> usize {
        self.kinds.push(kind);
        self.kinds.len() - 1
    }
}

fn primitive(name: &str) -> Option<Kind> {
    Some(match name {
        "null" => Kind::Null,
        "boolean" => Kind::Boolean,
        "int" | "long" => Kind::Integer,
        "float" => Kind::Float,
        "double" => Kind::Double,
        "bytes" => Kind::Bytes,
        "string" => Kind::Text,
        _ => return None,
    })
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn namespace_of<'a>(fields: &'a Map<String, Value>, enclosing: &'a str) -> &'a str {
    fields.get("namespace").and_then(Value::as_str).unwrap_or(enclosing)
}

/// A name with its namespace, unless it has one.
fn full_name(name: &str, namespace: &str) -> String {
    if name.contains('.') || namespace.is_empty() { name.to_owned() } else { format!("{namespace}.{name}") }
}

/// By what Avro's JSON tells that a branch of a union was chosen: its full name, or its type if it has none.
fn branch_name(branch: &Value, namespace: &str) -> String {
    match branch {
        Value::String(name) if primitive(name).is_none() => full_name(name, namespace),
        Value::Object(fields) => match fields.get("name").and_then(Value::as_str) {
            Some(name) => full_name(name, namespace_of(fields, namespace)),
            None => fields.get("type").map(text).unwrap_or_default(),
        },
        other => text(other),
    }
}

/// Why a value could not be read.
#[derive(Debug)]
pub enum Stop {
    /// The input ends in it.
    CutOff,
    /// It is not what its schema says; with the reason.
    Damaged(String),
    /// The input cannot be read.
    Io(io::Error),
}

/// One value of the root's type, being read.
pub struct Datum<'a, R> {
    input: &'a mut Input<R>,
    budget: usize,
    length: u64,
}

impl<'a, R: BufRead> Datum<'a, R> {
    /// Of the input from where it is; `budget` is what the value may take, in the input and in memory.
    pub fn new(input: &'a mut Input<R>, budget: usize) -> Self {
        Self { input, budget, length: 0 }
    }

    /// Bytes that were taken from the input.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Reads the value.
    pub fn read(&mut self, schema: &Schema) -> Result<Value, Stop> {
        self.value(schema, schema.root, 0)
    }

    fn value(&mut self, schema: &Schema, kind: usize, depth: usize) -> Result<Value, Stop> {
        self.spend(VALUE_COST)?;
        if depth > MAX_DEPTH {
            return Err(Stop::Damaged(format!("values within values go deeper than {MAX_DEPTH}")));
        }
        Ok(match &schema.kinds[kind] {
            Kind::Null => Value::Null,
            Kind::Boolean => Value::from(self.bytes(1)?[0] != 0),
            Kind::Integer => Value::from(self.integer()?),
            Kind::Float => Value::from(f32::from_le_bytes(self.array()?)),
            Kind::Double => Value::from(f64::from_le_bytes(self.array()?)),
            Kind::Bytes => {
                let length = self.count("a length")?;
                // Avro's JSON writes a byte as the character of that number.
                Value::from(self.bytes(length)?.into_iter().map(char::from).collect::<String>())
            }
            Kind::Fixed(length) => Value::from(self.bytes(*length)?.into_iter().map(char::from).collect::<String>()),
            Kind::Text => Value::from(self.text()?),
            Kind::Enumeration(symbols) => Value::from(self.chosen(symbols, "a symbol")?.as_str()),
            Kind::Array(items) => {
                let mut values = Vec::new();
                while let Some(count) = self.block()? {
                    for _ in 0..count {
                        values.push(self.value(schema, *items, depth + 1)?);
                    }
                }
                Value::from(values)
            }
            Kind::Map(items) => {
                let mut values = Map::new();
                while let Some(count) = self.block()? {
                    for _ in 0..count {
                        let key = self.text()?;
                        values.insert(key, self.value(schema, *items, depth + 1)?);
                    }
                }
                Value::from(values)
            }
            Kind::Union(branches) => {
                let (name, kind) = self.chosen(branches, "a branch")?;
                match self.value(schema, *kind, depth + 1)? {
                    Value::Null => Value::Null,
                    value => Value::from_iter([(name.clone(), value)]),
                }
            }
            Kind::Record(fields) => {
                let mut values = Map::new();
                for (name, kind) in fields {
                    self.spend(name.len())?;
                    values.insert(name.clone(), self.value(schema, *kind, depth + 1)?);
                }
                Value::from(values)
            }
        })
    }

    /// The number of items in the next block of an array or a map; none: there are no more.
    fn block(&mut self) -> Result<Option<u64>, Stop> {
        let count = self.integer()?;
        if count < 0 {
            // Its size in bytes follows, for readers that want to leave the block out.
            self.integer()?;
        }
        Ok(Some(count.unsigned_abs()).filter(|count| *count > 0))
    }

    fn chosen<'b, T>(&mut self, from: &'b [T], what: &str) -> Result<&'b T, Stop> {
        let number = self.integer()?;
        let chosen = usize::try_from(number).ok().and_then(|number| from.get(number));
        chosen.ok_or_else(|| Stop::Damaged(format!("it names {what} of number {number} of {}", from.len())))
    }

    fn text(&mut self) -> Result<String, Stop> {
        let length = self.count("a length")?;
        Ok(String::from_utf8_lossy(&self.bytes(length)?).into_owned())
    }

    fn count(&mut self, what: &str) -> Result<usize, Stop> {
        let number = self.integer()?;
        usize::try_from(number).map_err(|_| Stop::Damaged(format!("it has {what} of {number}")))
    }

    fn integer(&mut self) -> Result<i64, Stop> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok((number >> 1).cast_signed() ^ -((number & 1).cast_signed()));
            }
        }
        Err(Stop::Damaged("it has a number of more than 64 bits".into()))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        let mut array = [0; N];
        for at in &mut array {
            let Some(byte) = self.input.next_bytes().map_err(Stop::Io)?.first().copied() else {
                return Err(Stop::CutOff);
            };
            self.input.consume(1);
            self.length += 1;
            *at = byte;
        }
        Ok(array)
    }

    fn bytes(&mut self, length: usize) -> Result<Vec<u8>, Stop> {
        self.spend(length)?;
        let mut bytes = Vec::new();
        while bytes.len() < length {
            let next = self.input.next_bytes().map_err(Stop::Io)?;
            let taken = next.len().min(length - bytes.len());
            if taken == 0 {
                return Err(Stop::CutOff);
            }
            bytes.extend_from_slice(&next[..taken]);
            self.input.consume(taken);
            self.length += taken as u64;
        }
        Ok(bytes)
    }

    fn spend(&mut self, bytes: usize) -> Result<(), Stop> {
        self.budget = self
            .budget
            .checked_sub(bytes)
            .ok_or_else(|| Stop::Damaged("it is longer than any event of a job".into()))?;
        Ok(())
    }
}
