//! Files in the form of coflow-benchmark: `PORTS COFLOWS` in the first line, then a coflow a line, `ID ARRIVAL_MS MAPPERS PORT...
//! REDUCERS PORT:MB...`. Ports count from 0.
//!
//! A reducer's bytes come in equal parts from all ports with a mapper, as only the receiver's total was recorded. Mappers of one
//! port are one sender, reducers of one port one receiver. Bytes from a port to itself cross the switch as all others do: a
//! port stands for a rack.

use std::collections::{BTreeMap, BTreeSet};

use netsim::time::SimTime;
use netsim::units::DurationPs;
use thiserror::Error;

use crate::demand::{Coflow, CoflowError, Flow, MAX_FLOWS, MAX_PORTS, PortId, Workload};

/// What a megabyte is: the files do not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Megabyte {
    /// 10^6 bytes, as in the evaluation of Sunflow.
    Decimal,
    /// 2^20 bytes, as in `CoflowSim`.
    Binary,
}

impl Megabyte {
    const fn bytes(self) -> f64 {
        match self {
            Self::Decimal => 1e6,
            Self::Binary => 1_048_576.0,
        }
    }
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {what}")]
pub struct BenchmarkError {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong there, with the value.
    pub what: String,
}

/// Reads a file.
///
/// # Errors
/// With the line, if it is not of this form, has more or fewer coflows than its first line says, or more flows than can be kept.
pub fn parse(text: &str, megabyte: Megabyte) -> Result<Workload, BenchmarkError> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let Some((_, first)) = lines.next() else {
        return Err(BenchmarkError { line: 1, what: "the file is empty: `PORTS COFLOWS` is expected".to_owned() });
    };
    let mut words = Words::new(1, first);
    let ports: usize = words.number("the number of ports")?;
    let expected: usize = words.number("the number of coflows")?;
    words.end()?;
    if ports == 0 || ports > MAX_PORTS {
        return Err(words.wrong(&CoflowError::Ports { ports }));
    }
    let (mut coflows, mut flows) = (Vec::new(), 0);
    let mut last = 1;
    for (index, line) in lines {
        last = index + 1;
        let mut words = Words::new(last, line);
        let coflow = read_coflow(&mut words, ports, megabyte)?;
        flows += coflow.flows.len();
        if flows > MAX_FLOWS {
            return Err(words.wrong(&CoflowError::TooManyFlows));
        }
        coflows.push(coflow);
    }
    if coflows.len() != expected {
        let what = format!("the first line tells of {expected} coflows, the file has {}", coflows.len());
        return Err(BenchmarkError { line: last, what });
    }
    Workload::new(ports, coflows).map_err(|error| BenchmarkError { line: last, what: error.to_string() })
}

fn read_coflow(words: &mut Words<'_>, ports: usize, megabyte: Megabyte) -> Result<Coflow, BenchmarkError> {
    let id = words.next("a coflow's id")?.to_owned();
    let arrival: u64 = words.number("the arrival in milliseconds")?;
    let arrival = SimTime::ZERO.plus_ps(arrival.saturating_mul(DurationPs::from_ms(1).ps()));
    if arrival > SimTime::LATEST {
        return Err(words.wrong(&"the arrival is later than 150 days"));
    }
    let count: usize = words.number("the number of mappers")?;
    let mut mappers = BTreeSet::new();
    for _ in 0..count {
        mappers.insert(words.port("a mapper's port", ports)?);
    }
    if mappers.is_empty() {
        return Err(words.wrong(&"a coflow needs a mapper"));
    }
    let count: usize = words.number("the number of reducers")?;
    let mut reducers = BTreeMap::new();
    for _ in 0..count {
        let text = words.next("a reducer's PORT:MB")?;
        let (port, size) =
            text.split_once(':').ok_or_else(|| words.wrong(&format!("`{text}` for a reducer's PORT:MB")))?;
        let port = words.port_of(port, "a reducer's port", ports)?;
        let size: f64 = words.parse(size, "a reducer's MB")?;
        if !(size > 0.0 && size <= 1e12) {
            return Err(words.wrong(&format!("`{text}`: a reducer gets more than 0 and at most 1e12 MB")));
        }
        *reducers.entry(port).or_insert(0.0) += size * megabyte.bytes();
    }
    if reducers.is_empty() {
        return Err(words.wrong(&"a coflow needs a reducer"));
    }
    words.end()?;
    #[expect(clippy::cast_precision_loss, reason = "at most MAX_PORTS")]
    let senders = mappers.len() as f64;
    let of_reducer = |(&to, &bytes): (&PortId, &f64)| {
        mappers.iter().map(move |&from| Flow { from, to, bytes: bytes / senders }).collect::<Vec<_>>()
    };
    Ok(Coflow { id, arrival, flows: reducers.iter().flat_map(of_reducer).collect() })
}

/// The words of a line.
struct Words<'a> {
    line: usize,
    words: std::str::SplitWhitespace<'a>,
}

impl<'a> Words<'a> {
    fn new(line: usize, text: &'a str) -> Self {
        Self { line, words: text.split_whitespace() }
    }

    fn wrong(&self, what: &dyn ToString) -> BenchmarkError {
        BenchmarkError { line: self.line, what: what.to_string() }
    }

    fn next(&mut self, name: &str) -> Result<&'a str, BenchmarkError> {
        self.words.next().ok_or_else(|| self.wrong(&format!("the line ends where {name} is expected")))
    }

    fn parse<T: std::str::FromStr>(&self, text: &str, name: &str) -> Result<T, BenchmarkError> {
        text.parse().map_err(|_| self.wrong(&format!("`{text}` for {name}")))
    }

    fn number<T: std::str::FromStr>(&mut self, name: &str) -> Result<T, BenchmarkError> {
        let text = self.next(name)?;
        self.parse(text, name)
    }

    fn port(&mut self, name: &str, ports: usize) -> Result<PortId, BenchmarkError> {
        let text = self.next(name)?;
        self.port_of(text, name, ports)
    }

    fn port_of(&self, text: &str, name: &str, ports: usize) -> Result<PortId, BenchmarkError> {
        let port: usize = self.parse(text, name)?;
        match u16::try_from(port) {
            Ok(id) if port < ports => Ok(PortId(id)),
            _ => Err(self.wrong(&format!("`{port}` for {name}: the switch has ports 0 to {}", ports - 1))),
        }
    }

    fn end(&mut self) -> Result<(), BenchmarkError> {
        match self.words.next() {
            None => Ok(()),
            Some(word) => Err(self.wrong(&format!("`{word}` where the line should end"))),
        }
    }
}
