//! Which key of a table makes it unreadable.
//!
//! Tables that are chosen by a key (`kind`, `shape`) are read twice by serde, and the place of an error gets lost on the
//! way. So it is found by trial, and not from the words of the error: the key without which the error is gone.

use toml::{Table, Value};

use crate::nearest::nearest;

/// Keys that choose what the others of their table are, or what messages call it: without them others may be wrong.
const CHOOSERS: [&str; 6] = ["kind", "shape", "routing", "profile", "preset", "name"];

/// Names that are listed beside the one that may have been meant.
const MAX_LISTED: usize = 15;

/// Reads a table: with every key that it uses, or why it cannot be read.
pub(crate) type Read<'r> = &'r dyn Fn(Table) -> Result<Table, String>;

/// The key that is to blame.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Culprit {
    /// Its path. The place in a list of tables, from 0, is a step of its own.
    pub(crate) path: Vec<String>,
    /// Whether there is such a key.
    pub(crate) is_known: bool,
    /// Whether its value is wrong; else there is no such key, or its table lacks something.
    pub(crate) is_value: bool,
    /// The key that may have been meant, where there is none such; the value, where only some are allowed.
    pub(crate) meant: Option<String>,
}

impl Culprit {
    /// A key that a message names.
    pub(crate) fn named(path: Vec<String>) -> Self {
        Self { path, is_known: true, is_value: false, meant: None }
    }

    /// The message with what may have been meant; a long list of keys gives way to it.
    pub(crate) fn explain(&self, message: &str) -> String {
        let Some(meant) = &self.meant else { return message.to_owned() };
        if let (Some(_), Some(key)) = (missing_field(message), self.path.last()) {
            return format!("unknown field `{key}`; did you mean `{meant}`?");
        }
        let short = message.split_once(", expected one of");
        let short = short.filter(|_| !self.is_known && named_as_allowed(message).len() > MAX_LISTED);
        format!("{}; did you mean `{meant}`?", short.map_or(message, |(short, _)| short))
    }
}

/// The key because of which `table` cannot be read, for the reason `message`; `None` if there is no such key.
pub(crate) fn culprit(table: &Table, read: Read, message: &str) -> Option<Culprit> {
    let mut path: Vec<String> = Vec::new();
    let mut without = None;
    while let Some(value) = get(table, &path) {
        let mut fates: Vec<(Vec<String>, Result<Table, String>)> = steps(&value)
            .into_iter()
            .map(|step| {
                let longer = [path.as_slice(), &step].concat();
                (step, read(changed(table, &longer, None)))
            })
            .collect();
        fates.sort_by_key(|(step, _)| step.last().is_some_and(|key| CHOOSERS.contains(&key.as_str())));
        let good = fates.iter().position(|(_, fate)| fate.is_ok());
        let other = || fates.iter().position(|(_, fate)| fate.as_ref().is_err_and(|other| other != message));
        let Some(index) = good.or_else(other) else { break };
        let (step, fate) = fates.swap_remove(index);
        path.extend(step);
        without = fate.ok();
    }
    if let Some(key) = missing_field(message).and_then(|missing| misspelt(table, &path, missing, read)) {
        path.push(key);
        let meant = missing_field(message).map(str::to_owned);
        return Some(Culprit { path, is_known: false, is_value: false, meant });
    }
    let (key, above) = path.split_last()?;
    let value = get(table, &path);
    let is_table = value.as_ref().is_none_or(|value| !steps(value).is_empty() || value.is_table());
    // What is wrong with a key that is not known does not change with its value.
    let another = if is_table { Value::Boolean(true) } else { Value::Table(Table::new()) };
    let is_known = read(changed(table, &path, Some(another))) != Err(message.to_owned());
    let known = without.as_ref().and_then(|whole| get(whole, above)?.as_table().cloned());
    let of_table = known.iter().flat_map(Table::keys).map(String::as_str);
    let names: Vec<&str> = of_table.chain(named_as_allowed(message)).collect();
    let meant = match value.as_ref().and_then(Value::as_str) {
        _ if !is_known => nearest(key, names),
        Some(value) if message.starts_with("unknown variant") => nearest(value, named_as_allowed(message)),
        _ => None,
    };
    let meant = meant.map(str::to_owned);
    Some(Culprit { is_known, is_value: !is_table && is_known, meant, path })
}

/// The path of a key that a message names, where it goes through a list of tables: with the place in the list. It is that of the
/// table without whose key the message is another one.
pub(crate) fn through_lists(table: &Table, path: &[String], read: Read, message: &str) -> Vec<String> {
    let Some((list, rest)) = path.split_first() else { return path.to_vec() };
    let Some(Value::Array(values)) = table.get(list) else { return path.to_vec() };
    let with = |place: usize| [&[list.clone(), place.to_string()], rest].concat();
    let has_key = |place: &usize| get(table, &with(*place)).is_some();
    let changes = |place: &usize| read(changed(table, &with(*place), None)) != Err(message.to_owned());
    let places = || (0..values.len()).filter(has_key);
    places().find(changes).or_else(|| places().next()).map_or_else(|| path.to_vec(), with)
}

/// The table without a key.
pub(crate) fn without(table: &Table, path: &[String]) -> Table {
    changed(table, path, None)
}

/// The key that a table lacks, if that is what a message says.
pub(super) fn missing_field(message: &str) -> Option<&str> {
    message.strip_prefix("missing field `")?.split('`').next()
}

/// The key of the table at `path` that stands for the one that is missing there: with its name all is good, or the names are alike.
fn misspelt(table: &Table, path: &[String], missing: &str, read: Read) -> Option<String> {
    let Value::Table(inner) = get(table, path)? else { return None };
    let at = |key: &str| [path, &[key.to_owned()]].concat();
    let is_good = |(key, value): &(&String, &Value)| {
        read(changed(&changed(table, &at(key), None), &at(missing), Some((*value).clone()))).is_ok()
    };
    let by_trial = inner.iter().find(is_good).map(|(key, _)| key.as_str());
    by_trial.or_else(|| nearest(missing, inner.keys().map(String::as_str))).map(str::to_owned)
}

/// The names in backquotes behind "expected".
pub(super) fn named_as_allowed(message: &str) -> Vec<&str> {
    let names = message.split_once("expected").map(|(_, names)| names).unwrap_or_default();
    names.split('`').skip(1).step_by(2).collect()
}

/// The keys of a table; of a list of tables, those of each, behind its place.
fn steps(value: &Value) -> Vec<Vec<String>> {
    match value {
        Value::Table(table) => table.keys().map(|key| vec![key.clone()]).collect(),
        Value::Array(values) => {
            let tables = values.iter().enumerate().filter_map(|(place, value)| Some((place, value.as_table()?)));
            tables
                .flat_map(|(place, table)| table.keys().map(move |key| vec![place.to_string(), key.clone()]))
                .collect()
        }
        _ => Vec::new(),
    }
}

/// The table with another value for a key, or without it.
pub(super) fn changed(table: &Table, path: &[String], value: Option<Value>) -> Table {
    let mut changed = table.clone();
    let Some((key, above)) = path.split_last() else { return changed };
    let mut inner = above.first().map_or(Some(&mut changed), |_| None);
    if let Some((first, rest)) = above.split_first() {
        let mut at = changed.get_mut(first);
        for step in rest {
            at = at.and_then(|value| match value {
                Value::Table(table) => table.get_mut(step),
                Value::Array(values) => values.get_mut(step.parse::<usize>().ok()?),
                _ => None,
            });
        }
        inner = at.and_then(Value::as_table_mut);
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
pub(super) fn get(table: &Table, path: &[String]) -> Option<Value> {
    let Some((first, rest)) = path.split_first() else { return Some(Value::Table(table.clone())) };
    let mut value = table.get(first)?;
    for step in rest {
        value = match value {
            Value::Table(table) => table.get(step)?,
            Value::Array(values) => values.get(step.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    Some(value.clone())
}
