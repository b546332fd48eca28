//! `routing`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Error};
use clap::{Args, ValueEnum};
use netsim::files;
use netsim::routing::{DeadlockFreedom, MAX_TABLE_FILE, Routes, RoutingError, Survey};
use netsim::topology::Tables;
use serde::Serialize;
use trace::stderr::error_chain;

use super::common::FOUND_WRONG;
use super::common::say;
use super::network::{NetworkArgs, write};

#[derive(Debug, Args)]
pub(super) struct RoutingArgs {
    #[command(flatten)]
    network: NetworkArgs,
    /// The routing that is written: file (the topology's file's), d-mod-k, shortest, dor or, on trees, up-down [default: the
    /// experiment's; without one, that of a file with routes, dor on meshes and tori, else d-mod-k].
    #[arg(long, conflicts_with = "check")]
    routing: Option<String>,
    /// Reads this routing file and checks it, in place of writing one.
    #[arg(long, value_name = "FILE", conflicts_with = "out")]
    check: Option<PathBuf>,
    /// How the routing is written [default: by the end of the file's name, .dot, .gv, .lfts or .fdbs; else table].
    #[arg(long, conflicts_with = "check")]
    format: Option<Written>,
    /// Writes the routing file here and prints what it comes to; without it, the file is printed.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Prints what the routing comes to as one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Written {
    /// LIGHTNESS' routing file.
    Table,
    /// The topology as a DOT digraph with routes in "comment", as ORCS reads them; can be read as shape "graph".
    Dot,
    /// Forwarding tables as OpenSM dumps them; they go with replay topology's ibnetdiscover and lst.
    Lfts,
    /// Forwarding tables as ibdiagnet writes them (ibdiagnet.fdbs); they go with the same.
    Fdbs,
}

impl Written {
    fn of(path: Option<&Path>) -> Self {
        match path.and_then(Path::extension).and_then(|end| end.to_str()) {
            Some("dot" | "gv") => Self::Dot,
            Some("lfts") => Self::Lfts,
            Some("fdbs") => Self::Fdbs,
            _ => Self::Table,
        }
    }
}

/// What a routing comes to.
#[derive(Debug, Serialize)]
struct Checked {
    /// What was looked at.
    routing: String,
    hosts: u32,
    switches: u32,
    /// Null if it is not known for the mistake.
    ways: Option<Survey>,
    /// Whether links can never wait for each other for ever.
    deadlock_free: bool,
    /// Why it is free of deadlock.
    why: Option<String>,
    /// What is wrong.
    mistake: Option<String>,
}

/// Writes a routing file, or checks one.
pub(super) fn show(args: &RoutingArgs) -> Result<ExitCode, Error> {
    let network = args.network.network()?;
    let topology = &network.topology;
    let routes = match &args.check {
        Some(path) => {
            let text = files::read_text(path, MAX_TABLE_FILE);
            let text = text.with_context(|| format!("cannot read {}", path.display()))?;
            Routes::from_table(&text, &path.display().to_string(), topology)
        }
        None => Ok(network.routes(args.routing.as_deref(), network.seed)?),
    };
    let routes = match routes {
        Ok(routes) => routes,
        Err(error @ (RoutingError::Loop { .. } | RoutingError::NoWay { .. } | RoutingError::Line { .. })) => {
            let file = args.check.as_ref().map(|path| path.display().to_string());
            let checked = Checked {
                routing: file.unwrap_or_default(),
                hosts: topology.hosts(),
                switches: topology.switches(),
                ways: None,
                deadlock_free: false,
                why: None,
                mistake: Some(error.to_string()),
            };
            return tell(args, &checked);
        }
        Err(other) => return Err(other.into()),
    };
    if args.check.is_none() {
        let text = match args.format.unwrap_or(Written::of(args.out.as_deref())) {
            Written::Table => routes.to_table(topology),
            Written::Dot => routes.to_dot(topology),
            Written::Lfts => routes.to_lfts(topology, Tables::Lfts),
            Written::Fdbs => routes.to_lfts(topology, Tables::Fdbs),
        };
        let text = text.map_err(|error| network.wrong(&error.to_string()))?;
        match &args.out {
            Some(path) => write(path, &text)?,
            None if args.json => {}
            None => {
                say(text.trim_end())?;
                return Ok(ExitCode::SUCCESS);
            }
        }
    }
    let deadlock_freedom = if args.check.is_some() || routes.classes() == 1 {
        routes.deadlock_freedom(topology)
    } else {
        // What is written knows no classes of virtual lanes.
        Routes::from_table(&routes.to_table(topology)?, &routes.config().to_string(), topology)?
            .deadlock_freedom(topology)
    };
    let (free, why, mistake) = match &deadlock_freedom {
        Ok(deadlock_freedom) => {
            (*deadlock_freedom != DeadlockFreedom::Bubble, Some(deadlock_freedom.to_string()), None)
        }
        Err(error) => (false, None, Some(error_chain(error))),
    };
    let checked = Checked {
        routing: match &args.check {
            Some(path) => path.display().to_string(),
            None => routes.config().to_string(),
        },
        hosts: topology.hosts(),
        switches: topology.switches(),
        ways: Some(routes.survey(topology)?),
        deadlock_free: free,
        why,
        mistake,
    };
    tell(args, &checked)
}

/// Prints what a routing comes to.
fn tell(args: &RoutingArgs, checked: &Checked) -> Result<ExitCode, Error> {
    if args.json {
        say(&serde_json::to_string_pretty(checked)?)?;
    } else {
        let mut text =
            format!("routing   {}\nhosts     {}\nswitches  {}\n", checked.routing, checked.hosts, checked.switches);
        if let Some(ways) = &checked.ways {
            let mean = ways.mean_switches.map_or("–".to_owned(), |mean| format!("{mean:.4}"));
            text += &format!(
                "ways      {}, one for each pair of hosts: {mean} switches in the mean, {} at most\n",
                ways.pairs, ways.most_switches
            );
            if let Some(link) = &ways.most_used {
                text += &format!("most used {link}: {} ways\n", ways.most_ways);
            }
        }
        if let Some(why) = &checked.why {
            text += &format!("deadlock  {why}\n");
        }
        if let Some(mistake) = &checked.mistake {
            text += &format!("mistake   {mistake}\n");
        }
        say(text.trim_end())?;
    }
    Ok(ExitCode::from(if checked.mistake.is_none() { 0 } else { FOUND_WRONG }))
}
