//! Hadoop's protocols on the wire: whatever a connection carries, each of its bytes is in one message.
#![no_main]

use hadoptic_fuzz::framing::{Conversation, Fetches, read};
use hadoptic_fuzz::join::Direction;
use hadoptic_fuzz::join::content::Content;
use hadoptic_fuzz::joined::{Segment, Stream};
use libfuzzer_sys::fuzz_target;

/// One direction of pieces: two bytes of length each, of which a part may not have been kept.
fn direction(mut data: &[u8], began_ns: u64) -> Direction {
    let (mut segments, mut pieces, mut offset) = (Vec::new(), Vec::new(), 0u64);
    while let [length, beyond, rest @ ..] = data {
        let kept = usize::from(*length).min(rest.len());
        let bytes = u32::try_from(kept).unwrap() + u32::from(*beyond) * u32::from(*beyond);
        let sent_ns = began_ns + 1000 * segments.len() as u64;
        segments.push(Segment { offset, bytes, sent_ns, delivered_ns: sent_ns + 500, ..Segment::default() });
        pieces.push((offset, &rest[..kept]));
        offset += u64::from(bytes);
        data = &rest[kept..];
    }
    segments.retain(|segment| segment.bytes > 0);
    Direction { stream: Stream { segments }, content: Content::new(pieces), end: offset }
}

fuzz_target!(|data: &[u8]| {
    let [share, data @ ..] = data else { return };
    let (client, server) = data.split_at(data.len() * usize::from(*share) / 256);
    let (client, server) = (direction(client, 1_000_000), direction(server, 1_000_200));
    let fetches = Fetches::default();
    let framed = read(&Conversation { client: &client, server: &server, records: Vec::new(), fetches: &fetches });
    for (from_client, direction) in [(true, &client), (false, &server)] {
        let drafts = framed.drafts.iter().filter(|draft| draft.from_client == from_client);
        assert_eq!(drafts.map(|draft| draft.bytes).sum::<u64>(), direction.end);
    }
});
