//! Reading a digest, which may come from anywhere.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::net::{IpAddr, SocketAddr};

use trace::files::{self, Packing};
use trace::jvm::JvmRecord;
use trace::socket::SocketRecord;

use super::input::Input;
use super::{BLOCK_PACKETS, DigestError, END, Head, MAGIC, MAX_HEAD_BYTES, VERSION};
use crate::capture::flows::{FlowKey, canonical};
use crate::capture::host::{HostCapture, JvmFile};
use crate::capture::observed::{Context, KEPT_BYTES, MAX_HEAD, Observed};
use crate::capture::reading::Reading;
use crate::capture::sense;
use crate::progress::Meter;
use crate::varint;
use crate::volume::Volume;

/// Reads a digest into `host`, which has the name of its folder and nothing else.
///
/// # Errors
/// If it is none, of another host or version, or not whole.
pub(crate) fn read(host: &mut HostCapture, file: File, reading: &Reading<'_>) -> Result<(), DigestError> {
    let mut meter = Meter::of(&file, reading.done);
    let (head, mut input) = open(file)?;
    if head.host != host.name {
        let (theirs, ours) = (&head.host, &host.name);
        return Err(DigestError::Senseless(format!("it is of host {theirs}, and its folder is called {ours}")));
    }
    let believed = |t: u64| t <= sense::LATEST_NS;
    if head.recorded_ns.is_some_and(|(from, to)| !believed(from) || (!believed(to) && to != u64::MAX)) {
        return Err(DigestError::Senseless("the time of its recording cannot be".into()));
    }
    let sensible = |record: &mut SocketRecord| sense::socket(record);
    records(&mut input, sensible, |record| host.sockets.push(record))?;
    host.sockets.settle();
    let mut jvm_records = 0;
    for _ in 0..input.number()? {
        let mut jvm: JvmFile = input.record()?;
        let sensible = |record: &mut JvmRecord| sense::jvm(record);
        jvm_records += records(&mut input, sensible, |record| jvm.take(&record, reading.keeps_all))?;
        jvm.settle();
        host.jvms.push(jvm);
    }
    let mut block = Block::default();
    for _ in 0..input.number()? {
        flow(host, &mut input, &mut block, reading.number, &mut meter)?;
    }
    if input.array::<4>()? != *END {
        return Err(DigestError::Senseless("its end is missing".into()));
    }
    input.end()?;
    let (said, read) = (head.volume, host.packets.count);
    if (said.packets, said.socket_records, said.jvm_records) != (read, host.sockets.len() as u64, jvm_records) {
        return Err(DigestError::Senseless("it holds other numbers of packets and records than it says".into()));
    }
    host.netns = head.netns;
    host.rack = head.rack;
    host.addresses = head.addresses;
    host.recorded_ns = head.recorded_ns;
    host.named = head.named;
    host.losses = head.losses;
    host.notes = head.notes;
    Ok(())
}

/// What a digest says that it holds.
///
/// # Errors
/// If it cannot be read, or is none.
pub(crate) fn volume_of(file: File) -> io::Result<Volume> {
    match open(file) {
        Ok((head, _)) => Ok(head.volume),
        Err(DigestError::Io(error)) => Err(error),
        Err(error) => Err(io::Error::new(io::ErrorKind::InvalidData, error)),
    }
}

fn open(mut file: File) -> Result<(Head, Input), DigestError> {
    let mut first = [0; 4];
    let got = file.read(&mut first)?;
    // Packed by others, or unpacked, it would have no checksum.
    if Packing::of(&first[..got]) != Packing::Zstd {
        return Err(DigestError::NotDigest);
    }
    file.rewind()?;
    let mut input = Input::new(files::unpacked(file)?);
    if input.array::<8>()? != *MAGIC {
        return Err(DigestError::NotDigest);
    }
    let length = u32::from_le_bytes(input.array()?) as usize;
    if length > MAX_HEAD_BYTES {
        return Err(DigestError::Senseless(format!("a head of {length} bytes")));
    }
    let head: serde_json::Value = input.json(length)?;
    let version = head.get("version").and_then(serde_json::Value::as_u64).and_then(|version| version.try_into().ok());
    match version {
        Some(VERSION) => {}
        Some(other) => return Err(DigestError::Version(other)),
        None => return Err(DigestError::NotDigest),
    }
    let head = serde_json::from_value(head).map_err(|error| DigestError::Senseless(error.to_string()))?;
    Ok((head, input))
}

/// Takes records in, and says how many they are.
fn records<T: serde::de::DeserializeOwned>(
    input: &mut Input,
    sensible: impl Fn(&mut T) -> bool,
    mut take: impl FnMut(T),
) -> Result<u64, DigestError> {
    let count = input.number()?;
    for _ in 0..count {
        let mut record: T = input.record()?;
        if !sensible(&mut record) {
            return Err(DigestError::Senseless("a record with times or counts that cannot be".into()));
        }
        take(record);
    }
    Ok(count)
}

fn address(input: &mut Input) -> Result<SocketAddr, DigestError> {
    let [family] = input.array()?;
    let ip = match family {
        4 => IpAddr::from(input.array::<4>()?),
        6 => IpAddr::from(input.array::<16>()?),
        other => return Err(DigestError::Senseless(format!("an address of family {other}"))),
    };
    Ok(SocketAddr::new(ip, u16::from_be_bytes(input.array()?)))
}

/// The columns of a block.
#[derive(Default)]
struct Block {
    what: Vec<u8>,
    times: Vec<u8>,
    rests: Vec<u8>,
    kept: Vec<u8>,
}

impl Block {
    fn read(&mut self, input: &mut Input, packets: usize) -> Result<(), DigestError> {
        let times = input.length(packets * varint::MAX_BYTES)?;
        let rests = input.length(packets * MAX_HEAD)?;
        let kept = input.length(packets * KEPT_BYTES)?;
        input.bytes(packets, &mut self.what)?;
        input.bytes(times, &mut self.times)?;
        input.bytes(rests, &mut self.rests)?;
        input.bytes(kept, &mut self.kept)
    }
}

/// Reads a flow's packets into `host`.
fn flow(
    host: &mut HostCapture,
    input: &mut Input,
    block: &mut Block,
    number: usize,
    meter: &mut Meter<'_>,
) -> Result<(), DigestError> {
    let (low, high) = (address(input)?, address(input)?);
    if low > high || canonical(low) != low || canonical(high) != high {
        return Err(DigestError::Senseless(format!("packets between {low} and {high}")));
    }
    let (key, _) = FlowKey::of(low, high, number);
    let mut left = input.number()?;
    let mut context = Context::default();
    while left > 0 {
        let packets = left.min(BLOCK_PACKETS);
        left -= packets;
        block.read(input, packets as usize)?;
        let (mut times, mut rests, mut kept) = (&block.times[..], &block.rests[..], &block.kept[..]);
        for &what in &block.what {
            let packet = varint::get(&mut times).and_then(|time| context.read_behind(what, time, &mut rests));
            let packet = packet.filter(is_sensible);
            let taken = packet.and_then(|packet| Some((packet, kept.split_at_checked(packet.kept_length.into())?)));
            let Some((packet, (payload, behind))) = taken else {
                return Err(DigestError::Senseless(format!("a packet between {low} and {high}")));
            };
            kept = behind;
            host.packets.take(key, &packet, payload).map_err(DigestError::Spill)?;
            meter.packet();
        }
        if !(times.is_empty() && rests.is_empty() && kept.is_empty()) {
            return Err(DigestError::Senseless(format!("more than its packets between {low} and {high}")));
        }
    }
    Ok(())
}

fn is_sensible(packet: &Observed) -> bool {
    let kept = usize::from(packet.kept_length);
    packet.time_ns <= sense::LATEST_NS
        && packet.payload_length <= sense::MAX_SEGMENT
        && kept <= KEPT_BYTES.min(packet.payload_length as usize)
}
