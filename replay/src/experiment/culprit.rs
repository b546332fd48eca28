//! Which key of a table makes it unreadable.
//!
//! Tables that are chosen by a key (`kind`, `shape`) are read twice by serde, and the place of an error gets lost on the
//! way. So it is found by trial, and not from the words of the error: the key without which the error is gone.

use toml::{Table, Value};

/// Keys that choose what the others of their table are: without them others may be wrong.
const CHOOSERS: [&str; 3] = ["kind", "shape", "routing"];

/// Reads a table: with every key that it uses, or why it cannot be read.
pub(crate) type Read<'r> = &'r dyn Fn(Table) -> Result<Table, String>;

/// The key that is to blame.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Culprit {
    /// Its path.
    pub(crate) path: Vec<String>,
    /// Whether its value is wrong; else there is no such key, or its table lacks something.
    pub(crate) is_value: bool,
    /// The key that may have been meant, where there is none such.
    pub(crate) meant: Option<String>,
}

impl Culprit {
    /// What may have been meant, to stand behind the message.
    pub(crate) fn suggestion(&self) -> String {
        self.meant.as_ref().map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"))
    }
}

/// The key because of which `table` cannot be read, for the reason `message`; `None` if there is no such key.
pub(crate) fn culprit(table: &Table, read: Read, message: &str) -> Option<Culprit> {
    let mut path: Vec<String> = Vec::new();
    let mut without = None;
    while let Some(Value::Table(inner)) = get(table, &path) {
        let mut fates: Vec<(&String, Result<Table, String>)> =
            inner.keys().map(|key| (key, read(changed(table, &path, key, None)))).collect();
        fates.sort_by_key(|(key, _)| CHOOSERS.contains(&key.as_str()));
        let good = fates.iter().position(|(_, fate)| fate.is_ok());
        let other = || fates.iter().position(|(_, fate)| fate.as_ref().is_err_and(|other| other != message));
        let Some(index) = good.or_else(other) else { break };
        let (key, fate) = fates.swap_remove(index);
        path.push(key.clone());
        without = fate.ok();
    }
    let (key, above) = path.split_last()?;
    let is_table = get(table, &path).is_none_or(|value| value.is_table());
    // What is wrong with a key that is not known does not change with its value.
    let is_known =
        is_table || read(changed(table, above, key, Some(Value::Table(Table::new())))) != Err(message.to_owned());
    let known = without.as_ref().and_then(|whole| get(whole, above)?.as_table().cloned());
    let meant = known.filter(|_| !is_known).and_then(|known| nearest(key, &known));
    Some(Culprit { is_value: !is_table && is_known, meant, path })
}

/// The table with another value for a key below `above`, or without it.
fn changed(table: &Table, above: &[String], key: &str, value: Option<Value>) -> Table {
    let mut changed = table.clone();
    let mut inner = Some(&mut changed);
    for key in above {
        inner = inner.and_then(|table| table.get_mut(key)?.as_table_mut());
    }
    if let Some(inner) = inner {
        match value {
            Some(value) => inner.insert(key.to_owned(), value),
            None => inner.remove(key),
        };
    }
    changed
}

/// The value at a path; the table itself at none.
fn get(table: &Table, path: &[String]) -> Option<Value> {
    let Some((first, rest)) = path.split_first() else { return Some(Value::Table(table.clone())) };
    match table.get(first)? {
        Value::Table(inner) => get(inner, rest),
        value => rest.is_empty().then(|| value.clone()),
    }
}

/// The key of a table that differs least from `key`, in no more than a third of it.
fn nearest(key: &str, table: &Table) -> Option<String> {
    let distance = |known: &str| strsim::damerau_levenshtein(key, known);
    let near = table.keys().map(|known| (distance(known), known)).min()?;
    (near.0 <= key.chars().count().div_ceil(3)).then(|| near.1.clone())
}
