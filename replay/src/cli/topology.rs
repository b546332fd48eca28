//! `topology`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Error;
use clap::{Args, ValueEnum};
use netsim::topology::{Export, Figures, Format, Graph, Ned, Topology, figures};

use super::common::say;
use super::network::{NetworkArgs, write};

#[derive(Debug, Args)]
pub(super) struct TopologyArgs {
    #[command(flatten)]
    network: NetworkArgs,
    /// How to write the topology [default: by the end of the file's name, .dot, .gv, .topo, .lst, .ned or .json; else edges].
    #[arg(long)]
    format: Option<Written>,
    /// Writes the topology to a file; without it, --format prints it in place of its figures.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Prints the figures as one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Written {
    /// One cable a line; can be read as shape "graph".
    Edges,
    /// Graphviz' language; can be read as shape "graph".
    Dot,
    /// A subnet of InfiniBand as ibnetdiscover prints it and ibsim reads it; can be read as shape "graph".
    Ibnetdiscover,
    /// A subnet of InfiniBand as ibdiagnet writes it; can be read as shape "graph".
    Lst,
    /// OMNeT++'s and OMNEST's language; gates have the numbers of ports in routing files.
    Ned,
    /// Nodes and cables as one JSON object.
    Json,
}

impl Written {
    fn of(path: &Path) -> Self {
        match path.extension().and_then(|end| end.to_str()) {
            Some("dot" | "gv") => Self::Dot,
            Some("topo") => Self::Ibnetdiscover,
            Some("lst") => Self::Lst,
            Some("ned") => Self::Ned,
            Some("json") => Self::Json,
            _ => Self::Edges,
        }
    }

    fn text(self, topology: &Topology) -> Result<String, Error> {
        if topology.has_routes() && self != Self::Dot {
            trace::stderr::print(
                "replay: the file's routes are left out: only DOT has a place for them; replay routing writes tables",
            );
        }
        Ok(match self {
            Self::Dot if topology.has_routes() => {
                Graph::routed(topology, |at, to| topology.route(at, to))?.write(Format::Dot)?
            }
            Self::Edges => Graph::of(topology).write(Format::Edges)?,
            Self::Dot => Graph::of(topology).write(Format::Dot)?,
            Self::Ibnetdiscover => Graph::of(topology).write(Format::Ibnetdiscover)?,
            Self::Lst => Graph::of(topology).write(Format::Lst)?,
            Self::Ned => Ned::of(topology)?.to_string(),
            Self::Json => serde_json::to_string(&Export(topology))?,
        })
    }
}

/// Reckons a topology, and writes it.
pub(super) fn show(args: &TopologyArgs) -> Result<ExitCode, Error> {
    let network = args.network.network()?;
    if let Some(path) = &args.out {
        write(path, &args.format.unwrap_or(Written::of(path)).text(&network.topology)?)?;
    } else if let Some(format) = args.format {
        say(format.text(&network.topology)?.trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    let figures = figures(&network.topology);
    if args.json {
        let mut object = serde_json::to_value(&figures)?;
        if let Some(object) = object.as_object_mut() {
            object.insert("shape".to_owned(), network.shape.into());
        }
        say(&serde_json::to_string_pretty(&object)?)?;
    } else {
        say(of_figures(network.shape, &figures).trim_end())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Figures for people.
fn of_figures(shape: &str, figures: &Figures) -> String {
    let number = |value: Option<String>| value.unwrap_or_else(|| "not known".to_owned());
    let rate = figures.bisection_bps.map(|bps| format!(" ({:.1} Gbit/s each way)", bps as f64 / 1e9));
    let mut text = format!(
        "shape      {shape}\n\
         hosts      {}\n\
         switches   {} with at most {} ports\n\
         cables     {} ({} links)\n\
         distance   {} switches in the mean, {} at most, between different hosts\n\
         bisection  {} cables{}\n",
        figures.hosts,
        figures.switches,
        figures.ports_max,
        figures.cables,
        2 * figures.cables,
        number(figures.mean_switches.map(|mean| format!("{mean:.4}"))),
        number(figures.diameter_switches.map(|most| most.to_string())),
        number(figures.bisection_cables.map(|cables| cables.to_string())),
        rate.unwrap_or_default(),
    );
    for level in &figures.levels {
        let ratio = level.oversubscription.filter(|_| level.up > 0);
        let ratio = ratio.map(|ratio| format!(", oversubscribed {ratio:.2} : 1")).unwrap_or_default();
        text += &format!(
            "level {}    {} switches, {} ports down, {} up{ratio}\n",
            level.level, level.switches, level.down, level.up
        );
    }
    text
}
