//! A host's digest: all that a merge takes from the host's folder, in one file.
//!
//! ```text
//! file    = zstd with a checksum over:
//!           magic "HADDGT1\n", u32 head length (little endian), head (JSON, `Head`),
//!           sockets, records,                                         each a length and JSON (trace::socket)
//!           JVMs, (a length and JSON (`JvmFile`), records, records)   (trace::jvm)
//!           flows, flow*,
//!           "END\n"
//! flow    = lower address, higher address, packets, block*
//! address = u8 4 or 6, 4 or 16 bytes, u16 port (big endian)
//! block   = bytes of each column, first bytes, times, rests, kept payload     of 4,096 packets or what is left
//! ```
//!
//! Numbers are LEB128 but where a width stands. A packet's record is that of `observed`, cut into columns: like stands beside
//! like and packs better. Records are told against the one before them of the same flow, packets lie in the order in which
//! they came, and copies of packets that were seen on two interfaces are all there: what comes of a digest is what comes of the folder.
//! A digest is used whole or not at all.

mod input;
mod read;
mod write;

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use trace::manifest::ForeignProcess;

use crate::loss::Loss;
use crate::volume::Volume;
pub(crate) use read::{read, volume_of};
pub(crate) use write::write;

/// Format version that is written, and read.
const VERSION: u32 = 1;
/// The first bytes, unpacked.
const MAGIC: &[u8; 8] = b"HADDGT1\n";
/// The last bytes, unpacked.
const END: &[u8; 4] = b"END\n";
/// Bytes of a head, at most.
const MAX_HEAD_BYTES: usize = 64 << 20;
/// Bytes of one record of a socket or a JVM, at most.
const MAX_RECORD_BYTES: usize = 1 << 20;
/// Packets of a block.
const BLOCK_PACKETS: u64 = 4096;

/// What a digest says first.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    version: u32,
    host: String,
    netns: u64,
    rack: String,
    addresses: BTreeSet<IpAddr>,
    recorded_ns: Option<(u64, u64)>,
    named: Vec<ForeignProcess>,
    losses: Vec<Loss>,
    notes: Vec<String>,
    volume: Volume,
}

/// Why a digest cannot be used, or made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DigestError {
    /// The file cannot be read or written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is none.
    #[error("it is no digest")]
    NotDigest,
    /// Another version's.
    #[error("it is a digest of version {0}, and this program reads version {VERSION}")]
    Version(u32),
    /// Part of it is missing, or its checksum is another.
    #[error("it is cut off or damaged ({0})")]
    Damaged(String),
    /// It holds what cannot be.
    #[error("it makes no sense: {0}")]
    Senseless(String),
    /// Its packets fit neither into memory nor on the disk.
    #[error("{0}")]
    Spill(io::Error),
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use std::io::Write as _;
    use std::net::SocketAddr;

    use proptest::prelude::*;
    use trace::packet::{Direction, PacketView, Sack};

    use super::*;
    use crate::capture::host::HostCapture;
    use crate::capture::reading::Reading;
    use crate::capture::store::Packets;
    use crate::loss::{LossKind, Note as _};

    type Drawn = (u8, u8, u64, u32, u32, u8, u16, u16, Vec<u8>);

    fn packets() -> impl Strategy<Value = Vec<Drawn>> {
        let ends = (0u8..4, 0u8..4, any::<u32>().prop_map(u64::from), any::<u32>(), any::<u32>());
        let rest = (any::<u8>(), any::<u16>(), 0u16..3, prop::collection::vec(any::<u8>(), 0..40));
        let packet = (ends, rest).prop_map(|((a, b, c, d, e), (f, g, h, i))| (a, b, c, d, e, f, g, h, i));
        prop::collection::vec(packet, 0..200)
    }

    /// IPv4 and IPv6, of the host alone and of others.
    fn address(number: u8) -> SocketAddr {
        ["127.0.0.1:50", "10.0.0.1:8020", "[fd00::1]:9866", "[::1]:80"][usize::from(number)].parse().unwrap()
    }

    fn host(drawn: &[Drawn], limit: u64) -> HostCapture {
        let mut host = HostCapture { name: "w1".into(), packets: Packets::within(limit), ..HostCapture::default() };
        for (source, destination, time_ns, sequence, acknowledgement, flags, window, file, payload) in drawn {
            let packet = PacketView {
                time_ns: *time_ns,
                direction: Direction::Foreign,
                source: address(*source),
                destination: address(*destination),
                raw_length: 0,
                payload_length: payload.len() as u32 + u32::from(*flags),
                sequence: *sequence,
                acknowledgement: *acknowledgement,
                flags: *flags,
                window: *window,
                sack: Sack::default(),
                payload,
            };
            host.packets.push(&packet, 7, *file).unwrap();
        }
        host.losses.lost("w1/eth0", LossKind::CutFrames(50), drawn.len() as u64);
        host.notes.push("a note".into());
        host.recorded_ns = Some((5, u64::MAX));
        host
    }

    fn read_back(bytes: &[u8]) -> Result<HostCapture, DigestError> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        io::Seek::rewind(&mut file).unwrap();
        let mut host = HostCapture { name: "w1".into(), ..HostCapture::default() };
        read(&mut host, file, &Reading { number: 3, limit: 1 << 20, keeps_all: true, done: &|_| {} })?;
        Ok(host)
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            drawn in packets(), limit in prop_oneof![Just(0u64), Just(1 << 20)], settles in any::<bool>(),
        ) {
            let mut host = host(&drawn, limit);
            if settles {
                host.packets.settle().unwrap();
            }
            let mut bytes = Vec::new();
            write(&host, &mut bytes).unwrap();
            let found = read_back(&bytes).unwrap();
            prop_assert_eq!(&found.losses, &host.losses);
            prop_assert_eq!(&found.notes, &host.notes);
            prop_assert_eq!(found.recorded_ns, host.recorded_ns);
            prop_assert_eq!(found.packets.count, host.packets.count);
            for (expected, found) in host.packets.stored().zip(found.packets.stored()) {
                let ((expected_key, expected), (key, found)) = (expected.unwrap(), found.unwrap());
                // Addresses that mean something on their host only get the number that the host has in this merge.
                prop_assert_eq!((expected_key.low(), expected_key.high()), (key.low(), key.high()));
                prop_assert_eq!(expected_key.host().map(|_| 3), key.host());
                prop_assert_eq!(&expected.packets, &found.packets);
                for packet in &found.packets {
                    prop_assert_eq!(expected.payload(packet), found.payload(packet));
                }
            }
        }

        #[test]
        fn a_part_of_it_is_refused(drawn in packets(), share in 0.0..1.0) {
            let mut bytes = Vec::new();
            write(&host(&drawn, 0), &mut bytes).unwrap();
            bytes.truncate((bytes.len() as f64 * share) as usize);
            prop_assert!(read_back(&bytes).is_err());
        }
    }
}
