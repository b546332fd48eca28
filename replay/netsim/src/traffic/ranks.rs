//! One run by several processes (ranks), of which each has a part of the network.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::run::{Planned, TrafficRun, TrafficRunError, in_order, planned};
use super::sources::{HostSources, Sending};
use super::windows::{Outcome, drive};
use super::{Progress, RunOptions, TrafficConfig, TrafficError};
use crate::cost::{memory_peak_bytes, thread_cpu_s};
use crate::fabric::FabricKind;
use crate::fabric::hop_records::HopRecords;
use crate::fabric::store_and_forward::windows::Windowed as Network;
use crate::fabric::windowed::{Windowed, Windowing};
use crate::fabric::windows::{Carrier, WindowsWanted};
use crate::network::HostIndex;
use crate::statistics::{Cost, Meter, RunFigures};

/// What ranks are to run: what whoever starts them writes as JSON to the standard input of the first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankOrder {
    /// The traffic, as TOML.
    pub traffic: String,
    /// The fabric, as TOML. All ranks must find the files that it names.
    pub fabric: String,
    /// The seed.
    pub seed: u64,
    /// Whether it is counted what each host sends each other one.
    pub pairs: bool,
    /// How much memory all ranks of one machine may hold together, bytes; `None` = nine tenths of what is available there.
    pub memory_bytes: Option<u64>,
}

/// What came of it: what the first of them writes as JSON to its standard output.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum RankAnswer {
    /// The run, without its packets.
    Done(Box<TrafficRun>),
    /// Why there is none.
    Failed(String),
}

/// What a rank is about to run.
struct Prepared {
    network: Box<Network>,
    planned: Planned,
    meter: Meter,
}

/// Runs `traffic` over the fabric of `config` by the ranks of `carrier`, which all call this with the same arguments. Rank 0 has the outcome. `stop` and
/// `progress` are those of rank 0, too; its cost is that of rank 0 alone.
///
/// # Errors
/// As [`run_on`](super::run_on); if the fabric or the network is not one for so many ranks; if one of them cannot run it, or has found something else in
/// the files that are named. Either none of the ranks has an error, or each has one, and none has begun.
pub fn run_on_ranks(
    traffic: &TrafficConfig,
    config: &impl FabricKind,
    seed: u64,
    options: RunOptions,
    mut carrier: impl Carrier,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<Option<TrafficRun>, TrafficRunError> {
    let began = (Instant::now(), thread_cpu_s());
    let ranks = carrier.ranks();
    let prepared = prepare(traffic, config, seed, options, ranks);
    let Prepared { network, planned, meter } = agreed(&mut carrier, prepared)?;
    let Planned { mut plan, link, sending, others_cpu_s } = planned;
    let messages = |hosts: &[HostIndex]| HostSources::new(&sending, hosts);
    let Some(rank) = network.into_rank(carrier, &sending.packet_bytes(&link), messages) else {
        return Err(TrafficRunError::TooManyRanks(ranks));
    };
    if rank.number() > 0 {
        rank.serve();
        return Ok(None);
    }
    let Outcome { raw, meter, records, cpu_s, parallel } = drive(rank.into_head(meter), &plan, stop, progress);
    (plan.from_ps, plan.until_ps) = raw.measured_ps;
    let cost = Cost {
        wall_s: began.0.elapsed().as_secs_f64(),
        cpu_s: thread_cpu_s() - began.1 + cpu_s + others_cpu_s,
        memory_peak_bytes: memory_peak_bytes(),
        parallel: Some(parallel),
    };
    let figures = RunFigures::new(&plan, &meter, raw, seed, cost);
    Ok(Some(TrafficRun { plan, figures, packets: in_order(records), hops: HopRecords::default(), by_events: None }))
}

fn prepare(
    traffic: &TrafficConfig,
    config: &impl FabricKind,
    seed: u64,
    options: RunOptions,
    ranks: usize,
) -> Result<Prepared, TrafficRunError> {
    if let Some(key) = traffic.asks_back() {
        return Err(TrafficError::key(key, "ranks do not know it: leave them out".to_owned()).into());
    }
    let wanted = WindowsWanted { threads: ranks, always: true, asks_back: None };
    let Windowing::Windows(Windowed::StoreAndForward(network)) = config.windowed(&traffic.places(), wanted)? else {
        return Err(TrafficRunError::NoRanks);
    };
    let planned = planned(traffic, network.link_time(), network.hosts(), seed, 1)?;
    let meter = traffic.meter(&planned.plan, config, seed, options)?;
    Ok(Prepared { network, planned, meter })
}

/// What this rank is about to run, if all ranks can, and are about to run the same.
fn agreed(
    carrier: &mut impl Carrier,
    prepared: Result<Prepared, TrafficRunError>,
) -> Result<Prepared, TrafficRunError> {
    let letter = match &prepared {
        Ok(prepared) => [&[READY][..], &prepared.digest().to_le_bytes()].concat(),
        Err(error) => [&[UNABLE][..], error.to_string().as_bytes()].concat(),
    };
    let letters = carrier.exchange(vec![letter; carrier.ranks()]);
    let prepared = prepared?;
    for (rank, letter) in letters.iter().enumerate() {
        match letter.split_first() {
            Some((&READY, _)) if *letter == letters[0] => {}
            Some((&UNABLE, reason)) => {
                return Err(TrafficRunError::Rank { rank, reason: String::from_utf8_lossy(reason).into_owned() });
            }
            _ => return Err(TrafficRunError::UnequalRanks(rank)),
        }
    }
    Ok(prepared)
}

/// How the letters begin that ranks write before they run.
const READY: u8 = 0;
const UNABLE: u8 = 1;

impl Prepared {
    /// By which ranks see whether they have the same before them: the order is, but the files that it names are each machine's own.
    fn digest(&self) -> u64 {
        let mut digest = DefaultHasher::new();
        self.network.hash_into(&mut digest);
        format!("{:?}", self.planned.plan).hash(&mut digest);
        match &self.planned.sending {
            Sending::Drawn(drawing) => format!("{:?}", drawing.destinations).hash(&mut digest),
            Sending::Table { messages, .. } => messages.hash(&mut digest),
        }
        digest.finish()
    }
}
