//! Events and causes as they lie in memory and in temporary files: a long trace has millions of them.

use trace::ids::TimerId;
use trace::rows::{Carrier, Evidence, On};

use crate::spilled::{Reader, Record, Writer, variant};

/// Number of an event that is not yet a row.
pub type Draft = usize;

/// A moment to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The event.
    pub event: Draft,
    /// Which moment of it.
    pub on: On,
    /// How its news travels, if by a timer.
    pub by: Option<(TimerId, Carrier)>,
    /// Why it is believed.
    pub evidence: Evidence,
}

impl Cause {
    /// The event's last byte had arrived.
    pub const fn delivered(event: Draft, evidence: Evidence) -> Self {
        Self { event, on: On::Delivered, by: None, evidence }
    }

    /// The event happened.
    pub const fn sent(event: Draft, evidence: Evidence) -> Self {
        Self { event, on: On::Sent, by: None, evidence }
    }

    /// The same news, carried by a timer's next beat.
    pub const fn carried(self, timer: TimerId, carrier: Carrier) -> Self {
        Self { by: Some((timer, carrier)), ..self }
    }
}

/// Stands in 32 bits for none.
pub(super) const NONE: u32 = u32::MAX;
/// The work of a mark whose delay is what the recording leaves between its causes and itself, nanoseconds.
pub(super) const UNTOLD: u64 = u64::MAX;

pub(super) const FROM_CLIENT: u8 = 1;
pub(super) const PACED: u8 = 2;
pub(super) const SINCE_LEFT: u8 = 4;

/// An event that is not yet a row, in half of a row's memory. Ids are [`NONE`] where there is none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub happened_ns: u64,
    pub arrived_ns: u64,
    /// Of a send its bytes, of a mark its work in nanoseconds.
    pub amount: u64,
    pub process: u32,
    /// Of sends.
    pub message: u32,
    pub connection: u32,
    pub timer: u32,
    pub beat: u32,
    /// Of marks.
    pub task: u32,
    /// Place of its first cause among all; once rows are made, how many there are.
    pub causes: u32,
    /// Place of its name among all; that of sends is the first one.
    pub name: u16,
    pub flags: u8,
}

impl Event {
    pub fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    pub fn is_send(&self) -> bool {
        self.message != NONE
    }

    pub fn bytes(&self) -> u64 {
        if self.is_send() { self.amount } else { 0 }
    }

    pub fn work_ns(&self) -> Option<u64> {
        (!self.is_send() && self.amount != UNTOLD).then_some(self.amount)
    }
}

impl Record for Event {
    const BLANK: Self = Self {
        happened_ns: 0,
        arrived_ns: 0,
        amount: UNTOLD,
        process: NONE,
        message: NONE,
        connection: NONE,
        timer: NONE,
        beat: NONE,
        task: NONE,
        causes: NONE,
        name: 0,
        flags: 0,
    };
    const BYTES: usize = 3 * 8 + 7 * 4 + 2 + 1;

    fn write(&self, out: &mut Writer<'_>) {
        let Self { happened_ns, arrived_ns, amount, process, message, connection, timer, beat, task, causes, .. } =
            self;
        [happened_ns, arrived_ns, amount].into_iter().for_each(|number| out.bytes(number.to_le_bytes()));
        let ids = [process, message, connection, timer, beat, task, causes];
        ids.into_iter().for_each(|id| out.bytes(id.to_le_bytes()));
        out.bytes(self.name.to_le_bytes());
        out.bytes([self.flags]);
    }

    #[inline]
    fn read(input: &mut Reader<'_>) -> Self {
        Self {
            happened_ns: input.u64(),
            arrived_ns: input.u64(),
            amount: input.u64(),
            process: input.u32(),
            message: input.u32(),
            connection: input.u32(),
            timer: input.u32(),
            beat: input.u32(),
            task: input.u32(),
            causes: input.u32(),
            name: input.u16(),
            flags: input.u8(),
        }
    }
}

/// A cause, and the place of the event's next one among all; [`NONE`] = it is the last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    /// Draft; once rows are made the id.
    pub event: u32,
    pub timer: u32,
    pub next: u32,
    pub on: On,
    pub carrier: Option<Carrier>,
    pub evidence: Evidence,
}

impl Link {
    pub fn of(cause: Cause) -> Self {
        Self {
            event: number(cause.event),
            timer: cause.by.map_or(NONE, |(timer, _)| timer.0),
            next: NONE,
            on: cause.on,
            carrier: cause.by.map(|(_, carrier)| carrier),
            evidence: cause.evidence,
        }
    }

    pub fn cause(&self) -> Cause {
        let by = self.carrier.map(|carrier| (TimerId(self.timer), carrier));
        Cause { event: self.event as usize, on: self.on, by, evidence: self.evidence }
    }
}

impl Record for Link {
    const BLANK: Self =
        Self { event: 0, timer: NONE, next: NONE, on: On::Sent, carrier: None, evidence: Evidence::Heuristic };
    const BYTES: usize = 3 * 4 + 3;

    fn write(&self, out: &mut Writer<'_>) {
        [self.event, self.timer, self.next].into_iter().for_each(|number| out.bytes(number.to_le_bytes()));
        out.bytes([self.on as u8, self.carrier.map_or(u8::MAX, |carrier| carrier as u8), self.evidence as u8]);
    }

    #[inline]
    fn read(input: &mut Reader<'_>) -> Self {
        Self {
            event: input.u32(),
            timer: input.u32(),
            next: input.u32(),
            on: variant(On::ALL, input.u8()).unwrap_or(On::Sent),
            carrier: variant(Carrier::ALL, input.u8()),
            evidence: variant(Evidence::ALL, input.u8()).unwrap_or(Evidence::Heuristic),
        }
    }
}

/// A place in a list, or none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place(u32);

impl Place {
    pub fn of(place: u32) -> Self {
        Self(place)
    }

    pub fn get(self) -> Option<usize> {
        some(self.0).map(|place| place as usize)
    }
}

impl Record for Place {
    const BLANK: Self = Self(NONE);
    const BYTES: usize = u32::BYTES;

    fn write(&self, out: &mut Writer<'_>) {
        self.0.write(out);
    }

    #[inline]
    fn read(input: &mut Reader<'_>) -> Self {
        Self(input.u32())
    }
}

/// A place in 32 bits; that more are there than fit is told when rows are made.
pub fn number(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(NONE)
}

/// An id that is none where it is [`NONE`].
pub(super) fn some(id: u32) -> Option<u32> {
    (id != NONE).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spilled::read_back;

    #[test]
    fn causes_are_read_as_they_were_written() {
        for evidence in Evidence::ALL {
            for by in [None, Some((TimerId(7), Carrier::Request)), Some((TimerId(0), Carrier::Response))] {
                for on in On::ALL {
                    let link = Link { next: 3, ..Link::of(Cause { event: 5, on: *on, by, evidence: *evidence }) };
                    let read = read_back(&link);
                    assert_eq!((read.cause(), read.next), (link.cause(), 3));
                }
            }
        }
    }

    #[test]
    fn events_are_read_as_they_were_written() {
        let event = Event {
            happened_ns: 1 << 60,
            arrived_ns: 2,
            amount: 3,
            process: 4,
            message: 5,
            connection: 6,
            timer: 7,
            beat: 8,
            task: 9,
            causes: 10,
            name: 11,
            flags: FROM_CLIENT | PACED,
        };
        assert_eq!(format!("{:?}", read_back(&event)), format!("{event:?}"));
    }
}
