//! Turns the frames of one interface into records, and says what became of each.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use trace::agent::now_ns;
use trace::capture_note::{CaptureNote, CaptureNoteKind};
use trace::manifest::PacketCounts;
use trace::packet::{Direction, Packet, PlainPacket, Sack};

use crate::capture::CaptureSettings;
use crate::counters::Counters;
use crate::follow::Shared;
use crate::frame::{Frame, LinkLayer, Plain, parse, plain};
use crate::interfaces::{self, OwnAddresses};
use crate::keep::{Endpoint, FlowDirection, Keeper};
use crate::pcapng::PcapngSink;
use crate::pending::{PendingPackets, Released};
use crate::ports::Followed;
use crate::recording::Recording;
use crate::redact::{self, Redactor, Secrets};
use crate::sink::PacketSink;

/// Turns frames into records.
pub struct Recorder {
    link: LinkLayer,
    loopback: bool,
    own: OwnAddresses,
    own_read: Instant,
    keeper: Keeper,
    redactor: Option<Redactor>,
    sink: PacketSink,
    pcapng: Option<PcapngSink>,
    names: Option<Arc<Shared>>,
    names_version: u64,
    named: Arc<Followed>,
    counters: Arc<Counters>,
    followed: Option<Arc<Followed>>,
    pending: PendingPackets,
    began: Instant,
    now_ns: u64,
    packet: Packet,
    counts: PacketCounts,
    until_ns: u64,
    is_past_the_end: bool,
}

impl Recorder {
    /// For an interface with this link layer.
    #[must_use]
    pub fn new(recording: Recording, link: LinkLayer, settings: &CaptureSettings) -> Self {
        let nobody = SocketAddr::from(([0, 0, 0, 0], 0));
        Self {
            link,
            loopback: recording.interface.loopback,
            own: recording.own,
            own_read: Instant::now(),
            keeper: Keeper::new(settings.keep),
            redactor: (settings.secrets == Secrets::Blank).then(Redactor::default),
            sink: recording.sink,
            pcapng: recording.pcapng,
            names: recording.names,
            names_version: 0,
            named: Arc::default(),
            counters: recording.counters,
            followed: recording.following.map(|shared| shared.followed()),
            pending: PendingPackets::new(settings.hold),
            began: Instant::now(),
            now_ns: 0,
            packet: Packet {
                time_ns: 0,
                direction: Direction::Foreign,
                source: nobody,
                destination: nobody,
                raw_length: 0,
                payload_length: 0,
                sequence: 0,
                acknowledgement: 0,
                flags: 0,
                window: 0,
                sack: Sack::default(),
                payload: Vec::new(),
            },
            counts: PacketCounts::default(),
            until_ns: u64::MAX,
            is_past_the_end: false,
        }
    }

    /// Takes a frame, of `wire_length` bytes before it was cut.
    pub fn take(&mut self, time_ns: u64, frame: &[u8], wire_length: u32) {
        if time_ns > self.until_ns {
            self.is_past_the_end = true;
            return;
        }
        if let Some(plain) = plain(self.link, frame)
            && self.take_plain(time_ns, &plain, wire_length)
        {
            return;
        }
        let segment = match parse(self.link, frame, wire_length) {
            Frame::Tcp(segment) => segment,
            Frame::Other => {
                self.counts.other += 1;
                return;
            }
            Frame::Unparsed => {
                self.counts.unparsed += 1;
                return;
            }
        };
        let is_held = match &self.followed {
            None => false,
            Some(followed) if followed.has(segment.source, segment.destination) => false,
            Some(followed) if followed.may_have(segment.source, segment.destination) => true,
            Some(_) => {
                self.counts.unfollowed += 1;
                return;
            }
        };
        let keep =
            self.keeper.keep(time_ns, segment.source, segment.destination, segment.flags, segment.payload_length);
        let packet = &mut self.packet;
        packet.payload.clear();
        packet.payload.extend_from_slice(&segment.payload[..segment.payload.len().min(keep)]);
        packet.time_ns = time_ns;
        packet.source = segment.source;
        packet.destination = segment.destination;
        packet.raw_length = wire_length;
        packet.payload_length = segment.payload_length;
        packet.sequence = segment.sequence;
        packet.acknowledgement = segment.acknowledgement;
        packet.flags = segment.flags;
        packet.window = segment.window;
        packet.sack = segment.sack;
        if packet.payload.len() < keep.min(segment.payload_length as usize) {
            self.counts.truncated += 1;
        }
        self.packet.direction = self.direction(segment.source.ip(), segment.destination.ip());
        if let Some(redactor) = &mut self.redactor {
            let flow = || FlowDirection::between(Endpoint::of(segment.source), Endpoint::of(segment.destination));
            let place =
                redact::Segment { sequence: segment.sequence, length: segment.payload_length, flags: segment.flags };
            self.counts.blanked_bytes += redactor.redact(flow, place, &mut self.packet.payload);
        }
        let mut shown = Vec::new();
        if self.pcapng.is_some() {
            // What pcapng shows is what is recorded: the headers, and as much payload as is kept.
            shown.extend_from_slice(&frame[..segment.payload_at.min(frame.len())]);
            shown.extend_from_slice(&self.packet.payload);
        }
        if is_held {
            let released = self.pending.hold(self.now_ns, &self.packet, &shown);
            self.give_up(released);
        } else {
            self.write(&shown);
        }
    }

    /// The short way for what nearly every frame is, where nothing but its record is wanted of it. False: it has to go the
    /// long way, and nothing was done.
    #[inline]
    fn take_plain(&mut self, time_ns: u64, plain: &Plain<'_>, wire_length: u32) -> bool {
        let is_followed =
            self.followed.as_ref().is_none_or(|followed| followed.has_port(plain.source_port, plain.destination_port));
        if !is_followed || plain.may_have_sack() || self.pcapng.is_some() {
            return false;
        }
        let direction =
            if self.loopback { Direction::Loopback } else { self.own.direction_v4(plain.source, plain.destination) };
        // The host's addresses may have to be read again.
        if direction == Direction::Foreign {
            return false;
        }
        let source = Endpoint::of_v4(plain.source, plain.source_port);
        let destination = Endpoint::of_v4(plain.destination, plain.destination_port);
        let keep = self.keeper.keep_between(time_ns, source, destination, plain.flags, plain.payload_length);
        let payload = &plain.payload[..plain.payload.len().min(keep)];
        if payload.len() < keep.min(plain.payload_length as usize) {
            self.counts.truncated += 1;
        }
        let (payload, blanked) = match &mut self.redactor {
            Some(redactor) => {
                let place =
                    redact::Segment { sequence: plain.sequence, length: plain.payload_length, flags: plain.flags };
                redactor.redacted(|| FlowDirection::between(source, destination), place, payload)
            }
            None => (payload, 0),
        };
        self.counts.blanked_bytes += blanked;
        self.sink.write_plain(&PlainPacket {
            time_ns,
            direction,
            source: plain.source,
            source_port: plain.source_port,
            destination: plain.destination,
            destination_port: plain.destination_port,
            raw_length: wire_length,
            payload_length: plain.payload_length,
            sequence: plain.sequence,
            acknowledgement: plain.acknowledgement,
            flags: plain.flags,
            window: plain.window,
            payload,
        });
        self.counts.packets += 1;
        true
    }

    /// What is followed has changed: what was held is looked at again.
    pub fn follow(&mut self, followed: &Arc<Followed>) {
        let claimed = self.pending.claim(|packet| followed.has(packet.source, packet.destination));
        self.followed = Some(Arc::clone(followed));
        for (packet, frame) in claimed {
            self.packet = packet;
            self.write(&frame);
        }
    }

    /// Gives up what was held long enough. Also tells the recorder what time it is.
    pub fn expire(&mut self) {
        self.now_ns = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let released = self.pending.expire(self.now_ns);
        self.give_up(released);
    }

    fn give_up(&mut self, released: Released) {
        self.counts.unfollowed += released.unfollowed;
        self.counts.undecided += released.undecided;
        if released.undecided > 0 {
            self.counters.note(
                "packets of ports that nobody had told of yet were given up, because too many had to be held: raise \
                 --hold-memory, or record everything"
                    .to_owned(),
            );
            self.note_between(CaptureNoteKind::Undecided, released.first_undecided_ns, released.undecided, 0);
        }
    }

    fn write(&mut self, frame: &[u8]) {
        match self.sink.write(&self.packet) {
            Ok(()) => self.counts.packets += 1,
            Err(error) => self.counters.note(format!("a packet cannot be recorded: {error}")),
        }
        if let Some(pcapng) = &mut self.pcapng {
            if let Some(names) = &self.names
                && names.version() != self.names_version
            {
                self.names_version = names.version();
                self.named = names.followed();
            }
            pcapng.write(&self.packet, frame, self.named.owner(self.packet.local(), self.packet.remote()));
        }
    }

    /// Notes what happened since `from_ns`, if it did: drops of no packet are none.
    pub fn note(&mut self, kind: CaptureNoteKind, from_ns: u64, count: u64, step_ns: i64) {
        match kind {
            CaptureNoteKind::KernelDrops => self.counts.kernel_drops += count,
            CaptureNoteKind::InterfaceDrops => self.counts.interface_drops += count,
            _ => {}
        }
        if count > 0 || step_ns != 0 || matches!(kind, CaptureNoteKind::Vanished | CaptureNoteKind::End) {
            self.note_between(kind, from_ns, count, step_ns);
        }
    }

    fn note_between(&mut self, kind: CaptureNoteKind, from_ns: u64, count: u64, step_ns: i64) {
        if let Err(error) = self.sink.note(&CaptureNote { kind, from_ns, to_ns: now_ns(), count, step_ns }) {
            self.counters.note(format!("a note cannot be recorded: {error}"));
        }
    }

    /// The interface has counted so many packets.
    pub fn interface_counted(&mut self, count: u64) {
        self.counts.interface_packets = count;
    }

    /// The kernel no longer tells what the interface counted: at least what was seen of it. Returns that.
    pub fn interface_is_gone(&mut self) -> u64 {
        self.counts.interface_packets = self.counts.interface_packets.max(self.counts.accounted_for());
        self.counts.interface_packets
    }

    /// Packets that came later are none of this recording.
    pub fn until(&mut self, until_ns: u64) {
        self.until_ns = until_ns;
    }

    /// Whether such a packet was seen: everything from before has been taken then.
    #[must_use]
    pub fn is_past_the_end(&self) -> bool {
        self.is_past_the_end
    }

    /// A packet of nobody we know may be that of an address the host has just been given.
    fn direction(&mut self, source: IpAddr, destination: IpAddr) -> Direction {
        if self.loopback {
            return Direction::Loopback;
        }
        let direction = self.own.direction(source, destination);
        if direction == Direction::Foreign && self.own_read.elapsed() > Duration::from_secs(1) {
            self.own_read = Instant::now();
            if let Ok(all) = interfaces::list() {
                self.own = OwnAddresses::of(&all);
                return self.own.direction(source, destination);
            }
        }
        direction
    }

    /// Hands the records to the operating system.
    pub fn flush(&mut self) {
        self.sink.flush();
        if let Some(error) = self.sink.take_error() {
            self.counters.note(format!("packets were lost because their file could not be written: {error}"));
        }
        if let Some(pcapng) = &mut self.pcapng {
            pcapng.flush();
            if let Some(error) = pcapng.take_error() {
                self.counters.note(format!("the pcapng file lacks packets, as it could not be written: {error}"));
            }
        }
    }

    /// Whether there are records that wait to be written.
    #[must_use]
    pub fn is_waiting(&mut self) -> bool {
        self.sink.is_waiting()
    }

    /// Whether a limit of the disk was reached, at which the recording is to end.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.sink.ends_for_want_of_room()
    }

    /// Shows the counts of this thread to the others.
    pub fn publish(&mut self) {
        self.counts.unwritten = self.sink.unwritten();
        if self.redactor.as_mut().is_some_and(|redactor| redactor.take_forgotten() > 0) {
            self.counters.note(
                "more connections were open at once than are looked through for secrets: of some, what began before and \
                 ended later may be in the record"
                    .to_owned(),
            );
        }
        self.counters.publish(self.counts.with_filtered());
    }

    /// Ends the recording. What is still held may be Hadoop's: it is recorded, and dumpingd's last scan tells whose it
    /// was. An interface that vanished has no orderly end.
    pub fn end(&mut self, vanished: bool) {
        for (packet, frame) in self.pending.claim(|_| true) {
            self.packet = packet;
            self.write(&frame);
        }
        if !vanished {
            self.note(CaptureNoteKind::End, now_ns(), 0, 0);
        }
        self.flush();
        self.publish();
    }
}
