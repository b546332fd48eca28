//! What may stand in place of a value of another type, in the words of TOML and with an example, where serde names types of ours.
//!
//! What a table's keys are, and which example can be read, is found by trial.

use toml::{Table, Value};

use super::culprit::{changed, get, missing_field, named_as_allowed};

/// Lists that may be read where one is expected.
const LISTS: [&str; 5] = ["[1]", "[0.5]", "[\"uniform\"]", "[\"64B\"]", "[\"1us\"]"];

/// A key, or a value, that there is nowhere.
const NO_NAME: &str = "?";

/// Keys beside the first one that an example may need.
const MAX_NEEDED: usize = 4;

/// What makes a table unreadable by its types; `None` where only values do not fit each other.
pub(super) type Misread<'r> = &'r dyn Fn(Table) -> Option<String>;

/// The same of the table with a value in the place of which another one stood.
type With<'w> = &'w dyn Fn(Value) -> Option<String>;

/// The error `message` of the value at `path` of `table`, with what is expected in words.
pub(super) fn in_words(table: &Table, path: &[String], misread: Misread, message: &str) -> String {
    let Some((found, expected)) = message.rsplit_once(", expected ") else { return message.to_owned() };
    let kind = expected.split(' ').next().unwrap_or_default();
    let value = get(table, path);
    let with = |value: Value| misread(changed(table, path, Some(value)));
    let key = path.join(".");
    let words = match (kind, expected) {
        _ if !message.starts_with("invalid type: ") && !message.starts_with("invalid value: ") => None,
        ("struct" | "internally", _) | (_, "a map") => Some(a_table(&key, value.as_ref(), &with)),
        (_, "a sequence") => Some(a_list(&key, value.as_ref(), &with)),
        ("f32" | "f64", _) => Some("a number, such as 0.5".to_owned()),
        ("u8", _) => Some(whole(u8::MAX.into())),
        ("u16", _) => Some(whole(u16::MAX.into())),
        ("u32", _) => Some(whole(u32::MAX.into())),
        ("u64" | "usize", _) => Some(whole(i64::MAX.unsigned_abs())),
        ("i64" | "i32", _) => Some("a whole number".to_owned()),
        (_, "a boolean") => Some("a boolean: true or false".to_owned()),
        (_, "a string" | "path string") => Some(format!("{expected}, in quotes")),
        _ => None,
    };
    match words {
        Some(words) if found == "invalid type: map" => format!("`{key}` has no keys of its own: expected {words}"),
        Some(words) => format!("{found}, expected {words}"),
        None => message.to_owned(),
    }
}

/// TOML's whole numbers end at 2^63 - 1.
fn whole(largest: u64) -> String {
    format!("a whole number from 0 to {largest}")
}

/// A table with these keys, or a list of such tables where a list is there.
fn a_table(key: &str, value: Option<&Value>, with: With) -> String {
    let (in_list, first) = match value {
        Some(Value::Array(values)) => (true, values.first()),
        value => (false, value),
    };
    let of = |table: Table| if in_list { Value::Array(vec![Value::Table(table)]) } else { Value::Table(table) };
    let ask = |table: &Table, name: &str| {
        let mut asked = table.clone();
        asked.insert(name.to_owned(), NO_NAME.into());
        with(of(asked)).unwrap_or_default()
    };
    // The table with whatever else it needs, if that is one of a few names.
    let whole = |mut table: Table| {
        for _ in 0..MAX_NEEDED {
            let Some(why) = with(of(table.clone())) else { return Some(of(table)) };
            let missing = missing_field(&why)?;
            let asked = ask(&table, missing);
            let name = asked.starts_with("unknown variant").then(|| named_as_allowed(&asked).first().copied());
            table.insert(missing.to_owned(), name??.into());
        }
        None
    };
    let what = if in_list { "a list of tables" } else { "a table" };
    let asked = ask(&Table::new(), NO_NAME);
    if missing_field(&asked).is_some() {
        // The kind of the table decides about its other keys.
        return whole(Table::new()).map_or(what.to_owned(), |example| format!("{what}, such as {key} = {example}"));
    }
    let keys = named_as_allowed(&asked);
    let with_value = |name: &&str| whole(Table::from_iter([((*name).to_owned(), first?.clone())]));
    let example = keys.iter().find_map(with_value);
    let keys: Vec<String> = keys.iter().map(|name| format!("`{name}`")).collect();
    match (keys.is_empty(), example) {
        (true, _) => what.to_owned(),
        (false, None) => format!("{what} with keys among {}", keys.join(", ")),
        (false, Some(example)) => format!("{what} with keys among {}, such as {key} = {example}", keys.join(", ")),
    }
}

/// A list: of the value itself, where that can be read.
fn a_list(key: &str, value: Option<&Value>, with: With) -> String {
    let of_value = value.map(|value| Value::Array(vec![value.clone()]));
    let others = LISTS.iter().filter_map(|text| format!("list = {text}").parse::<Table>().ok()?.remove("list"));
    let example = of_value.into_iter().chain(others).find(|list| with(list.clone()).is_none());
    example.map_or_else(|| "a list".to_owned(), |list| format!("a list, such as {key} = {list}"))
}
