//! Who spoke when: requests and answers by the turns that both sides take.

use trace::rows::MessageKind;

use super::super::conversation::Conversation;
use super::super::draft::{Draft, HEADERS};
use super::super::turns::Turns;
use super::place::{Piece, segments};
use crate::join::Direction;

/// Of the pieces up to `end`, the number of the first one behind which the sender heard nothing any more: what it said
/// in one turn.
pub(super) fn begin_of_turn(pieces: &[Piece], end: usize, answers: &Direction) -> usize {
    let mut at = end.min(pieces.len()).saturating_sub(1);
    while at > 0 && !heard(answers, pieces[at - 1].sent_ns, pieces[at].sent_ns) {
        at -= 1;
    }
    at
}

/// Whether something arrived from the other side after one time and up to another.
fn heard(answers: &Direction, after_ns: u64, until_ns: u64) -> bool {
    let segments = &answers.stream.segments;
    let first = segments.partition_point(|segment| segment.delivered_ns <= after_ns);
    segments.get(first).is_some_and(|segment| segment.delivered_ns <= until_ns)
}

/// Offset of the first byte that left when a time had come.
pub(super) fn first_sent(direction: &Direction, from_ns: u64) -> u64 {
    let found = direction.stream.segments.iter().find(|segment| segment.sent_ns >= from_ns);
    found.map_or(direction.end, |segment| segment.offset)
}

/// Reads a connection of which nothing but its protocol is known: whatever the client says in one turn is a request, and
/// what the server says up to the next one answers it.
pub(super) fn read(conversation: &Conversation<'_>, (request, response): (MessageKind, MessageKind)) -> Vec<Draft> {
    let (client, server) = (conversation.client, conversation.server);
    let pieces = segments(client);
    let mut starts = vec![0];
    starts.extend((1..pieces.len()).filter(|&at| heard(server, pieces[at - 1].sent_ns, pieces[at].sent_ns)));
    let mut drafts = Vec::new();
    let ends = starts.iter().skip(1).copied().chain([pieces.len()]);
    let requests: Vec<(u64, u64)> = starts
        .iter()
        .zip(ends)
        .filter_map(|(&start, end)| Some((pieces.get(start)?.from, pieces.get(end.checked_sub(1)?)?.to)))
        .collect();
    let ends: Vec<u64> = requests.iter().map(|(_, end)| *end).collect();
    let turns = Turns::new(client, server, &ends);
    for (number, (from, to)) in requests.iter().enumerate() {
        let (answer, answer_end) = turns.answer(number);
        for (from_client, kind, from, to) in [(true, request, *from, *to), (false, response, answer, answer_end)] {
            if from < to {
                let draft = Draft::new(from_client, kind, from, to - from);
                drafts.push(Draft { call: number as i64, evidence: HEADERS, ..draft });
            }
        }
    }
    drafts
}
