//! Writing a digest.

use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};

use serde::Serialize;
use trace::packet::flag;

use super::{BLOCK_PACKETS, DigestError, END, Head, MAGIC, MAX_HEAD_BYTES, MAX_RECORD_BYTES, VERSION};
use crate::capture::host::HostCapture;
use crate::capture::observed::{Context, MAX_HEAD, Observed};
use crate::capture::settled::FlowPackets;
use crate::capture::store::Packets;
use crate::varint;
use crate::volume::Volume;

/// Of zstd: 3 packs at some hundred megabytes a second.
const LEVEL: i32 = 3;

/// Writes what a host's folder holds.
pub(crate) fn write(host: &HostCapture, out: impl Write) -> Result<(), DigestError> {
    let mut packed = zstd::Encoder::new(out, LEVEL)?;
    packed.include_checksum(true)?;
    let mut out = io::BufWriter::with_capacity(1 << 17, packed);
    let head = Head {
        version: VERSION,
        host: host.name.clone(),
        netns: host.netns,
        rack: host.rack.clone(),
        addresses: host.addresses.clone(),
        recorded_ns: host.recorded_ns,
        named: host.named.clone(),
        losses: host.losses.clone(),
        notes: host.notes.clone(),
        volume: volume(host)?,
    };
    out.write_all(MAGIC)?;
    let head = serde_json::to_vec(&head).map_err(io::Error::from)?;
    let length = u32::try_from(head.len()).ok().filter(|length| *length as usize <= MAX_HEAD_BYTES);
    let length = length.ok_or_else(|| DigestError::Senseless("losses and notes of more than 64 MiB".into()))?;
    out.write_all(&length.to_le_bytes())?;
    out.write_all(&head)?;
    records(&mut out, host.sockets.len(), host.sockets.iter())?;
    host.sockets.check()?;
    number(&mut out, host.jvms.len() as u64)?;
    for jvm in &host.jvms {
        record(&mut out, jvm)?;
        records(&mut out, jvm.records.len(), jvm.records.iter())?;
        jvm.records.check()?;
    }
    flows(&mut out, &host.packets)?;
    out.write_all(END)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.finish()?;
    Ok(())
}

fn number(out: &mut impl Write, number: u64) -> io::Result<()> {
    let mut bytes = [0; varint::MAX_BYTES];
    let length = varint::put(&mut bytes, number);
    out.write_all(&bytes[..length])
}

fn records(
    out: &mut impl Write,
    count: usize,
    records: impl IntoIterator<Item = impl Serialize>,
) -> Result<(), DigestError> {
    number(out, count as u64)?;
    records.into_iter().try_for_each(|each| record(out, &each))
}

fn record<T: Serialize>(out: &mut impl Write, record: &T) -> Result<(), DigestError> {
    let text = serde_json::to_vec(record).map_err(io::Error::from)?;
    if text.len() > MAX_RECORD_BYTES {
        return Err(DigestError::Senseless(format!("a record of {} bytes", text.len())));
    }
    number(out, text.len() as u64)?;
    out.write_all(&text)?;
    Ok(())
}

fn flows(out: &mut impl Write, packets: &Packets) -> io::Result<()> {
    number(out, packets.flow_count() as u64)?;
    let mut columns = Columns::default();
    for flow in packets.stored() {
        let (key, flow) = flow?;
        address(out, key.low())?;
        address(out, key.high())?;
        number(out, flow.packets.len() as u64)?;
        let mut context = Context::default();
        for block in flow.packets.chunks(BLOCK_PACKETS as usize) {
            for packet in block {
                columns.add(&mut context, packet, flow.payload(packet));
            }
            columns.write(out)?;
        }
    }
    Ok(())
}

fn address(out: &mut impl Write, address: SocketAddr) -> io::Result<()> {
    match address.ip() {
        IpAddr::V4(ip) => {
            out.write_all(&[4])?;
            out.write_all(&ip.octets())?;
        }
        IpAddr::V6(ip) => {
            out.write_all(&[6])?;
            out.write_all(&ip.octets())?;
        }
    }
    out.write_all(&address.port().to_be_bytes())
}

/// The records of a block's packets: their first bytes, times, what else they say, and payload.
#[derive(Default)]
struct Columns {
    columns: [Vec<u8>; 4],
}

impl Columns {
    fn add(&mut self, context: &mut Context, packet: &Observed, payload: &[u8]) {
        let mut head = [0; MAX_HEAD];
        let length = context.write_head(&mut head, packet, payload.len());
        let behind_time = 2 + head[1..].iter().position(|byte| byte & 0x80 == 0).unwrap_or(0);
        let [what, times, rests, kept] = &mut self.columns;
        what.push(head[0]);
        times.extend_from_slice(&head[1..behind_time]);
        rests.extend_from_slice(&head[behind_time..length]);
        kept.extend_from_slice(payload);
    }

    fn write(&mut self, out: &mut impl Write) -> io::Result<()> {
        // There are as many first bytes as packets.
        self.columns[1..].iter().try_for_each(|column| number(out, column.len() as u64))?;
        for column in &mut self.columns {
            out.write_all(column)?;
            column.clear();
        }
        Ok(())
    }
}

/// What the digest of a host will hold.
fn volume(host: &HostCapture) -> Result<Volume, DigestError> {
    let mut volume = Volume { packets: host.packets.count, ..Volume::default() };
    for flow in host.packets.stored() {
        let (_, flow) = flow?;
        volume.connections = volume.connections.saturating_add(connections(&flow));
        volume.kept_bytes += flow.packets.iter().map(|packet| u64::from(packet.kept_length)).sum::<u64>();
    }
    (volume.socket_records, volume.socket_bytes) = (host.sockets.len() as u64, json_bytes(host.sockets.iter())?);
    for jvm in &host.jvms {
        volume.jvm_records += jvm.records.len() as u64;
        volume.jvm_bytes += json_bytes(jvm.records.iter())?;
    }
    Ok(volume)
}

/// Connections of a flow, at most: one for each packet that may begin another one.
fn connections(flow: &FlowPackets) -> u64 {
    let count = |is: &dyn Fn(u8) -> bool| flow.packets.iter().filter(|packet| is(packet.flags)).count() as u64;
    let asked = count(&|flags| flags & (flag::SYN | flag::ACK) == flag::SYN);
    let answered = count(&|flags| flags & (flag::SYN | flag::ACK) == flag::SYN | flag::ACK);
    let broken = count(&|flags| flags & flag::RST != 0);
    (asked.max(answered) + broken / 2).max(1)
}

fn json_bytes(records: impl IntoIterator<Item = impl Serialize>) -> Result<u64, DigestError> {
    let mut counted = Counted(0);
    let mut records = records.into_iter();
    records.try_for_each(|each| serde_json::to_writer(&mut counted, &each)).map_err(io::Error::from)?;
    Ok(counted.0)
}

/// How many bytes were written to it.
struct Counted(u64);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
