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

    /// Puts the value into the table; tables on the way are made.
    ///
    /// # Errors
    /// If something on the way is a value.
    pub(crate) fn apply(&self, table: &mut toml::Table) -> Result<(), ExperimentError> {
        let Some((last, above)) = self.path.split_last() else { return Ok(()) };
        let mut table = table;
        for key in above {
            let entry = table.entry(key.clone()).or_insert_with(|| toml::Value::Table(toml::Table::new()));
            table = entry.as_table_mut().ok_or_else(|| ExperimentError::Wrong {
                place: self.argument.clone(),
                reason: format!("\"{key}\" is a value and has no keys of its own"),
            })?;
        }
        table.insert(last.clone(), self.value.clone());
        Ok(())
    }
}
