//! `--set path=value`.

use std::str::FromStr;

use super::ExperimentError;

/// A value that replaces that of the file, by its path: `fabric.topology.host_link.rate=1Gbps`.
#[derive(Clone, Debug, PartialEq)]
pub struct Override {
    text: String,
    /// As it was typed, for messages: `--set fabric.window=2`.
    argument: String,
    path: Vec<String>,
    value: toml::Value,
}

impl FromStr for Override {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (path, value) = text
            .split_once('=')
            .ok_or_else(|| format!("\"{text}\" is no path=value, such as fabric.switch_delay=200ns"))?;
        let path: Vec<String> = path.trim().split('.').map(str::to_owned).collect();
        if path.iter().any(String::is_empty) {
            return Err(format!("\"{text}\" has no path before the =, such as workload.cpu_factor"));
        }
        Ok(Self { argument: format!("--set {text}"), text: text.to_owned(), path, value: value_of(value.trim()) })
    }
}

/// What is no TOML value (`10Gbps`) is taken as text, and so is each value of a list (`[uniform, transpose]`).
fn value_of(text: &str) -> toml::Value {
    let as_toml = format!("value = {text}").parse::<toml::Table>().ok().and_then(|mut table| table.remove("value"));
    as_toml.unwrap_or_else(|| match text.strip_prefix('[').and_then(|list| list.strip_suffix(']')) {
        Some(list) => toml::Value::Array(list.split(',').map(|value| value_of(value.trim())).collect()),
        None => toml::Value::String(text.to_owned()),
    })
}

impl Override {
    /// The change alone: path=value.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it is a key of this table of the experiment.
    #[must_use]
    pub fn is_of(&self, table: &str) -> bool {
        self.path.first().is_some_and(|first| first == table)
    }

    /// The same change, which was typed as `argument`.
    #[must_use]
    pub fn typed_as(self, argument: String) -> Self {
        Self { argument, ..self }
    }

    /// The whole argument, for messages.
    pub(crate) fn argument(&self) -> &str {
        &self.argument
    }

    /// Its path.
    pub(super) fn path(&self) -> &[String] {
        &self.path
    }

    /// Puts the value into the table; tables on the way are made. A place in a list, from 0, is a step of its own.
    ///
    /// # Errors
    /// If something on the way is a value, or a list has no such place.
    pub(crate) fn apply(&self, table: &mut toml::Table) -> Result<(), ExperimentError> {
        let Some((first, rest)) = self.path.split_first() else { return Ok(()) };
        let done = put(entry(table, first), first, rest, &self.value);
        done.map_err(|reason| ExperimentError::Wrong { place: self.argument.clone(), reason })
    }
}

fn entry<'t>(table: &'t mut toml::Table, key: &str) -> &'t mut toml::Value {
    table.entry(key).or_insert_with(|| toml::Value::Table(toml::Table::new()))
}

/// Puts `value` below `at`, which is called `name`.
fn put(at: &mut toml::Value, name: &str, path: &[String], value: &toml::Value) -> Result<(), String> {
    let Some((key, rest)) = path.split_first() else {
        *at = value.clone();
        return Ok(());
    };
    match at {
        toml::Value::Table(table) => put(entry(table, key), key, rest, value),
        toml::Value::Array(values) => {
            let count = values.len();
            let place = key.parse::<usize>().ok().and_then(|place| values.get_mut(place));
            let place = place.ok_or_else(|| {
                format!("\"{name}\" is a list of {count}: its places are steps of the path, {name}.0 the first")
            })?;
            put(place, key, rest, value)
        }
        _ => Err(format!("\"{name}\" is a value and has no keys of its own")),
    }
}
