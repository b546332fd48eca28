//! A packet as one host saw it, and how such packets are kept: packed one after the other, in the order in which they came.
//!
//! ```text
//! record = u8 what follows, time (signed, less that of the record before),
//!          [flags u8], [window u16], [sequence number, less where the last segment of that direction ended],
//!          [acknowledgement number, less that direction's last one], [payload bytes, [kept bytes, these]], [file]
//! ```
//!
//! Numbers are LEB128, signed ones zigzag. What is as it was in that direction is left out.

use trace::packet::{PacketView, PlainPacket};

use crate::varint::{get, put, unzigzag, zigzag};

/// Payload bytes that are kept of a packet at most: what tells messages apart stands at their beginning.
pub(crate) const KEPT_BYTES: usize = 2048;

/// A packet as one host saw it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// When, nanoseconds since the epoch, on the host's clock until clocks are aligned.
    pub time_ns: u64,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgement number.
    pub acknowledgement: u32,
    /// Payload of the segment, bytes.
    pub payload_length: u32,
    /// Where its kept payload begins in what was kept of its flow.
    pub kept_start: u32,
    /// Kept payload bytes.
    pub kept_length: u16,
    /// Receive window, unscaled.
    pub window: u16,
    /// Which file it came from, to tell copies of a packet seen on two interfaces from a packet sent twice.
    pub file: u16,
    /// TCP flags (`trace::packet::flag`).
    pub flags: u8,
    /// Whether it went from the flow's lower to its higher address.
    pub forward: bool,
}

impl Observed {
    /// Of a packet, without its payload.
    pub(super) fn of(packet: &PacketView<'_>, forward: bool, file: u16) -> Self {
        Self {
            time_ns: packet.time_ns,
            sequence: packet.sequence,
            acknowledgement: packet.acknowledgement,
            payload_length: packet.payload_length,
            window: packet.window,
            flags: packet.flags,
            forward,
            kept_start: 0,
            kept_length: 0,
            file,
        }
    }

    /// As [`Observed::of`].
    #[inline]
    pub(super) fn of_plain(packet: &PlainPacket<'_>, forward: bool, file: u16) -> Self {
        Self {
            time_ns: packet.time_ns,
            sequence: packet.sequence,
            acknowledgement: packet.acknowledgement,
            payload_length: packet.payload_length,
            window: packet.window,
            flags: packet.flags,
            forward,
            kept_start: 0,
            kept_length: 0,
            file,
        }
    }

    /// Whether all bits of `flags` are set.
    #[must_use]
    pub fn has(&self, flags: u8) -> bool {
        self.flags & flags == flags
    }
}

/// What is kept of the payload of a segment, of which so many bytes were captured.
#[inline]
pub(super) fn kept(captured: &[u8], payload_length: u32) -> &[u8] {
    &captured[..captured.len().min(KEPT_BYTES).min(payload_length as usize)]
}

const FORWARD: u8 = 1;
const FLAGS: u8 = 2;
const WINDOW: u8 = 4;
const SEQUENCE: u8 = 8;
const ACKNOWLEDGEMENT: u8 = 16;
const PAYLOAD: u8 = 32;
const KEPT: u8 = 64;
const FILE: u8 = 128;

/// What a record is told against: the record before it, and the last one of each direction.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::capture) struct Context {
    time_ns: u64,
    file: u16,
    ways: [DirectionContext; 2],
}

#[derive(Clone, Copy, Debug, Default)]
struct DirectionContext {
    next: u32,
    acknowledgement: u32,
    window: u16,
    flags: u8,
}

impl Context {
    /// Appends a record.
    #[inline]
    pub fn write(&mut self, out: &mut Vec<u8>, packet: &Observed, kept: &[u8]) {
        let mut head = [0; MAX_HEAD];
        let length = self.write_head(&mut head, packet, kept.len());
        // All of it, cut back: a length that is known copies in place.
        let end = out.len() + length;
        out.extend_from_slice(&head);
        out.truncate(end);
        if !kept.is_empty() {
            out.extend_from_slice(kept);
        }
    }

    /// Writes a record up to its kept payload, and says how many bytes that takes.
    #[inline]
    pub fn write_head(&mut self, head: &mut [u8; MAX_HEAD], packet: &Observed, kept_length: usize) -> usize {
        let way = &mut self.ways[usize::from(packet.forward)];
        let sequence = packet.sequence.wrapping_sub(way.next);
        let acknowledgement = packet.acknowledgement.wrapping_sub(way.acknowledgement);
        let mut what = 0;
        let mut at = 1 + put(&mut head[1..], zigzag(packet.time_ns.wrapping_sub(self.time_ns) as i64));
        if packet.forward {
            what |= FORWARD;
        }
        if packet.flags != way.flags {
            what |= FLAGS;
            head[at] = packet.flags;
            at += 1;
        }
        if packet.window != way.window {
            what |= WINDOW;
            head[at..at + 2].copy_from_slice(&packet.window.to_le_bytes());
            at += 2;
        }
        if sequence != 0 {
            what |= SEQUENCE;
            at += put(&mut head[at..], zigzag(i64::from(sequence as i32)));
        }
        if acknowledgement != 0 {
            what |= ACKNOWLEDGEMENT;
            at += put(&mut head[at..], zigzag(i64::from(acknowledgement as i32)));
        }
        if packet.payload_length != 0 {
            what |= PAYLOAD;
            at += put(&mut head[at..], u64::from(packet.payload_length));
        }
        if packet.file != self.file {
            what |= FILE;
            at += put(&mut head[at..], u64::from(packet.file));
        }
        if kept_length != 0 {
            what |= KEPT;
            at += put(&mut head[at..], kept_length as u64);
        }
        head[0] = what;
        *way = DirectionContext {
            next: packet.sequence.wrapping_add(packet.payload_length),
            acknowledgement: packet.acknowledgement,
            window: packet.window,
            flags: packet.flags,
        };
        (self.time_ns, self.file) = (packet.time_ns, packet.file);
        at
    }

    /// Reads the record that begins at `at`, and moves `at` behind it. `None` if there is no whole one.
    #[inline]
    pub fn read(&mut self, bytes: &[u8], at: &mut usize) -> Option<Observed> {
        let mut rest = bytes.get(*at..)?;
        let (&what, behind) = rest.split_first()?;
        rest = behind;
        let time = get(&mut rest)?;
        let packet = self.read_behind(what, time, &mut rest)?;
        let kept_start = u32::try_from(bytes.len() - rest.len()).ok()?;
        rest = rest.get(usize::from(packet.kept_length)..)?;
        *at = bytes.len() - rest.len();
        Some(Observed { kept_start, ..packet })
    }

    /// Takes what stands behind the first byte and the time of a record from the front of `rest`, up to the kept payload.
    #[inline]
    pub fn read_behind(&mut self, what: u8, time: u64, rest: &mut &[u8]) -> Option<Observed> {
        let way = &mut self.ways[usize::from(what & FORWARD != 0)];
        let time_ns = self.time_ns.wrapping_add(unzigzag(time) as u64);
        if what & FLAGS != 0 {
            let (&flags, behind) = rest.split_first()?;
            (way.flags, *rest) = (flags, behind);
        }
        if what & WINDOW != 0 {
            let (window, behind) = rest.split_first_chunk::<2>()?;
            (way.window, *rest) = (u16::from_le_bytes(*window), behind);
        }
        let mut sequence = way.next;
        if what & SEQUENCE != 0 {
            sequence = sequence.wrapping_add(unzigzag(get(rest)?) as u32);
        }
        if what & ACKNOWLEDGEMENT != 0 {
            way.acknowledgement = way.acknowledgement.wrapping_add(unzigzag(get(rest)?) as u32);
        }
        let payload_length = if what & PAYLOAD != 0 { u32::try_from(get(rest)?).ok()? } else { 0 };
        if what & FILE != 0 {
            self.file = u16::try_from(get(rest)?).ok()?;
        }
        let kept_length = if what & KEPT != 0 { u16::try_from(get(rest)?).ok()? } else { 0 };
        way.next = sequence.wrapping_add(payload_length);
        self.time_ns = time_ns;
        Some(Observed {
            time_ns,
            sequence,
            acknowledgement: way.acknowledgement,
            payload_length,
            kept_start: 0,
            kept_length,
            window: way.window,
            file: self.file,
            flags: way.flags,
            forward: what & FORWARD != 0,
        })
    }
}

/// Bytes of a record in front of its kept payload, at most: its first one, a time, flags, a window and five numbers.
pub(super) const MAX_HEAD: usize = 1 + 10 + 1 + 2 + 5 * 5 + 8;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;

    use super::*;

    prop_compose! {
        fn any_observed()(
            (time_ns, sequence, acknowledgement, payload_length) in (any::<u64>(), any::<u32>(), any::<u32>(), any::<u32>()),
            (window, file, flags, forward) in (any::<u16>(), any::<u16>(), any::<u8>(), any::<bool>()),
        ) -> Observed {
            Observed {
                time_ns, sequence, acknowledgement, payload_length, window, file, flags, forward, ..Observed::default()
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again_and_what_is_cut_off_is_not_read(
            packets in prop::collection::vec((any_observed(), prop::collection::vec(any::<u8>(), 0..40)), 0..30),
            again in any::<bool>(),
        ) {
            let mut bytes = Vec::new();
            let mut context = Context::default();
            for (packet, kept) in &packets {
                context.write(&mut bytes, packet, kept);
                if again {
                    // The same again a little later: most is left out.
                    context.write(&mut bytes, &Observed { time_ns: packet.time_ns ^ 1, ..*packet }, &[]);
                }
            }
            let (mut context, mut at) = (Context::default(), 0);
            for (packet, kept) in &packets {
                let found = context.read(&bytes, &mut at).unwrap();
                let start = found.kept_start as usize;
                prop_assert_eq!(&bytes[start..start + usize::from(found.kept_length)], &kept[..]);
                prop_assert_eq!(Observed { kept_start: 0, kept_length: 0, ..found }, *packet);
                if again {
                    prop_assert_eq!(context.read(&bytes, &mut at).unwrap().time_ns, packet.time_ns ^ 1);
                }
            }
            prop_assert_eq!(at, bytes.len());
            prop_assert!(context.read(&bytes, &mut at).is_none());
            if let Some((_, rest)) = bytes.split_last() {
                let (mut context, mut at) = (Context::default(), 0);
                while context.read(rest, &mut at).is_some() {}
                prop_assert!(at < bytes.len());
            }
        }

        #[test]
        fn anything_is_read_as_records_that_lie_within_it(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let (mut context, mut at) = (Context::default(), 0);
            while let Some(found) = context.read(&bytes, &mut at) {
                prop_assert!(found.kept_start as usize + usize::from(found.kept_length) == at && at <= bytes.len());
            }
        }
    }
}
