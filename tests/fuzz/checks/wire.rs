//! Any payload of a connection, with any holes in what was kept of it, is cut into messages that cover every byte once;
//! never a panic. This is where Hadoop's wire formats (RPC 4 and 9, data transfer 17 and 28, shuffle and other HTTP) are
//! read.
//!
//! Input: records of a byte (bit 0: from the server; bits 1 to 3: what it begins with), a byte (how much of it is not
//! kept, in sixteenths; low nibble: thinking before it), a byte (length), then as many bytes. In front of all of them a
//! byte says what is known beside the payload: of the connection's beginning, of its agents, of its neighbours.

use crate::world::wire;
use merger::framing::{Conversation, Fetches, read};
use merger::join::Direction;
use merger::join::content::Content;
use merger::joined::{Segment, Stream};

#[derive(Default)]
struct Side {
    kept: Vec<(u64, Vec<u8>)>,
    segments: Vec<Segment>,
    end: u64,
}

impl Side {
    fn say(&mut self, payload: &[u8], dropped_sixteenths: usize, now: u64) {
        let keep = payload.len() - payload.len() * dropped_sixteenths / 16;
        self.kept.push((self.end, payload[..keep].to_vec()));
        let bytes = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        self.segments.push(Segment {
            offset: self.end,
            bytes,
            sent_ns: now,
            delivered_ns: now + 50_000,
            ..Segment::default()
        });
        self.end += u64::from(bytes);
    }

    fn direction(&self) -> Direction {
        Direction {
            stream: Stream { segments: self.segments.clone() },
            content: Content::new(self.kept.iter().map(|(offset, bytes)| (*offset, bytes.as_slice())).collect()),
            end: self.end,
            seen: self.end,
            ..Direction::default()
        }
    }
}

fn beginning(kind: u8, length: usize) -> Vec<u8> {
    match kind {
        1 => wire::rpc_preamble(),
        2 => wire::rpc_request(3, "sendHeartbeat", 5),
        3 => wire::rpc_response(3, 5),
        4 => wire::read_block(5, "DFSClient_attempt_1_0001_m_000000_0_1_1", 0, 1000),
        5 => [wire::read_response(), wire::data_packets(0, 700, 512)].concat(),
        6 => wire::shuffle_request(1, &["attempt_1_0001_m_000000_0".to_owned()]),
        7 => wire::shuffle_head(length * 3),
        _ => Vec::new(),
    }
}

/// What must hold for any input.
pub fn check(bytes: &[u8]) {
    let mut sides = [Side::default(), Side::default()];
    let Some((&known, bytes)) = bytes.split_first() else { return };
    let (mut rest, mut now) = (bytes, 1_700_000_000_000_000_000);
    while let Some(([first, second, length], behind)) = rest.split_first_chunk::<3>() {
        let (said, behind) = behind.split_at(usize::from(*length).min(behind.len()));
        rest = behind;
        let mut payload = beginning(first >> 1 & 7, said.len());
        payload.extend_from_slice(said);
        now += 1 + (1u64 << (second & 15)) * 1000;
        if !payload.is_empty() {
            sides[usize::from(first & 1)].say(&payload, usize::from(second >> 4), now);
        }
    }
    let [client, server] = [sides[0].direction(), sides[1].direction()];
    let fetches = Fetches::default();
    let conversation = Conversation {
        client: &client,
        server: &server,
        records: Vec::new(),
        fetches: &fetches,
        from_begin: known & 1 != 0,
        agents: known & 2 != 0,
        neighbours: [None, Some("rpc"), Some("data-transfer"), Some("shuffle")][usize::from(known >> 2 & 3)],
    };
    let framed = read(&conversation);
    for (from_client, end) in [(true, client.end), (false, server.end)] {
        let mut drafts: Vec<_> = framed.drafts.iter().filter(|draft| draft.from_client == from_client).collect();
        drafts.sort_by_key(|draft| draft.offset);
        let mut at = 0;
        for draft in drafts {
            assert_eq!(draft.offset, at, "{draft:?}");
            assert!(draft.bytes > 0 && draft.app_bytes <= draft.bytes, "{draft:?}");
            at = draft.end();
        }
        assert_eq!(at, end);
    }
}
