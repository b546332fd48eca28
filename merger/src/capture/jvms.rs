//! What JVMs say. A JVM's file was written by a user's process and is a claim: what contradicts what the agents saw is left
//! out, and named.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::net::IpAddr;

use trace::files::{self, MAX_RECORD_BYTES};
use trace::jvm::JvmRecord;
use trace::socket::SocketRecord;

use super::host::{HostCapture, JvmFile, is_damage, own_addresses};
use super::layout::{FileKind, HostFile, HostFolder};
use super::sense;
use crate::error::MergeError;
use crate::loss::{LossKind, Note as _};
use crate::maps::HashMap;

/// Reads the file of a JVM; `None` if nothing of it can be used. Where not all is kept, the records of clocks and threads are set apart.
pub(super) fn read(
    host: &mut HostCapture,
    folder: &HostFolder,
    file: &HostFile,
    input: File,
    keeps_all: bool,
) -> Result<Option<JvmFile>, MergeError> {
    let FileKind::Jvm { pid, start_ticks, user } = file.kind else { return Ok(None) };
    let shown = folder.shown(file);
    let mut jvm = JvmFile { file: shown.clone(), pid, inner_pid: pid, start_ticks, user, ..JvmFile::default() };
    let (mut senseless, mut headers) = (0u64, Vec::new());
    let (mut dropped, mut unwritten) = (RunningCount::default(), RunningCount::default());
    let read = files::unpacked(input).and_then(|input| {
        files::parsed_lines(input, MAX_RECORD_BYTES, JvmRecord::of_line, |mut record| {
            if !sense::jvm(&mut record) {
                senseless += 1;
                return;
            }
            match &record {
                JvmRecord::Header { pid, ns_pid, start_ticks, netns, addresses, .. } => {
                    headers.push((*pid, *start_ticks));
                    jvm.inner_pid = ns_pid.last().copied().unwrap_or(*pid);
                    jvm.netns = *netns;
                    jvm.addresses.extend(own_addresses(addresses));
                }
                JvmRecord::Clock { dropped: d, unwritten: u, .. } => {
                    dropped.since(*d);
                    unwritten.since(*u);
                }
                JvmRecord::End { dropped: d, unwritten: u, .. } => {
                    dropped.in_all(*d);
                    unwritten.in_all(*u);
                    jvm.ended = true;
                }
                _ => {}
            }
            jvm.take(&record, keeps_all);
        })
    });
    match read {
        Ok(losses) => host.lost_lines(&shown, losses),
        Err(error) if is_damage(&error) => {
            host.lost(&shown, LossKind::Unusable(error.to_string()), 1);
            return Ok(None);
        }
        Err(error) => return Err(MergeError::io(folder.folder.path().join(file.path()))(error)),
    }
    host.lost(&shown, LossKind::SenselessJvmRecords, senseless);
    jvm.settle();
    if headers.iter().any(|header| *header != (pid, start_ticks)) {
        host.lost(&shown, LossKind::ForeignHeader, 1);
        return Ok(None);
    }
    // Whose it was matters: who fills his own share of the disk loses his own records.
    let place = jvm.user.map_or_else(|| host.name.clone(), |user| format!("{}/jvm/{user}", host.name));
    host.losses.lost(&place, LossKind::JvmDropped(pid), dropped.all);
    host.losses.lost(&place, LossKind::JvmUnwritten(pid), unwritten.all);
    Ok(Some(jvm))
}

/// A count that a JVM tells piece by piece, and in all when it ends.
#[derive(Default)]
struct RunningCount {
    all: u64,
}

impl RunningCount {
    fn since(&mut self, count: u64) {
        self.all = self.all.saturating_add(count);
    }

    fn in_all(&mut self, count: u64) {
        self.all = self.all.max(count);
    }
}

/// A process as dumpingd saw it.
struct SeenProcess {
    netns: u64,
    uid: u32,
}

/// Gives JVMs the pid that the machine knows them by, and leaves out those that cannot be whose they say: dumpingd saw the
/// process with another user, or another file tells of the same process.
pub(super) fn settle(host: &mut HostCapture) {
    let mut seen: HashMap<(u32, u64), SeenProcess> = HashMap::default();
    let mut inner: HashMap<(u32, u64, u64), u32> = HashMap::default();
    for record in host.sockets.iter() {
        if let SocketRecord::Process { owner, netns, uid, ns_pid, .. } = record {
            seen.insert((owner.pid, owner.start_ticks), SeenProcess { netns, uid });
            if let Some(ns_pid) = ns_pid {
                inner.insert((ns_pid, owner.start_ticks, netns), owner.pid);
            }
        }
    }
    let mut by_process: BTreeMap<(u32, u64), Vec<JvmFile>> = BTreeMap::new();
    let mut left_out = Vec::new();
    for mut jvm in std::mem::take(&mut host.jvms) {
        let same = seen.get(&(jvm.pid, jvm.start_ticks));
        let fits = same.is_some_and(|seen| jvm.netns == 0 || seen.netns == 0 || jvm.netns == seen.netns);
        let contained = if fits { None } else { inner.get(&(jvm.inner_pid, jvm.start_ticks, jvm.netns)) };
        match (contained, same) {
            (Some(pid), _) => jvm.pid = *pid,
            (None, Some(seen)) if fits && jvm.user.is_some_and(|user| user != seen.uid) => {
                left_out.push((jvm.file, LossKind::ForeignUser { pid: jvm.pid, user: seen.uid }));
                continue;
            }
            _ => {}
        }
        by_process.entry((jvm.pid, jvm.start_ticks)).or_default().push(jvm);
    }
    for (process, files) in by_process {
        let uid = seen.get(&process).map(|seen| seen.uid);
        let of_its_user = files.iter().position(|jvm| jvm.user.is_some() && jvm.user == uid).unwrap_or(0);
        for (number, jvm) in files.into_iter().enumerate() {
            if number == of_its_user {
                host.jvms.push(jvm);
            } else {
                left_out.push((jvm.file, LossKind::SecondFile));
            }
        }
    }
    for (file, kind) in left_out {
        host.lost(&file, kind, 1);
    }
    if host.netns == 0 {
        // Without a word of the agents: the one in which all JVMs are, if it is one.
        let namespaces: BTreeSet<u64> = host.jvms.iter().map(|jvm| jvm.netns).filter(|netns| *netns != 0).collect();
        host.netns = if namespaces.len() == 1 { namespaces.first().copied().unwrap_or(0) } else { 0 };
    }
    let open = host.jvms.iter().filter(|jvm| !jvm.ended).count();
    if open > 0 {
        let all = host.jvms.len();
        host.notes.push(format!(
            "{}: {open} of {all} JVMs' records have no end: what these JVMs said last may be missing",
            host.name
        ));
    }
}

/// Takes the addresses that JVMs name for hosts of which nothing surer is known; one that is another host's, or that JVMs
/// of several such hosts name, is taken for none.
pub(super) fn settle_addresses(hosts: &mut [HostCapture]) {
    let mut owners: BTreeMap<IpAddr, BTreeSet<usize>> = BTreeMap::new();
    for (number, host) in hosts.iter().enumerate() {
        for address in &host.addresses {
            owners.entry(*address).or_default().insert(number);
        }
    }
    let mut claims: BTreeMap<IpAddr, BTreeSet<usize>> = BTreeMap::new();
    for (number, host) in hosts.iter().enumerate() {
        for address in host.jvms.iter().flat_map(|jvm| &jvm.addresses) {
            claims.entry(*address).or_default().insert(number);
        }
    }
    let names: Vec<String> = hosts.iter().map(|host| host.name.clone()).collect();
    for (number, host) in hosts.iter_mut().enumerate() {
        let unknown = host.addresses.is_empty();
        let mut contradictions = Vec::new();
        for jvm in &host.jvms {
            for address in &jvm.addresses {
                let others = || claims[address].iter().chain(owners.get(address).into_iter().flatten());
                match others().find(|other| **other != number) {
                    Some(other) if !owners.get(address).is_some_and(|owners| owners.contains(&number)) => {
                        let kind = LossKind::ForeignAddress { address: *address, host: names[*other].clone() };
                        contradictions.push((jvm.file.clone(), kind));
                    }
                    None if unknown => {
                        host.addresses.insert(*address);
                    }
                    _ => {}
                }
            }
        }
        for (file, kind) in contradictions {
            host.lost(&file, kind, 1);
        }
    }
}
