//! Letters between ranks: numbers one behind the other, the lowest byte first.

use crate::fabric::packet::{Loss, LostPacket, Message, Observer, PacketRecord, ServiceLevel};
use crate::network::{HostIndex, Token};
use crate::time::SimTime;

use super::seam::PartObserver;

/// Reads what was written with [`put`].
pub(in crate::fabric) struct Letter<'a>(pub &'a [u8]);

impl Letter<'_> {
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next number; `None` behind the end.
    pub fn long(&mut self) -> Option<u64> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*bytes))
    }

    /// The next number of 32 bits.
    pub fn short(&mut self) -> Option<u32> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*bytes))
    }

    pub fn time(&mut self) -> Option<SimTime> {
        self.long().map(SimTime)
    }
}

/// Writes numbers into a letter.
pub(in crate::fabric) fn put(letter: &mut Vec<u8>, longs: &[u64], shorts: &[u32]) {
    longs.iter().for_each(|long| letter.extend_from_slice(&long.to_le_bytes()));
    shorts.iter().for_each(|short| letter.extend_from_slice(&short.to_le_bytes()));
}

const HANDED_OVER: u32 = 0;
const DELIVERED: u32 = 1;
const DROPPED: u32 = 2;

/// Notes what an observer would see, for the observer of another rank.
#[derive(Default)]
pub(in crate::fabric) struct Notes {
    /// Messages of several packets: told before all else, for packets of one may be seen by several ranks.
    opened: Vec<u8>,
    seen: Vec<u8>,
}

impl Notes {
    /// What was noted since the last call.
    pub fn take(&mut self) -> Vec<u8> {
        let Self { opened, seen } = std::mem::take(self);
        let mut letter = Vec::with_capacity(16 + opened.len() + seen.len());
        put(&mut letter, &[opened.len() as u64, seen.len() as u64], &[]);
        letter.extend_from_slice(&opened);
        letter.extend_from_slice(&seen);
        letter
    }

    /// Tells `observer` what several ranks of a network of `hosts` hosts have noted; `None` if not all of it can be read.
    pub fn tell<O: PartObserver>(letters: &[Vec<u8>], hosts: u32, observer: &mut O) -> Option<()> {
        let parts = letters.iter().map(|letter| Self::split(letter)).collect::<Option<Vec<_>>>()?;
        for (opened, _) in &parts {
            tell_opened(Letter(opened), observer)?;
        }
        for (_, seen) in &parts {
            tell_seen(Letter(seen), hosts, observer)?;
        }
        Some(())
    }

    fn split(letter: &[u8]) -> Option<(&[u8], &[u8])> {
        let mut rest = Letter(letter);
        let (opened, seen) = (rest.long()?, rest.long()?);
        let (opened, seen) = (usize::try_from(opened).ok()?, usize::try_from(seen).ok()?);
        rest.0.split_at_checked(opened).filter(|(_, behind)| behind.len() == seen)
    }
}

fn tell_opened<O: PartObserver>(mut letter: Letter<'_>, observer: &mut O) -> Option<()> {
    while !letter.is_empty() {
        let (token, packets) = (Token(letter.long()?), letter.long()?);
        if packets == 0 {
            return None;
        }
        observer.opened(token, packets);
    }
    Some(())
}

fn tell_seen<O: PartObserver>(mut letter: Letter<'_>, hosts: u32, observer: &mut O) -> Option<()> {
    let host = |letter: &mut Letter<'_>| letter.short().filter(|host| *host < hosts).map(HostIndex);
    while !letter.is_empty() {
        match letter.short()? {
            HANDED_OVER => {
                let (at, bytes, flow, token) = (letter.time()?, letter.long()?, letter.long()?, Token(letter.long()?));
                let (source, destination) = (host(&mut letter)?, host(&mut letter)?);
                let level = ServiceLevel(u8::try_from(letter.short()?).ok()?);
                observer.handed_over(at, &Message { source, destination, bytes, level, flow, token });
            }
            DELIVERED => {
                let record = PacketRecord {
                    handed_over: letter.time()?,
                    left: letter.time()?,
                    arrived: letter.time()?,
                    number: letter.long()?,
                    token: Token(letter.long()?),
                    source: host(&mut letter)?,
                    destination: host(&mut letter)?,
                    bytes: letter.short()?,
                    flits: letter.short()?,
                    switches: letter.short()?,
                };
                if record.left < record.handed_over || record.arrived < record.left {
                    return None;
                }
                observer.delivered(&record);
            }
            DROPPED => {
                let (at, handed_over) = (letter.time()?, letter.time()?);
                let (number, token, source) = (letter.long()?, Token(letter.long()?), host(&mut letter)?);
                // Hosts lose nothing in windows.
                let reason = Loss::InNetwork;
                observer.dropped(&LostPacket { at, handed_over, source, number, token, reason });
            }
            _ => return None,
        }
    }
    Some(())
}

impl Observer for Notes {
    fn delivered(&mut self, packet: &PacketRecord) {
        let PacketRecord { handed_over, left, arrived, source, destination, number, bytes, flits, switches, token } =
            *packet;
        put(&mut self.seen, &[], &[DELIVERED]);
        let longs = [handed_over.0, left.0, arrived.0, number, token.0];
        put(&mut self.seen, &longs, &[source.0, destination.0, bytes, flits, switches]);
    }

    fn dropped(&mut self, packet: &LostPacket) {
        let LostPacket { at, handed_over, source, number, token, .. } = *packet;
        put(&mut self.seen, &[], &[DROPPED]);
        put(&mut self.seen, &[at.0, handed_over.0, number, token.0], &[source.0]);
    }
}

impl PartObserver for Notes {
    fn for_part(&self) -> Self {
        Self::default()
    }

    fn handed_over(&mut self, at: SimTime, message: &Message) {
        let Message { source, destination, bytes, level, flow, token } = *message;
        put(&mut self.seen, &[], &[HANDED_OVER]);
        put(&mut self.seen, &[at.0, bytes, flow, token.0], &[source.0, destination.0, level.0.into()]);
    }

    fn opened(&mut self, token: Token, packets: u64) {
        put(&mut self.opened, &[token.0, packets], &[]);
    }

    fn merge(&mut self, other: Self) {
        self.opened.extend(other.opened);
        self.seen.extend(other.seen);
    }
}
