//! Which network a command speaks of: that of an experiment, or a shape and its keys.

use std::path::{Path, PathBuf};

use anyhow::{Context, Error, bail};
use clap::Args;
use netsim::fabric::FabricKind;
use netsim::routing::{Routes, RoutingConfig};
use netsim::topology::{Structure, Topology, TopologyConfig};
use replay::dimemas::mapping;
use replay::experiment::{Experiment, Override, Sweep};

/// Which topology.
#[derive(Debug, Args)]
pub(super) struct NetworkArgs {
    /// The experiment whose fabric has the topology: a TOML file, or a name that `replay experiments` lists.
    experiment: Option<PathBuf>,
    /// The shape, in place of an experiment: racks, fat-tree, single-switch, leaf-spine, k-ary-n-tree, thin-tree,
    /// m-port-n-tree, xgft, mesh, torus, midimew, spinnaker or graph.
    #[arg(long, conflicts_with = "experiment")]
    shape: Option<String>,
    /// The file of shape graph: an edge list, DOT (.dot, .gv), or a subnet of InfiniBand as ibnetdiscover (.topo) or ibdiagnet (.lst)
    /// has it.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["experiment", "shape"])]
    graph: Option<PathBuf>,
    /// The forwarding tables of a subnet of InfiniBand: an LFT dump of OpenSM or ibroute, or ibdiagnet.fdbs.
    #[arg(long, value_name = "FILE", conflicts_with = "experiment", requires = "graph")]
    lfts: Option<PathBuf>,
    /// Number of hosts.
    #[arg(long, short = 'n', value_name = "HOSTS")]
    nodes: Option<u32>,
    /// Number of racks, of shapes fat-tree and racks; all have the same number of hosts.
    #[arg(long, short = 'r')]
    racks: Option<u32>,
    /// Number of core switches, of shape fat-tree.
    #[arg(long, short = 'c')]
    cores: Option<u32>,
    /// Any other key by its path, such as fabric.topology.host_link.rate=25Gbps; a path without a dot is a key of
    /// fabric.topology. May be given more than once.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    overrides: Vec<String>,
}

/// A topology and the routing of its experiment.
pub(super) struct Network {
    pub(super) topology: Topology,
    /// The shape's name.
    pub(super) shape: &'static str,
    /// The routing that the experiment, or `--set fabric.routing`, says.
    pub(super) routing: Option<RoutingConfig>,
    pub(super) seed: u64,
    source: Option<PathBuf>,
    overrides: Vec<Override>,
}

impl NetworkArgs {
    /// All keys as overrides.
    fn changes(&self, sized_by_hosts: bool) -> Result<Vec<Override>, Error> {
        let mut changes = Vec::new();
        // What is wrong with them is told of the arguments that were typed.
        let mut option = |name: &str, value: String, quoted: String| {
            let change = format!("fabric.topology.{name}={quoted}").parse::<Override>().map_err(Error::msg)?;
            changes.push(change.typed_as(format!("--{name} {value}")));
            Ok::<_, Error>(())
        };
        if let Some(shape) = &self.shape {
            option("shape", shape.clone(), format!("\"{shape}\""))?;
        }
        if !sized_by_hosts {
            for (name, number) in [("nodes", self.nodes), ("racks", self.racks), ("cores", self.cores)] {
                if let Some(number) = number {
                    option(name, number.to_string(), number.to_string())?;
                }
            }
        }
        if let Some(file) = &self.graph {
            let change = "fabric.topology.shape=\"graph\"".parse::<Override>().map_err(Error::msg)?;
            changes.push(change.typed_as(format!("--graph {}", file.display())));
            changes.push(file_override("file", "--graph", file)?);
        }
        if let Some(file) = &self.lfts {
            changes.push(file_override("lfts", "--lfts", file)?);
        }
        for given in &self.overrides {
            let path = given.split('=').next().unwrap_or_default();
            let whole = if path.contains('.') { given.clone() } else { format!("fabric.topology.{given}") };
            changes.push(whole.parse::<Override>().map_err(Error::msg)?.typed_as(format!("--set {given}")));
        }
        Ok(changes)
    }

    /// The network that the arguments speak of.
    pub(super) fn network(&self) -> Result<Network, Error> {
        // Racks have no number of hosts among their keys: they are as large as their workload.
        let overrides = self.changes(self.shape.as_deref() == Some("racks"))?;
        let sweep = match &self.experiment {
            Some(path) => Sweep::read(path, &overrides)?,
            None if self.shape.is_none() && self.graph.is_none() => {
                bail!("no network: name an experiment (a TOML file), a shape (--shape) or a file (--graph)")
            }
            None => Sweep::parse("[fabric]\nkind = \"store-and-forward\"\n", "arguments", &overrides)?,
        };
        let network = |experiment: &Experiment| {
            experiment.fabric.network().map(|(topology, routing, seed)| (topology.clone(), routing.clone(), seed))
        };
        let mut points = sweep.points.iter().map(|point| &point.experiment);
        let Some(experiment) = points.next() else { bail!("a sweep over nothing has no topology") };
        if points.any(|other| network(other) != network(experiment)) {
            bail!("the experiment sweeps over its topology, routing or seed: --set PATH=VALUE chooses one value");
        }
        let Some((config, routing, seed)) = experiment.fabric.network() else {
            bail!("a fabric of kind \"{}\" has no topology of links and switches", experiment.fabric.kind());
        };
        let said =
            self.experiment.is_some() || overrides.iter().any(|change| change.text().starts_with("fabric.routing"));
        let hosts = match config {
            TopologyConfig::Racks(_) => mapping::hosts(&experiment.fabric, self.nodes, self.racks)?,
            _ => Vec::new(),
        };
        let topology = config.build(&hosts).map_err(|error| self.wrong(&overrides, &error.to_string()))?;
        for warning in topology.warnings() {
            trace::stderr::print(format!("replay: {warning}"));
        }
        Ok(Network {
            topology,
            shape: config.shape(),
            routing: said.then(|| routing.clone()),
            seed,
            source: self.experiment.clone(),
            overrides,
        })
    }

    /// An error at the place in the experiment where its key stands.
    fn wrong(&self, overrides: &[Override], message: &str) -> Error {
        wrong(self.experiment.as_deref(), overrides, message)
    }
}

impl Network {
    /// The routing `asked` for on the command line, else the experiment's, else the file's, else dor on meshes and tori and d-mod-k
    /// on anything else.
    pub(super) fn routes(&self, asked: Option<&str>, seed: u64) -> Result<Routes, Error> {
        self.routes_by(&self.routing_config(asked)?, asked.is_some(), seed)
    }

    /// Which routing that is.
    pub(super) fn routing_config(&self, asked: Option<&str>) -> Result<RoutingConfig, Error> {
        if let Some(name) = asked {
            let read = toml::Value::String(name.to_owned()).try_into::<RoutingConfig>();
            return read.map_err(|error| Error::msg(format!("--routing {name}: {}", error.message())));
        }
        let usual = || match self.topology.structure() {
            _ if self.topology.has_routes() => RoutingConfig::File,
            Structure::Grid(_) | Structure::Lattice(_) => RoutingConfig::Dor,
            Structure::Tree(_) | Structure::Any => RoutingConfig::DModK,
        };
        Ok(self.routing.clone().unwrap_or_else(usual))
    }

    /// The routing `config`. One that was `asked` for goes before that of the topology's file.
    pub(super) fn routes_by(&self, config: &RoutingConfig, asked: bool, seed: u64) -> Result<Routes, Error> {
        let routes = if asked {
            if self.topology.has_routes() && *config != RoutingConfig::File {
                let left_out = "the routes of the topology's file are left out";
                trace::stderr::print(format!("replay: --routing {config}: {left_out}"));
            }
            Routes::ignoring_file(config, &self.topology, seed)
        } else {
            Routes::new(config, &self.topology, seed)
        };
        routes.map_err(|error| self.wrong(&error.to_string()))
    }

    /// An error at the place in the experiment where its key stands.
    pub(super) fn wrong(&self, message: &str) -> Error {
        wrong(self.source.as_deref(), &self.overrides, message)
    }
}

fn wrong(source: Option<&Path>, overrides: &[Override], message: &str) -> Error {
    match source {
        Some(path) => Experiment::wrong(path, overrides, message).into(),
        None => Error::msg(message.to_owned()),
    }
}

/// The key of the topology that names a file, typed as `option`.
fn file_override(key: &str, option: &str, file: &Path) -> Result<Override, Error> {
    let named = file.to_str().with_context(|| format!("{option} {}: the name is not UTF-8", file.display()))?;
    let value = toml::Value::String(named.to_owned());
    let change = format!("fabric.topology.{key}={value}").parse::<Override>().map_err(Error::msg)?;
    Ok(change.typed_as(format!("{option} {named}")))
}

/// Writes a file, and makes its folder where it is missing.
pub(super) fn write(path: &Path, text: &str) -> Result<(), Error> {
    let named = || format!("cannot write {}", path.display());
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(named)?;
    }
    std::fs::write(path, text).with_context(named)
}
