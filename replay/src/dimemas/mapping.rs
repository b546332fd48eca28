//! Which host of the fabric is whose: the hosts of a fabric that no trace names, and the task mapping.

use netsim::fabric::{FabricConfig, FabricKind};
use netsim::files;
use netsim::network::HostIndex;
use netsim::topology::HostPlace;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// How many hosts there are when neither the fabric nor the command line says it. Ours.
pub const DEFAULT_NODES: u32 = 256;

/// The largest file of a task mapping: about a million tasks.
const MAX_BYTES: u64 = 16 << 20;

/// Hosts that a fabric may have: as many as `traffic.hosts`.
const MAX_NODES: u32 = 1 << 24;

/// Why hosts cannot be placed or tasks mapped.
#[derive(Debug, Error)]
pub enum MappingError {
    /// Hosts cannot be spread evenly.
    #[error("{nodes} nodes cannot be spread evenly over {racks} racks: give --nodes and --racks so that they can")]
    Uneven {
        /// Hosts.
        nodes: u32,
        /// Racks.
        racks: u32,
    },
    /// More than can be simulated.
    #[error("{nodes} nodes: from 1 to {MAX_NODES} are possible")]
    TooMany {
        /// Hosts.
        nodes: u32,
    },
    /// The file cannot be read.
    #[error("{path}: {reason}", path = path.display())]
    Read {
        /// The file that the error is about.
        path: PathBuf,
        /// The system's error.
        reason: io::Error,
    },
    /// A line of the file is wrong.
    #[error("{path}:{line}: \"{text}\": {reason}", path = path.display())]
    Line {
        /// The file that the error is about.
        path: PathBuf,
        /// Line, counted from 1.
        line: usize,
        /// The line.
        text: String,
        /// What is wrong, and what is allowed.
        reason: String,
    },
}

/// The hosts of a fabric for a client that only knows numbers: node `n` is host `n`, racks are filled one by one.
///
/// `nodes` defaults to what the fabric has (a fat-tree's `nodes`), else to [`DEFAULT_NODES`]. `racks` defaults to what
/// the fabric has (a fat-tree's `racks`, a LIGHTNESS fabric's `fibers`); without that, two ToRs back to back have two,
/// a LIGHTNESS fabric one for each node (as its test beds), and other fabrics one.
///
/// # Errors
/// When the nodes are no multiple of the racks, one of both is 0, or there are too many.
pub fn hosts(fabric: &FabricConfig, nodes: Option<u32>, racks: Option<u32>) -> Result<Vec<HostPlace>, MappingError> {
    let own = fabric.places();
    let nodes = nodes.or(own.hosts).unwrap_or(DEFAULT_NODES);
    let racks = racks.or(own.racks).unwrap_or(if own.apart { nodes } else { 1 });
    if racks == 0 || nodes == 0 || !nodes.is_multiple_of(racks) {
        return Err(MappingError::Uneven { nodes, racks });
    }
    if nodes > MAX_NODES {
        return Err(MappingError::TooMany { nodes });
    }
    let each = nodes / racks;
    Ok((0..nodes).map(|node| HostPlace { name: format!("n{node}"), rack: format!("r{}", node / each) }).collect())
}

/// Which host a task (or node) of the client runs on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskMapping {
    /// By task; `None` maps each to the host of its number.
    given: Option<BTreeMap<u32, u32>>,
}

impl TaskMapping {
    /// Reads a file with `task node` in each line; empty lines are passed over.
    ///
    /// # Errors
    /// When it cannot be read, a line is something else, names a task a second time, or a node that is not there.
    pub fn read(path: &Path, nodes: u32) -> Result<Self, MappingError> {
        let text =
            files::read_text(path, MAX_BYTES).map_err(|reason| MappingError::Read { path: path.into(), reason })?;
        let mut given = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let wrong = |reason: String| MappingError::Line {
                path: path.into(),
                line: index + 1,
                text: super::protocol::shortened(line),
                reason,
            };
            let numbers: Vec<u32> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
            let [task, node] = numbers[..] else {
                return Err(wrong("each line is \"task node\", two numbers from 0 on".to_owned()));
            };
            if line.split_whitespace().count() != 2 {
                return Err(wrong("each line is \"task node\", two numbers from 0 on".to_owned()));
            }
            if node >= nodes {
                return Err(wrong(format!("there are {nodes} nodes, from 0 to {}; --nodes gives more", nodes - 1)));
            }
            if given.insert(task, node).is_some() {
                return Err(wrong(format!("task {task} stands in an earlier line too")));
            }
        }
        Ok(Self { given: Some(given) })
    }

    /// The host of `task` in a fabric of `nodes` hosts, or why it has none.
    ///
    /// # Errors
    /// What to say about it.
    pub fn host(&self, task: u32, nodes: u32) -> Result<HostIndex, String> {
        let node = match &self.given {
            Some(given) => {
                *given.get(&task).ok_or_else(|| format!("task {task} does not stand in the task mapping"))?
            }
            None => task,
        };
        if node < nodes {
            Ok(HostIndex(node))
        } else {
            Err(format!("node {node} is not there: the fabric has {nodes} (--nodes gives more)"))
        }
    }
}
