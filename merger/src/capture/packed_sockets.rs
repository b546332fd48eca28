//! Records of sockets in a fifth of the memory: those of scans and listings, which are nearly all, one after the other, each told against the one before.

use std::borrow::Cow;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use trace::socket::{Owner, SocketRecord, TcpCounters};

use crate::spilled::ByteLog;
use crate::varint::{MAX_BYTES, get, put, unzigzag, zigzag};

/// Records of sockets, in their order.
#[derive(Clone, Debug)]
pub struct PackedSockets {
    bytes: ByteLog,
    count: usize,
    context: Context,
    /// Names of sockets' states.
    states: Vec<String>,
}

/// What a record is told against.
#[derive(Clone, Copy, Debug, Default)]
struct Context {
    t: u64,
    netns: u64,
}

const SOCKET: u8 = 0;
const DIED: u8 = 1;
const SCAN: u8 = 2;
/// One of those that are few, in JSON.
const OTHER: u8 = 3;
const OWNED: u8 = 4;
const COUNTED: u8 = 8;
const LISTEN: u8 = 16;

/// Linux has twelve states; records with more are told in JSON.
const MAX_STATES: usize = 64;

/// Memory that they take at most, bytes.
const MAX_HELD: usize = 256 << 10;

impl Default for PackedSockets {
    fn default() -> Self {
        let (bytes, context) = (ByteLog::within(MAX_HELD), Context::default());
        Self { bytes, count: 0, context, states: Vec::new() }
    }
}

impl PackedSockets {
    /// Appends a record.
    pub fn push(&mut self, record: SocketRecord) {
        self.count += 1;
        if self.pack(&record).is_none() {
            let json = serde_json::to_vec(&record).unwrap_or_default();
            self.bytes.tail().push(OTHER);
            self.number(json.len() as u64);
            self.bytes.tail().extend_from_slice(&json);
        }
        self.bytes.end_record();
    }

    /// Appends a record of a scan; `None` = it is none.
    fn pack(&mut self, record: &SocketRecord) -> Option<()> {
        match record {
            SocketRecord::Socket { t, netns, local, remote, state, inode, owner, tcp } => {
                let state = self.state(state)?;
                let owned = if owner.is_some() { OWNED } else { 0 };
                self.begin(SOCKET | owned | counted(tcp.as_ref()), *t, *netns);
                self.address(*local);
                self.address(*remote);
                self.bytes.tail().push(state);
                self.number(*inode);
                self.owner(owner.as_ref());
                self.counters(tcp.as_ref());
            }
            SocketRecord::Listen { t, netns, local, inode, owner } => {
                let owned = if owner.is_some() { OWNED } else { 0 };
                self.begin(LISTEN | owned, *t, *netns);
                self.address(*local);
                self.number(*inode);
                self.owner(owner.as_ref());
            }
            SocketRecord::Died { t, netns, local, remote, tcp } => {
                self.begin(DIED | counted(tcp.as_ref()), *t, *netns);
                self.address(*local);
                self.address(*remote);
                self.counters(tcp.as_ref());
            }
            SocketRecord::Scan { t, netns, sockets, cpu_us } => {
                self.begin(SCAN, *t, *netns);
                self.number(*sockets);
                self.number(*cpu_us);
            }
            _ => return None,
        }
        Some(())
    }

    /// The place of a state's name.
    fn state(&mut self, state: &str) -> Option<u8> {
        let known = self.states.iter().position(|known| known == state);
        let place = known.or_else(|| {
            (self.states.len() < MAX_STATES).then(|| {
                self.states.push(state.to_owned());
                self.states.len() - 1
            })
        })?;
        u8::try_from(place).ok()
    }

    fn begin(&mut self, what: u8, t: u64, netns: u64) {
        let Context { t: t_before, netns: netns_before } = std::mem::replace(&mut self.context, Context { t, netns });
        self.bytes.tail().push(what);
        self.number(zigzag(t.wrapping_sub(t_before) as i64));
        self.number(zigzag(netns.wrapping_sub(netns_before) as i64));
    }

    fn number(&mut self, number: u64) {
        let mut bytes = [0; MAX_BYTES];
        let length = put(&mut bytes, number);
        self.bytes.tail().extend_from_slice(&bytes[..length]);
    }

    fn address(&mut self, address: SocketAddr) {
        match address {
            SocketAddr::V4(address) => {
                self.bytes.tail().push(4);
                self.bytes.tail().extend_from_slice(&address.ip().octets());
            }
            SocketAddr::V6(address) => {
                self.bytes.tail().push(6);
                self.bytes.tail().extend_from_slice(&address.ip().octets());
                self.number(address.flowinfo().into());
                self.number(address.scope_id().into());
            }
        }
        self.bytes.tail().extend_from_slice(&address.port().to_le_bytes());
    }

    fn owner(&mut self, owner: Option<&Owner>) {
        if let Some(Owner { pid, start_ticks }) = owner {
            self.number((*pid).into());
            self.number(*start_ticks);
        }
    }

    fn counters(&mut self, tcp: Option<&TcpCounters>) {
        if let Some(tcp) = tcp {
            numbers(tcp).into_iter().for_each(|number| self.number(number));
        }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = SocketRecord> + '_ {
        let mut parts = self.bytes.parts();
        let mut part: Cow<'_, [u8]> = Cow::default();
        let (mut at, mut context) = (0, Context::default());
        std::iter::from_fn(move || {
            while at >= part.len() {
                ((_, part), at) = (parts.next()?, 0);
            }
            let mut reader = Reader { rest: &part[at..], context, states: &self.states };
            let what = reader.byte()?;
            let record = if what == OTHER { reader.json() } else { reader.record(what) };
            (context, at) = (reader.context, part.len() - reader.rest.len());
            record
        })
    }

    /// Whether all could be kept, and looked at.
    ///
    /// # Errors
    /// If a temporary file failed.
    pub(crate) fn check(&self) -> io::Result<()> {
        self.bytes.check()
    }

    /// The same records, changed.
    #[must_use]
    pub fn changed(&self, change: impl Fn(&mut SocketRecord)) -> Self {
        let mut changed = Self::default();
        changed.extend(self.iter().map(|mut record| {
            change(&mut record);
            record
        }));
        changed
    }

    /// Gives memory back when all records are there.
    pub fn settle(&mut self) {
        self.bytes.settle();
    }
}

impl Extend<SocketRecord> for PackedSockets {
    fn extend<I: IntoIterator<Item = SocketRecord>>(&mut self, records: I) {
        records.into_iter().for_each(|record| self.push(record));
    }
}

impl FromIterator<SocketRecord> for PackedSockets {
    fn from_iter<I: IntoIterator<Item = SocketRecord>>(records: I) -> Self {
        let mut packed = Self::default();
        packed.extend(records);
        packed
    }
}

fn counted(tcp: Option<&TcpCounters>) -> u8 {
    if tcp.is_some() { COUNTED } else { 0 }
}

fn numbers(tcp: &TcpCounters) -> [u64; 11] {
    let TcpCounters { bytes_sent, bytes_retrans, bytes_acked, bytes_received, .. } = *tcp;
    let TcpCounters { rtt_us, min_rtt_us, total_retrans, snd_mss, .. } = *tcp;
    let TcpCounters { busy_us, rwnd_limited_us, sndbuf_limited_us, .. } = *tcp;
    let [rtt_us, min_rtt_us, total_retrans, snd_mss] = [rtt_us, min_rtt_us, total_retrans, snd_mss].map(u64::from);
    [
        bytes_sent,
        bytes_retrans,
        bytes_acked,
        bytes_received,
        rtt_us,
        min_rtt_us,
        total_retrans,
        snd_mss,
        busy_us,
        rwnd_limited_us,
        sndbuf_limited_us,
    ]
}

struct Reader<'p> {
    rest: &'p [u8],
    context: Context,
    states: &'p [String],
}

impl Reader<'_> {
    fn record(&mut self, what: u8) -> Option<SocketRecord> {
        let t = self.context.t.wrapping_add(unzigzag(self.number()?) as u64);
        let netns = self.context.netns.wrapping_add(unzigzag(self.number()?) as u64);
        self.context = Context { t, netns };
        if what & LISTEN != 0 {
            let (local, inode) = (self.address()?, self.number()?);
            let owner = (what & OWNED != 0).then(|| self.owner());
            return Some(SocketRecord::Listen { t, netns, local, inode, owner: transposed(owner)? });
        }
        match what & 3 {
            SOCKET => {
                let (local, remote) = (self.address()?, self.address()?);
                let state = self.states.get(usize::from(self.byte()?))?.clone();
                let inode = self.number()?;
                let owner = (what & OWNED != 0).then(|| self.owner());
                let tcp = (what & COUNTED != 0).then(|| self.counters());
                let (owner, tcp) = (transposed(owner)?, transposed(tcp)?);
                Some(SocketRecord::Socket { t, netns, local, remote, state, inode, owner, tcp })
            }
            DIED => {
                let (local, remote) = (self.address()?, self.address()?);
                let tcp = (what & COUNTED != 0).then(|| self.counters());
                Some(SocketRecord::Died { t, netns, local, remote, tcp: transposed(tcp)? })
            }
            _ => Some(SocketRecord::Scan { t, netns, sockets: self.number()?, cpu_us: self.number()? }),
        }
    }

    fn json(&mut self) -> Option<SocketRecord> {
        let (json, rest) =
            usize::try_from(self.number()?).ok().and_then(|length| self.rest.split_at_checked(length))?;
        self.rest = rest;
        serde_json::from_slice(json).ok()
    }

    fn byte(&mut self) -> Option<u8> {
        self.bytes::<1>().map(|[byte]| byte)
    }

    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*bytes)
    }

    fn number(&mut self) -> Option<u64> {
        get(&mut self.rest)
    }

    fn number32(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    fn address(&mut self) -> Option<SocketAddr> {
        if self.byte()? == 4 {
            let ip = Ipv4Addr::from(self.bytes::<4>()?);
            return Some(SocketAddrV4::new(ip, u16::from_le_bytes(self.bytes()?)).into());
        }
        let ip = Ipv6Addr::from(self.bytes::<16>()?);
        let (flowinfo, scope_id) = (self.number32()?, self.number32()?);
        Some(SocketAddrV6::new(ip, u16::from_le_bytes(self.bytes()?), flowinfo, scope_id).into())
    }

    fn owner(&mut self) -> Option<Owner> {
        Some(Owner { pid: self.number32()?, start_ticks: self.number()? })
    }

    fn counters(&mut self) -> Option<TcpCounters> {
        Some(TcpCounters {
            bytes_sent: self.number()?,
            bytes_retrans: self.number()?,
            bytes_acked: self.number()?,
            bytes_received: self.number()?,
            rtt_us: self.number32()?,
            min_rtt_us: self.number32()?,
            total_retrans: self.number32()?,
            snd_mss: self.number32()?,
            busy_us: self.number()?,
            rwnd_limited_us: self.number()?,
            sndbuf_limited_us: self.number()?,
        })
    }
}

/// What is there and cannot be read makes the whole unreadable.
fn transposed<T>(field: Option<Option<T>>) -> Option<Option<T>> {
    match field {
        Some(None) => None,
        Some(some) => Some(some),
        None => Some(None),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use std::net::IpAddr;

    use proptest::prelude::*;

    use super::*;

    fn address() -> impl Strategy<Value = SocketAddr> {
        let plain = (any::<IpAddr>(), any::<u16>()).prop_map(SocketAddr::from);
        let scoped = (any::<Ipv6Addr>(), any::<u16>(), any::<u32>(), any::<u32>());
        let scoped = scoped.prop_map(|(ip, port, flow, scope)| SocketAddrV6::new(ip, port, flow, scope).into());
        prop_oneof![4 => plain, 1 => scoped]
    }

    prop_compose! {
        fn counters()(n in prop::array::uniform11(prop_oneof![0..3000u64, any::<u64>()])) -> TcpCounters {
            TcpCounters {
                bytes_sent: n[0], bytes_retrans: n[1], bytes_acked: n[2], bytes_received: n[3], rtt_us: n[4] as u32,
                min_rtt_us: n[5] as u32, total_retrans: n[6] as u32, snd_mss: n[7] as u32, busy_us: n[8],
                rwnd_limited_us: n[9], sndbuf_limited_us: n[10],
            }
        }
    }

    fn record() -> impl Strategy<Value = SocketRecord> {
        let owner = (any::<u32>(), any::<u64>()).prop_map(|(pid, start_ticks)| Owner { pid, start_ticks });
        let fields = (
            any::<u64>(),
            any::<u64>(),
            address(),
            address(),
            "[A-Z]{1,2}",
            any::<u64>(),
            prop::option::of(owner),
            prop::option::of(counters()),
        );
        (0..7, fields).prop_map(|(kind, (t, netns, local, remote, state, inode, owner, tcp))| match kind {
            0 | 1 => SocketRecord::Socket { t, netns, local, remote, state, inode, owner, tcp },
            2 => SocketRecord::Died { t, netns, local, remote, tcp },
            3 => SocketRecord::Scan { t, netns, sockets: inode, cpu_us: t },
            4 => SocketRecord::Lost { t, what: format!("\"{state}\n"), count: inode },
            5 => {
                let owner = owner.unwrap_or(Owner { pid: 0, start_ticks: netns });
                SocketRecord::Process {
                    t,
                    owner,
                    netns,
                    main: state.clone(),
                    role: state,
                    uid: owner.pid,
                    ns_pid: None,
                }
            }
            _ => SocketRecord::Listen { t, netns, local, inode, owner },
        })
    }

    proptest! {
        #[test]
        fn records_are_as_they_were(records in prop::collection::vec(record(), 0..40)) {
            let packed: PackedSockets = records.iter().cloned().collect();
            prop_assert!(packed.len() == records.len() && packed.is_empty() == records.is_empty());
            prop_assert_eq!(packed.iter().collect::<Vec<_>>(), &records[..]);
            let twice = packed.changed(|record| if let SocketRecord::Died { t, .. } = record { *t /= 2 });
            for (before, after) in records.iter().zip(twice.iter()) {
                match (before, &after) {
                    (SocketRecord::Died { t, .. }, SocketRecord::Died { t: half, .. }) => prop_assert_eq!(t / 2, *half),
                    _ => prop_assert_eq!(before, &after),
                }
            }
        }
    }

    #[test]
    fn states_beyond_those_there_are_stay_as_they_are() {
        let address = SocketAddr::from(([10, 0, 0, 1], 80));
        let socket = |state: usize| SocketRecord::Socket {
            t: 1,
            netns: 2,
            local: address,
            remote: address,
            state: state.to_string(),
            inode: 3,
            owner: None,
            tcp: None,
        };
        let records: Vec<SocketRecord> = (0..2 * MAX_STATES).map(socket).collect();
        let packed: PackedSockets = records.iter().cloned().collect();
        assert!(packed.states.len() == MAX_STATES && packed.iter().eq(records));
    }

    #[test]
    fn records_of_a_long_listing_leave_memory() {
        let (owner, local) = (Owner { pid: 1, start_ticks: 0 }, SocketAddr::from(([10, 0, 0, 1], 9000)));
        let mut packed = PackedSockets::default();
        for t in 0..50_000 {
            packed.push(SocketRecord::Listen { t, netns: 0, local, inode: 0, owner: Some(owner) });
            packed.push(SocketRecord::Lost { t, what: "netlink messages".into(), count: 1 });
        }
        assert!(packed.bytes.tail().len() <= MAX_HELD && packed.bytes.len() > 4 * MAX_HELD);
        assert_eq!(packed.iter().count(), 100_000);
    }

    #[test]
    fn records_of_a_capture_take_a_fifth() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden/terasort/m1/sockets.jsonl.zst");
        let mut packed = PackedSockets::default();
        trace::files::json_lines(trace::files::open(path.as_ref()).unwrap(), 1 << 20, |record| packed.push(record))
            .unwrap();
        packed.settle();
        let taken = packed.bytes.len();
        assert!(packed.len() > 1000 && 4 * taken < packed.len() * size_of::<SocketRecord>(), "{taken} bytes");
    }
}
