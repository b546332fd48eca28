//! Where in a file, or in which override, the thing stands that an error speaks of.
//!
//! Tables that are chosen by a key (`kind`, `shape`) are read twice by serde, and positions get lost on the way. So the
//! place is looked up by what the message names: an unknown key, a dotted path, or a value.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Experiment, ExperimentError, Override};
use netsim::fabric::lightness::PARAMETERS;

/// An error of the file's syntax.
pub(crate) fn syntax_error(file: &str, text: &str, error: &toml::de::Error) -> ExperimentError {
    at(file, text, error.span(), error.message())
}

/// The error `message`, at the place of what it names.
pub(crate) fn wrong(file: &str, text: &str, overrides: &[Override], message: &str) -> ExperimentError {
    let message = &as_written(text, overrides, message);
    let subject = Subject::of(message);
    if let Some(change) = overrides.iter().rev().find(|change| subject.is_in(change)) {
        return ExperimentError::Wrong { place: change.argument().to_owned(), reason: message.to_owned() };
    }
    if let Some(change) = first_to_break(text, overrides) {
        return ExperimentError::Wrong { place: change.argument().to_owned(), reason: message.to_owned() };
    }
    let span = DeTable::parse(text).ok().and_then(|table| {
        let mut path = Vec::new();
        subject.find(table.get_ref(), &mut path)
    });
    if span.is_none() && !overrides.is_empty() {
        let arguments: Vec<&str> = overrides.iter().map(Override::argument).collect();
        let place = format!("{file} with {}", arguments.join(" "));
        return ExperimentError::Wrong { place, reason: message.to_owned() };
    }
    at(file, text, span, message)
}

/// The first override with which a file that is good without any is good no more.
fn first_to_break<'o>(text: &str, overrides: &'o [Override]) -> Option<&'o Override> {
    let mut table: toml::Table = text.parse().ok()?;
    Experiment::of_table(table.clone()).ok()?;
    overrides.iter().find(|change| change.apply(&mut table).is_err() || Experiment::of_table(table.clone()).is_err())
}

/// `message`, which begins with one of our keys, with the deliverable's name for it where that is what was written.
fn as_written(text: &str, overrides: &[Override], message: &str) -> String {
    let Subject::Path(path) = Subject::of(message) else { return message.to_owned() };
    let Some((&"fabric", key)) = path.split_first() else { return message.to_owned() };
    let is_written = |path: &[&str]| {
        let subject = Subject::Path(path.to_vec());
        let in_file = || DeTable::parse(text).ok().and_then(|table| subject.find(table.get_ref(), &mut Vec::new()));
        overrides.iter().any(|change| subject.is_in(change)) || in_file().is_some()
    };
    if is_written(&path) {
        return message.to_owned();
    }
    let key = key.join(".");
    let names = PARAMETERS.iter().filter(|parameter| parameter.key == key).map(|parameter| {
        let scope = parameter.scope.split('.').filter(|part| !part.is_empty());
        ["fabric"].into_iter().chain(scope).chain([parameter.name]).collect::<Vec<_>>()
    });
    match names.into_iter().find(|name| is_written(name)) {
        Some(name) => message.replacen(&path.join("."), &name.join("."), 1),
        None => message.to_owned(),
    }
}

/// What a message speaks of.
enum Subject<'m> {
    /// A key by its name alone.
    Key(&'m str),
    /// A key by its path.
    Path(Vec<&'m str>),
    /// A value as it was written, without quotes.
    Value(&'m str),
    /// A table that lacks something.
    Table(&'static str),
    /// Nobody knows.
    Unknown,
}

impl<'m> Subject<'m> {
    fn of(message: &'m str) -> Self {
        let quoted = |mark: char| message.split(mark).nth(1);
        let first_word = message.split([' ', ':', ',']).next().unwrap_or_default();
        if message.starts_with("unknown field") {
            quoted('`').map_or(Self::Unknown, Self::Key)
        } else if message.starts_with("unknown variant") {
            quoted('`').map_or(Self::Unknown, Self::Value)
        } else if first_word.contains('.') && !first_word.starts_with('"') {
            Self::Path(first_word.split('.').collect())
        } else if message.starts_with('"') {
            quoted('"').map_or(Self::Unknown, Self::Value)
        } else if message.starts_with("invalid type") || message.starts_with("invalid value") {
            let value = quoted('`').or_else(|| quoted('"'));
            value.map_or(Self::Unknown, Self::Value)
        } else if message.starts_with("`[traffic]`") {
            Self::Table("traffic")
        } else if message.contains("`kind`") {
            Self::Table("fabric")
        } else if message.contains("`shape`") {
            Self::Table("topology")
        } else {
            Self::Unknown
        }
    }

    fn is_in(&self, change: &Override) -> bool {
        let path = change.path();
        match self {
            Self::Key(key) => path.last().is_some_and(|last| last == key),
            Self::Path(wanted) => path.iter().map(String::as_str).eq(wanted.iter().copied()),
            Self::Value(value) => {
                let text = change.value_text();
                // A list is a sweep: the error is about one of its values.
                let values = text.trim_start_matches('[').trim_end_matches(']').split(',');
                values.chain([text]).any(|text| text.trim().trim_matches(['"', '\'']) == *value)
            }
            Self::Table(_) | Self::Unknown => false,
        }
    }

    /// The place of the first match, in the order of the file.
    fn find(&self, table: &DeTable, path: &mut Vec<String>) -> Option<Range<usize>> {
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        for (key, value) in entries {
            path.push(key.get_ref().to_string());
            let here = match self {
                Self::Key(wanted) => key.get_ref() == wanted,
                Self::Path(wanted) => path.iter().map(String::as_str).eq(wanted.iter().copied()),
                Self::Table(wanted) => key.get_ref() == wanted,
                Self::Value(wanted) => is_value(value, wanted),
                Self::Unknown => false,
            };
            if here {
                return Some(if matches!(self, Self::Value(_)) { value.span() } else { key.span() });
            }
            if let DeValue::Table(inner) = value.get_ref()
                && let Some(span) = self.find(inner, path)
            {
                return Some(span);
            }
            path.pop();
        }
        None
    }
}

fn is_value(value: &Spanned<DeValue>, wanted: &str) -> bool {
    match value.get_ref() {
        DeValue::String(text) => text == wanted,
        DeValue::Integer(number) => number.as_str() == wanted,
        DeValue::Float(number) => number.as_str() == wanted,
        DeValue::Boolean(truth) => truth.to_string() == wanted,
        DeValue::Array(values) => values.iter().any(|value| is_value(value, wanted)),
        DeValue::Datetime(_) | DeValue::Table(_) => false,
    }
}

fn at(file: &str, text: &str, span: Option<Range<usize>>, message: &str) -> ExperimentError {
    let Some(span) = span else {
        return ExperimentError::Wrong { place: file.to_owned(), reason: message.to_owned() };
    };
    let before = text.get(..span.start).unwrap_or(text);
    let line_number = before.matches('\n').count() + 1;
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let column = before[line_start..].chars().count() + 1;
    let line = text[line_start..].lines().next().unwrap_or_default();
    ExperimentError::Wrong {
        place: format!("{file}:{line_number}:{column}"),
        reason: format!("{message}\n    {line_number} | {line}"),
    }
}
