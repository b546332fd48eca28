//! Sweeps: several experiments in one file.
//!
//! A list makes a sweep over its values, except where the key takes a list itself: there the list is the value, and
//! `{ sweep = [...] }` makes the sweep. Several sweeps are run in all combinations.

use std::path::Path;

use toml::{Table, Value};

use super::culprit::culprit;
use super::read::text_of;
use super::{Experiment, ExperimentError, Override, locate};

/// More combinations are a mistake.
const MAX_POINTS: usize = 100_000;

/// A key that has several values.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The key's path: "traffic.load".
    pub path: String,
    /// Its values, as they stand in the file.
    pub values: Vec<Value>,
}

impl Axis {
    /// A value as text, without quotes.
    #[must_use]
    pub fn text(&self, index: usize) -> String {
        self.values.get(index).map_or_else(String::new, |value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        })
    }

    /// The last part of the path: "load".
    #[must_use]
    pub fn name(&self) -> &str {
        self.path.rsplit('.').next().unwrap_or(&self.path)
    }
}

/// One combination of values.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Which value of each axis.
    pub values: Vec<usize>,
    /// The experiment with these values.
    pub experiment: Experiment,
}

/// An experiment for each combination of the values of some keys; just one where no key has several.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// The keys, in order of their paths.
    pub axes: Vec<Axis>,
    /// The combinations; the last axis changes first.
    pub points: Vec<Point>,
    /// The file, with the overrides.
    given: Table,
}

impl Sweep {
    /// Reads the experiments of a file, or of the one of this name that is built in, and applies `overrides`.
    ///
    /// # Errors
    /// If the file cannot be read or something in it, or in an override, is wrong.
    pub fn read(path: &Path, overrides: &[Override]) -> Result<Self, ExperimentError> {
        let text = text_of(path)?;
        let mut sweep = Self::parse(&text, &path.display().to_string(), overrides)?;
        for point in &mut sweep.points {
            point.experiment.place(path);
        }
        Ok(sweep)
    }

    /// Reads the experiments of `text`, which errors call `file`, and applies `overrides`.
    ///
    /// # Errors
    /// If something in it, or in an override, is wrong.
    pub fn parse(text: &str, file: &str, overrides: &[Override]) -> Result<Self, ExperimentError> {
        let table = Experiment::table(text, file, overrides)?;
        let wrong = |message: &str| locate::wrong(file, text, overrides, message);
        let axes = axes(&table).map_err(|message| wrong(&message))?;
        let count = axes.iter().try_fold(1usize, |count, (_, values)| count.checked_mul(values.len()));
        let Some(count) = count.filter(|count| *count <= MAX_POINTS) else {
            let path = axes.first().map_or_else(String::new, |(path, _)| path.join("."));
            return Err(wrong(&format!("{path}: the lists have more than {MAX_POINTS} combinations")));
        };
        let mut points = Vec::with_capacity(count);
        for number in 0..count {
            let mut table = table.clone();
            let mut values = vec![0; axes.len()];
            let mut rest = number;
            for (index, (path, all)) in axes.iter().enumerate().rev() {
                values[index] = rest % all.len();
                rest /= all.len();
                put(&mut table, path, all[values[index]].clone());
            }
            let experiment = Experiment::of_table(table.clone())
                .map_err(|message| Experiment::unreadable(file, text, overrides, &table, &message))?;
            points.push(Point { values, experiment });
        }
        let axes = axes.into_iter().map(|(path, values)| Axis { path: path.join("."), values }).collect();
        Ok(Self { axes, points, given: table })
    }

    /// Whether some key has several values.
    #[must_use]
    pub fn is_sweep(&self) -> bool {
        !self.axes.is_empty()
    }

    /// The number of the key along which the offered load changes: what curves of synthetic traffic are drawn over.
    #[must_use]
    pub fn load_axis(&self) -> Option<usize> {
        let offered = |point: &Point| point.experiment.traffic.as_ref().map(|traffic| (traffic.load, traffic.interval));
        (0..self.axes.len()).find(|along| {
            let is_along =
                |point: &&Point| point.values.iter().enumerate().all(|(axis, at)| axis == *along || *at == 0);
            let mut loads = self.points.iter().filter(is_along).map(offered);
            let first = loads.next();
            loads.any(|load| Some(load) != first)
        })
    }

    /// The experiments as a file, with every key.
    ///
    /// # Errors
    /// If a value cannot be written as TOML.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        let Some(first) = self.points.first() else { return toml::to_string_pretty(&self.given) };
        let mut table = first.experiment.to_table()?;
        for (number, axis) in self.axes.iter().enumerate() {
            let path: Vec<&str> = axis.path.split('.').collect();
            // As the experiments have it: a file's name is a full path there.
            let value = |index: usize| {
                let point = self.points.iter().find(|point| point.values[number] == index)?;
                get(&point.experiment.to_table().ok()?, &path).cloned()
            };
            let values = (0..axis.values.len()).map(|index| value(index).unwrap_or_else(|| axis.values[index].clone()));
            let sweep = Table::from_iter([("sweep".to_owned(), Value::Array(values.collect()))]);
            let path: Vec<String> = path.into_iter().map(str::to_owned).collect();
            put(&mut table, &path, Value::Table(sweep));
        }
        let text = toml::to_string_pretty(&table)?;
        // Where a sweep goes over kinds, each has keys that the others do not know: then the file as it was given, with
        // what it was called.
        if !self.is_sweep() || Self::parse(&text, "", &[]).is_ok_and(|again| again.points == self.points) {
            return Ok(text);
        }
        let mut given = self.given.clone();
        given.insert("name".to_owned(), Value::String(first.experiment.name.clone()));
        toml::to_string_pretty(&given)
    }
}

type Found = (Vec<String>, Vec<Value>);

/// The keys with several values.
fn axes(table: &Table) -> Result<Vec<Found>, String> {
    let (mut sure, mut lists) = (Vec::new(), Vec::new());
    find(table, &mut Vec::new(), &mut sure, &mut lists);
    for (path, values) in &sure {
        if values.is_empty() {
            return Err(format!("{}: a sweep over an empty list is no experiment", path.join(".")));
        }
    }
    // With the first value of each sweep in its place, a key shows whether it takes a list.
    let mut plain = table.clone();
    for (path, values) in &sure {
        put(&mut plain, path, values[0].clone());
    }
    let taken = taken_as_lists(&plain, &lists);
    let of_lists = lists.into_iter().zip(taken).filter(|(_, taken)| !taken).map(|(found, _)| found);
    sure.extend(of_lists);
    if let Some((path, _)) = sure.iter().find(|(_, values)| values.is_empty()) {
        return Err(format!("{}: a sweep over an empty list is no experiment", path.join(".")));
    }
    sure.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(sure)
}

/// So many lists are tried in all combinations.
const MAX_TRIED: usize = 8;

/// Which of the lists are values: the largest set of them with which the experiment is one, the others by their first
/// values. Where there is no such set because something is wrong, each is judged by what is said about it.
fn taken_as_lists(plain: &Table, lists: &[Found]) -> Vec<bool> {
    let with = |taken: &dyn Fn(usize) -> bool| {
        let mut table = plain.clone();
        for (index, (path, values)) in lists.iter().enumerate() {
            if let Some(first) = values.first().filter(|_| !taken(index)) {
                put(&mut table, path, first.clone());
            }
        }
        table
    };
    if lists.len() <= MAX_TRIED {
        let mut sets: Vec<u32> = (0..1 << lists.len()).collect();
        sets.sort_by_key(|set: &u32| std::cmp::Reverse(set.count_ones()));
        let good = sets.into_iter().find(|set| Experiment::of_table(with(&|index| set >> index & 1 == 1)).is_ok());
        if let Some(set) = good {
            let is_in = |index: usize| set >> index & 1 == 1;
            // A key that takes both is not swept because something is wrong with its list.
            let own_fault = |index: usize| {
                let as_list = Experiment::of_table(with(&|other| other == index || is_in(other)));
                as_list.is_err_and(|error| locate::key_of(&error).is_some_and(|path| path.starts_with(&lists[index].0)))
            };
            return (0..lists.len()).map(|index| is_in(index) || own_fault(index)).collect();
        }
    }
    let read = |table| Experiment::of_table(table)?.to_table().map_err(|error| error.to_string());
    let judged = |own: usize| {
        let path = &lists[own].0;
        let mut table = with(&|index| index == own);
        let Err(as_list) = Experiment::of_table(table.clone()) else { return true };
        if Experiment::has_types_of(table.clone()) {
            return true;
        }
        let Err(single) = Experiment::of_table(with(&|_| false)) else { return false };
        let to_blame = locate::key_of(&as_list).or_else(|| Some(culprit(&table, &read, &as_list)?.path));
        if to_blame.is_none_or(|key| !key.starts_with(path)) {
            return as_list != single;
        }
        // Of a key that takes no list, what is wrong does not change with what the list holds.
        put(&mut table, path, Value::Array(Vec::new()));
        Experiment::of_table(table).err().as_ref() != Some(&as_list)
    };
    (0..lists.len()).map(judged).collect()
}

/// All `{ sweep = [...] }`, and all lists.
fn find(table: &Table, path: &mut Vec<String>, sure: &mut Vec<Found>, lists: &mut Vec<Found>) {
    for (key, value) in table {
        path.push(key.clone());
        match value {
            Value::Array(values) => lists.push((path.clone(), values.clone())),
            Value::Table(inner) => match (inner.len(), inner.get("sweep")) {
                (1, Some(Value::Array(values))) => sure.push((path.clone(), values.clone())),
                _ => find(inner, path, sure, lists),
            },
            _ => {}
        }
        path.pop();
    }
}

/// The value at a path.
fn get<'t>(table: &'t Table, path: &[&str]) -> Option<&'t Value> {
    let (last, above) = path.split_last()?;
    let mut table = table;
    for key in above {
        table = table.get(*key)?.as_table()?;
    }
    table.get(*last)
}

/// Puts a value into a table, where the way to it exists.
fn put(table: &mut Table, path: &[String], value: Value) {
    let Some((last, above)) = path.split_last() else { return };
    let mut table = table;
    for key in above {
        let Some(inner) = table.get_mut(key).and_then(Value::as_table_mut) else { return };
        table = inner;
    }
    table.insert(last.clone(), value);
}
