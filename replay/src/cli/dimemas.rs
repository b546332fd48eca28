//! `dimemas`.

use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Error, anyhow};
use clap::Args;
use netsim::units::DurationPs;
use replay::dimemas::mapping::{self, TaskMapping};
use replay::dimemas::{Ended, Server, ServerConfig};
use replay::experiment::{Experiment, Override};

use super::common::FOUND_WRONG;

#[derive(Debug, Args)]
pub(super) struct DimemasArgs {
    /// The fabric: an experiment's TOML file, or a name that `replay experiments` lists; its [fabric] table counts.
    fabric: PathBuf,
    /// Where to listen: a host's name or address and a port, or a port alone (of 127.0.0.1). Dimemas is told the same.
    #[arg(long, value_name = "[HOST:]PORT", default_value = "127.0.0.1:4242", value_parser = address)]
    listen: SocketAddr,
    /// How many nodes the fabric has [default: the nodes of a fat-tree, else 256].
    #[arg(long, value_name = "N")]
    nodes: Option<u32>,
    /// How many racks they are spread over, evenly [default: those of a fat-tree, the fibers of LIGHTNESS; else two ToRs
    /// back to back have two, LIGHTNESS one for each node, other fabrics one].
    #[arg(long, value_name = "N")]
    racks: Option<u32>,
    /// A file with "task node" in each line [default: dispatcher.taskFilename of the fabric's file; without that, task n is
    /// on node n].
    #[arg(long, value_name = "FILE")]
    task_mapping: Option<PathBuf>,
    /// How long to wait for a client's next line before it is given up, with its unit: 500ms, 60s.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    timeout: Duration,
    /// How many clients are served at once, each on a network of its own; further ones are turned away.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1_024))]
    clients: u16,
    /// Ends after one client; exit code 1 if that one did not end with FINISH.
    #[arg(long)]
    once: bool,
    /// Answers a STOP with `STOP` and its time once the simulation has come to it with nothing complete, as LIGHTNESS' deliverable
    /// describes it.
    #[arg(long)]
    answer_stop: bool,
    /// Replaces a value of the file by its path; may be given more than once.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    overrides: Vec<Override>,
}

/// A port, or a host and a port. Of a name's addresses IPv4 is taken first, as Dimemas knows no other.
fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse::<u16>() {
        return Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    }
    if !text.contains(':') {
        return Err(
            "neither a port nor a host with a port: write it like 4242, localhost:4242 or [::1]:4242".to_owned()
        );
    }
    let addresses: Vec<SocketAddr> = text.to_socket_addrs().map_err(|error| error.to_string())?.collect();
    let first = addresses.iter().find(|address| address.is_ipv4()).or(addresses.first());
    first.copied().ok_or_else(|| "the name has no address".to_owned())
}

fn duration(text: &str) -> Result<Duration, String> {
    let parsed: DurationPs = text.parse().map_err(|error| format!("{error}"))?;
    let duration = Duration::from_nanos(parsed.ps() / 1_000);
    if duration < Duration::from_millis(1) {
        return Err("at least 1ms".to_owned());
    }
    Ok(duration)
}

/// Serves Dimemas.
pub(super) fn serve(args: DimemasArgs) -> Result<ExitCode, Error> {
    let experiment = Experiment::read(&args.fabric, &args.overrides)?;
    let hosts = mapping::hosts(&experiment.fabric, args.nodes, args.racks)?;
    let nodes = u32::try_from(hosts.len())?;
    let mapping = match args.task_mapping.as_deref().or(experiment.dispatcher.mapping_file()) {
        Some(path) => TaskMapping::read(path, nodes)?,
        None => TaskMapping::default(),
    };
    let config = ServerConfig {
        fabric: experiment.fabric,
        hosts,
        mapping,
        timeout: args.timeout,
        answers_stops: args.answer_stop,
    };
    let server = Server::bind(args.listen, config).map_err(|error| match error {
        replay::dimemas::BindError::Fabric(error) => {
            Experiment::wrong(&args.fabric, &args.overrides, &error.to_string()).into()
        }
        other => Error::from(other),
    })?;
    let address = server.address()?;
    trace::stderr::print(format!("replay: {} with {nodes} nodes: listening on {address}", experiment.name));
    let log = |text: &str| trace::stderr::print(format!("replay: {text}"));
    let no_more = |error| anyhow!("no client can be accepted on {address}: {error}");
    if !args.once {
        match server.serve(args.clients.into(), log).map_err(no_more)? {}
    }
    Ok(match server.serve_one(log).map_err(no_more)? {
        Ended::Finished { .. } => ExitCode::SUCCESS,
        Ended::Broken(_) => ExitCode::from(FOUND_WRONG),
    })
}
