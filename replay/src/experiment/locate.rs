//! Where in a file, or in which override, the thing stands that an error speaks of.
//!
//! A message of ours begins with the key that it is about: `fabric.mtu = "3B": ...`, or its table: `[traffic]`. Of an error
//! that serde found the key is found by trial ([`culprit`]).

use std::ops::Range;

use toml::Table;
use toml::de::{DeTable, DeValue};

use super::culprit::{Culprit, Read, culprit, through_lists, without};
use super::expected::in_words;
use super::{Experiment, ExperimentError, Override};
use netsim::fabric::lightness::PARAMETERS;

/// So many unknown keys are told at once.
const MAX_UNKNOWN: usize = 20;

/// What is wrong with a table; `None` if nothing is.
type Validator<'f> = &'f dyn Fn(Table) -> Option<String>;

/// Reads `text`, which errors call `file`, as a table with `overrides`, and what that says.
pub(crate) fn read_table<T: serde::Serialize>(
    file: &str,
    text: &str,
    overrides: &[Override],
    of_table: impl Fn(Table) -> Result<T, String>,
) -> Result<T, ExperimentError> {
    let mut table: Table = text.parse().map_err(|error: toml::de::Error| syntax_error(file, text, &error))?;
    for change in overrides {
        change.apply(&mut table)?;
    }
    let read = |table| Table::try_from(of_table(table)?).map_err(|error| error.to_string());
    of_table(table.clone()).map_err(|message| unreadable(file, text, overrides, (&table, &read), &message))
}

/// An error of the file's syntax.
pub(crate) fn syntax_error(file: &str, text: &str, error: &toml::de::Error) -> ExperimentError {
    at(file, text, error.span(), error.message())
}

/// The error `message`, which begins with the key that it is about, at the place of that.
pub(crate) fn wrong(file: &str, text: &str, overrides: &[Override], message: &str) -> ExperimentError {
    let message = &as_written(text, overrides, message);
    let named = key_of(message).map(Culprit::named);
    let validate = |table| Experiment::of_table(table).err();
    of_culprit(file, text, overrides, (named.as_ref(), &validate), message)
}

/// The error `message` of a key of a fabric whose keys stand in the table `at_table` of the file, in place of `[fabric]`; `None` if that key
/// does not stand there.
pub(crate) fn wrong_below(file: &str, text: &str, at_table: &[&str], message: &str) -> Option<ExperimentError> {
    let path = key_of(message)?;
    let (_, key) = path.split_first().filter(|(first, _)| *first == "fabric")?;
    names_of(key).into_iter().find_map(|name| {
        let place: Vec<String> = at_table.iter().map(|step| (*step).to_owned()).chain(name.clone()).collect();
        let span = span_of(text, &place, false)?;
        let message = message.replacen(&path.join("."), &format!("fabric.{}", name.join(".")), 1);
        Some(at(file, text, Some(span), &message))
    })
}

/// The error `message` at the place of a table, or of one of its keys.
pub(crate) fn wrong_at(file: &str, text: &str, places: &[&[&str]], message: &str) -> ExperimentError {
    let span = places.iter().find_map(|place| {
        let path: Vec<String> = place.iter().map(|step| (*step).to_owned()).collect();
        span_of(text, &path, false)
    });
    at(file, text, span, message)
}

/// The errors of a `table`, the file with the overrides, that cannot be read: all keys that are not known, or else `message`.
pub(crate) fn unreadable(
    file: &str,
    text: &str,
    overrides: &[Override],
    (table, read): (&Table, Read),
    message: &str,
) -> ExperimentError {
    let validate = |table: Table| read(table).err();
    if let Some(path) = key_of(message) {
        let path = through_lists(table, &path, read, message);
        let written = as_written(text, overrides, message);
        let named = if written == message { Some(path) } else { key_of(&written) };
        return of_culprit(file, text, overrides, (named.map(Culprit::named).as_ref(), &validate), &written);
    }
    let mut unknown = Vec::new();
    let (mut rest, mut next) = (table.clone(), message.to_owned());
    while unknown.len() < MAX_UNKNOWN && key_of(&next).is_none() {
        let Some(found) = culprit(&rest, read, &next).filter(|found| !found.is_known) else { break };
        rest = without(&rest, &found.path);
        let explained = found.explain(&next);
        unknown.push((found, explained));
        match read(rest.clone()) {
            Err(error) => next = error,
            Ok(_) => break,
        }
    }
    unknown.sort_by_key(|(found, _)| span_of(text, &found.path, false).map_or(usize::MAX, |span| span.start));
    let one =
        |found: Option<&Culprit>, explained: &str| of_culprit(file, text, overrides, (found, &validate), explained);
    let mut errors: Vec<ExperimentError> =
        unknown.iter().map(|(found, explained)| one(Some(found), explained)).collect();
    match errors.len() {
        0 => {
            let found = culprit(table, read, message);
            let explained = match &found {
                Some(found) => {
                    let misread = |table| validate(table).filter(|message| key_of(message).is_none());
                    in_words(table, &found.path, &misread, &found.explain(message))
                }
                None => message.to_owned(),
            };
            one(found.as_ref(), &explained)
        }
        1 => errors.remove(0),
        _ => ExperimentError::Several(errors),
    }
}

/// The error `message` where its key stands; that of an override at the override. `fate` says what is wrong with a table.
fn of_culprit(
    file: &str,
    text: &str,
    overrides: &[Override],
    (culprit, validate): (Option<&Culprit>, Validator),
    message: &str,
) -> ExperimentError {
    let wrong = |place: String| ExperimentError::Wrong { place, reason: message.to_owned() };
    let is_its = |change: &&Override| culprit.is_some_and(|culprit| culprit.path.starts_with(change.path()));
    if let Some(change) = overrides.iter().rev().find(is_its).or_else(|| first_to_break(text, overrides, validate)) {
        return wrong(change.argument().to_owned());
    }
    let span = culprit.and_then(|culprit| span_of(text, &culprit.path, culprit.is_value));
    if span.is_some() || overrides.is_empty() {
        return at(file, text, span, message);
    }
    if let Some(change) = first_to_matter(text, overrides, validate) {
        return wrong(change.argument().to_owned());
    }
    let alone = text.parse().ok().and_then(validate);
    if alone.is_some_and(|alone| message.starts_with(&alone)) {
        return at(file, text, None, message);
    }
    let arguments: Vec<&str> = overrides.iter().map(Override::argument).collect();
    wrong(format!("{file} with {}", arguments.join(" ")))
}

/// The first override with which a file that is good without any is good no more.
fn first_to_break<'o>(text: &str, overrides: &'o [Override], validate: Validator) -> Option<&'o Override> {
    let mut table: Table = text.parse().ok()?;
    if validate(table.clone()).is_some() {
        return None;
    }
    overrides.iter().find(|change| change.apply(&mut table).is_err() || validate(table.clone()).is_some())
}

/// The first override with which something else is wrong with a file than before.
fn first_to_matter<'o>(text: &str, overrides: &'o [Override], validate: Validator) -> Option<&'o Override> {
    let mut table: Table = text.parse().ok()?;
    let mut before = validate(table.clone())?;
    let mut last = None;
    for change in overrides {
        change.apply(&mut table).ok()?;
        let now = validate(table.clone())?;
        if now != before {
            (before, last) = (now, Some(change));
        }
    }
    last
}

/// The path of the key, or of the table, with which a message begins.
pub(crate) fn key_of(message: &str) -> Option<Vec<String>> {
    if let Some((table, _)) = message.strip_prefix("`[").and_then(|rest| rest.split_once("]`")) {
        return Some(vec![table.to_owned()]);
    }
    let first = message.split([' ', ':', ',']).next().unwrap_or_default();
    let is_path = first.contains('.') && !first.starts_with('"');
    is_path.then(|| first.split('.').map(str::to_owned).collect())
}

/// `message`, which begins with one of our keys, with the deliverable's name for it where that is what was written.
fn as_written(text: &str, overrides: &[Override], message: &str) -> String {
    let Some(path) = key_of(message) else { return message.to_owned() };
    let Some(("fabric", key)) = path.split_first().map(|(first, key)| (first.as_str(), key)) else {
        return message.to_owned();
    };
    let is_written =
        |path: &[String]| overrides.iter().any(|change| change.path() == path) || span_of(text, path, false).is_some();
    if is_written(&path) {
        return message.to_owned();
    }
    let names = names_of(key).into_iter().map(|name| [vec!["fabric".to_owned()], name].concat());
    match names.into_iter().find(|name| is_written(name)) {
        Some(name) => message.replacen(&path.join("."), &name.join("."), 1),
        None => message.to_owned(),
    }
}

/// What a key of a fabric may be called: by its path below the fabric, or by one of the deliverable's names for it.
fn names_of(key: &[String]) -> Vec<Vec<String>> {
    let ours = key.join(".");
    let names = PARAMETERS.iter().filter(|parameter| parameter.key == ours).map(|parameter| {
        let scope = parameter.scope.split('.').filter(|part| !part.is_empty());
        scope.chain([parameter.name]).map(str::to_owned).collect()
    });
    std::iter::once(key.to_vec()).chain(names).collect()
}

/// Where a key, or its value, stands in a file.
fn span_of(text: &str, path: &[String], is_value: bool) -> Option<Range<usize>> {
    fn find(value: &DeValue, path: &[String], is_value: bool) -> Option<Range<usize>> {
        let (first, rest) = path.split_first()?;
        let (key, value) = match value {
            DeValue::Table(table) => {
                let (key, value) = table.iter().find(|(key, _)| key.get_ref() == first)?;
                (key.span(), value)
            }
            DeValue::Array(values) => {
                let value = values.get(first.parse::<usize>().ok()?)?;
                (value.span(), value)
            }
            _ => return None,
        };
        match rest {
            [] => Some(if is_value { value.span() } else { key }),
            rest => find(value.get_ref(), rest, is_value),
        }
    }
    let table = DeTable::parse(text).ok()?.into_inner();
    find(&DeValue::Table(table), path, is_value)
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
