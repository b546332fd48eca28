//! The beginning of a run: everything that can fail and that needs rights.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use trace::agent::{host_name, network_namespace, now_ns, private_folder};
use trace::agent_error::AgentError;
use trace::manifest::{SnifferManifest, earlier_runs};
use trace::sandbox;
use trace::signals::Signals;

use super::error::StartError;
use super::prepared::Prepared;
use super::run::Run;
use super::settings::{FollowSettings, RunSettings};
use crate::arrivals::Arrivals;
use crate::capture::{self, OpenError, OpenInterface};
use crate::disk_quota::DiskQuota;
use crate::follow::{Follower, Shared, ephemeral_from};
use crate::hadoop_ports;
use crate::interfaces::{self, Interface, OwnAddresses};
use crate::ports::PortSet;
use crate::privileges::{self, Needs, RunAs};

/// Everything that can fail, in this order: interfaces (for want of the right nothing is written), then files, which
/// are locked.
pub(super) fn prepare(settings: &RunSettings, signals: &Signals) -> Result<Run, StartError> {
    let mut settings = settings.clone();
    let user = settings.run_as.uid().map_err(AgentError::from)?;
    let started_ns = now_ns();
    let host = host_name().map_err(AgentError::system("the host's name"))?;
    let netns = network_namespace().map_err(AgentError::system("the network namespace"))?;
    let all = interfaces::list().map_err(AgentError::system("the interfaces"))?;
    let chosen = interfaces::choose(&all, &settings.interfaces)?;

    let (mut follower, mut problems) = match &settings.follow {
        Some(follow) => begin_to_follow(follow, &settings)?,
        // Names for pcapng's comments.
        None if settings.pcapng => {
            (Some(Follower::new(&settings.out, &settings.jvm_records, PortSet::default(), 0)), Vec::new())
        }
        None => (None, Vec::new()),
    };
    let shared = follower.as_ref().filter(|_| settings.follow.is_some()).map(Follower::shared);
    let (opened, failures) = open_all(&chosen, &settings, shared.as_deref())?;
    problems.extend(failures);
    let file_error = AgentError::file(&settings.out);
    settings.out = private_folder(&settings.out, user).map_err(&file_error)?;
    // From here on with no more rights than needed: files belong to whoever goes on writing them.
    let opens_again = settings.capture.reopen || settings.new_interfaces;
    let needs = Needs { reads_others: follower.is_some(), opens_again };
    let keeps_capabilities = settings.run_as == RunAs::Keep;
    let (capabilities, walls) = sandbox::confine_around(&sandbox_for(&settings), keeps_capabilities, || {
        privileges::give_up(&settings.run_as, &settings.out, needs)
    })
    .map_err(AgentError::from)?;
    if let Some(follower) = &mut follower {
        follower.watch();
    }
    let arrivals = if settings.new_interfaces { Some(Arrivals::listen()) } else { None };
    let arrivals = arrivals.transpose().map_err(AgentError::system("which interfaces come"))?;
    let mut prepared = Vec::new();
    for (interface, open) in opened {
        prepared.push(Prepared::new(interface, open, &settings, &host, started_ns)?);
    }
    let quota = Arc::new(DiskQuota::new(&settings.out, settings.limits).map_err(file_error)?);
    quota.reserve(0).map_err(StartError::NoRoom)?;
    prepared.iter_mut().for_each(|prepared| prepared.keep_within(&quota));
    let path = settings.out.join(SnifferManifest::FILE);
    let earlier_runs = earlier_runs(&path, &mut problems);
    let keep = settings.capture.keep;
    let manifest = SnifferManifest {
        version: 1,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        host,
        netns,
        started_ns,
        filter: if settings.follow.is_some() { String::new() } else { settings.capture.filter.clone() },
        follows: settings.follow.is_some(),
        capabilities,
        sandbox: walls.standing,
        notes: walls.notes,
        snap_length: settings.capture.snap_length,
        ring_bytes: u64::from(settings.capture.ring_bytes),
        payload_bytes: keep.payload_bytes,
        full_segment_bytes: keep.full_segment_bytes,
        full_payload_bytes: keep.full_payload_bytes,
        full_payload_of: keep.full_of.name().to_owned(),
        secrets: settings.capture.secrets.name().to_owned(),
        earlier_runs,
        ..SnifferManifest::default()
    };
    Ok(Run {
        settings,
        signals: signals.clone(),
        manifest,
        path,
        prepared,
        recorded: Vec::new(),
        ended: Vec::new(),
        others: None,
        problems,
        own: OwnAddresses::of(&all),
        follower,
        followed_version: 0,
        looked: Instant::now(),
        arrivals,
        quota,
    })
}

/// What is read and written once everything is open.
fn sandbox_for(settings: &RunSettings) -> sandbox::Needs {
    // Addresses of the host and what interfaces count are asked for all the time; of new interfaces libpcap wants to know more.
    let kernel = ["/proc/self", "/proc/sys/net", "/sys/class/net", "/sys/devices"];
    let mut reads: Vec<PathBuf> = kernel.iter().map(PathBuf::from).collect();
    reads.push(settings.jvm_records.clone());
    sandbox::Needs { reads, writes: vec![settings.out.clone()], ..sandbox::Needs::default() }
}

/// The ports of the configurations and defaults, and a look at what is told already. Second value: what could not be used.
fn begin_to_follow(
    follow: &FollowSettings,
    settings: &RunSettings,
) -> Result<(Option<Follower>, Vec<String>), StartError> {
    let mut base: PortSet = follow.ports.iter().copied().collect();
    base.extend(&hadoop_ports::defaults());
    let mut problems = Vec::new();
    for path in &follow.configurations {
        let read = hadoop_ports::read_folder(path)
            .map_err(|source| StartError::Configuration { path: path.clone(), source })?;
        base.extend(&read.ports);
        problems.extend(read.problems);
    }
    Ok((Some(Follower::new(&settings.out, &settings.jvm_records, base, ephemeral_from())), problems))
}

type Opened = Vec<(Interface, OpenInterface)>;

/// A named interface has to open; of all that are up, one that cannot be opened is a problem to tell, unless all fail.
fn open_all(
    chosen: &[Interface],
    settings: &RunSettings,
    following: Option<&Shared>,
) -> Result<(Opened, Vec<String>), StartError> {
    let mut opened = Vec::new();
    let mut failures = Vec::new();
    for interface in chosen {
        match capture::open(interface, &settings.capture, following) {
            Ok(open) => opened.push((interface.clone(), open)),
            Err(error @ (OpenError::Permission { .. } | OpenError::Filter { .. })) => return Err(error.into()),
            Err(error) if !settings.interfaces.is_empty() => return Err(error.into()),
            Err(error) => failures.push(error),
        }
    }
    if opened.is_empty()
        && let Some(error) = failures.pop()
    {
        return Err(error.into());
    }
    Ok((opened, failures.iter().map(ToString::to_string).collect()))
}
