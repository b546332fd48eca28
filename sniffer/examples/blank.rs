//! Blanks the secrets of a packet file that was recorded with them: `blank FILE OUT`. To see that what is read of a capture
//! stays the same:
//!
//!   for f in CAPTURE/*/packets-*.hpk; do blank "$f" "BLANKED/${f#CAPTURE/}"; done; merger build BLANKED --out trace

use std::fs::File;
use std::io::{BufReader, BufWriter};

use anyhow::{Context, Result};
use sniffer::keep::{Endpoint, FlowDirection};
use sniffer::redact::{Redactor, Segment};
use trace::packet::{PacketReader, PacketWriter};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [from, to] = arguments.as_slice() else { anyhow::bail!("usage: blank FILE OUT") };
    let mut reader = PacketReader::new(BufReader::new(File::open(from).with_context(|| from.clone())?))?;
    let out = BufWriter::new(File::create(to).with_context(|| to.clone())?);
    let mut writer = PacketWriter::create(out, reader.header())?;
    let (mut redactor, mut blanked, mut notes) = (Redactor::default(), 0, 0);
    while let Some(mut packet) = reader.next_packet()? {
        for note in &reader.notes()[notes..] {
            writer.note(note)?;
        }
        notes = reader.notes().len();
        let flow = || FlowDirection::between(Endpoint::of(packet.source), Endpoint::of(packet.destination));
        let segment = Segment { sequence: packet.sequence, length: packet.payload_length, flags: packet.flags };
        blanked += redactor.redact(flow, segment, &mut packet.payload);
        writer.write(&packet)?;
    }
    for note in &reader.notes()[notes..] {
        writer.note(note)?;
    }
    writer.flush()?;
    trace::stderr::print(format!("{blanked} bytes of {from} blanked"));
    Ok(())
}
