//! How many bytes TLS makes of what ShuffleHandler answers, and how both sides say goodbye.
//!
//! The `SslHandler` of Netty 4.1 (Hadoop 3.3 and later) gathers what was written up to a flush and cuts it into records of
//! 16 KiB and a rest. ShuffleHandler flushes each piece of a file that it reads: the head of the answer and the header of an
//! output go with the first piece of the output. That of Netty 3 (Hadoop 2.x) makes records of each part by itself. Either way
//! the length of an output tells the number of its records.

/// Bytes of plain text in a record at most (RFC 5246, 6.2.1).
const RECORD: u64 = 1 << 14;
/// A piece of a file, as seen on the wire.
const PIECE: u64 = 1 << 16;

/// Of an alert, in plain text.
const ALERT: u64 = 2;
/// What a record has beyond its plain text: five bytes of head, and with TLS 1.2 and AES-GCM 8 of number and 16 of tag, with
/// TLS 1.3 one of type and 16 of tag.
pub(super) const OVERHEADS: [u64; 2] = [29, 22];

/// What a record has beyond its plain text, by the bytes with which a side closes its connection.
pub(super) fn overhead_of_goodbye(bytes: u64) -> Option<u64> {
    OVERHEADS.into_iter().find(|overhead| overhead + ALERT == bytes)
}

/// Lengths of the head of an answer: status line, hash, name and version have 93 bytes with the empty line. To them come
/// `connection: close` (seen in 2.10), that and `content-length` (seen in 3.4), that alone, or with `connection: keep-alive`
/// and `keep-alive`.
fn heads(body: u64) -> [u64; 4] {
    let length = 18 + u64::from(body.max(1).ilog10()) + 1;
    [19, 19 + length, length, length + 24 + 23].map(|fields| 93 + fields)
}

/// How a handler cuts what it is given into records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handler {
    /// What was written up to a flush is gathered.
    Gathers,
    /// Heads, headers and outputs are cut by themselves.
    Parts,
}

impl Handler {
    /// Bytes of an output on the wire, with so many bytes of a head in front of its header.
    fn wire(self, head: u64, (header, bytes): (u64, u64), overhead: u64) -> u64 {
        let records = match self {
            Self::Gathers => {
                let first = bytes.min(PIECE);
                let rest = bytes - first;
                let whole = rest / PIECE * PIECE.div_ceil(RECORD);
                (head + header + first).div_ceil(RECORD) + whole + (rest % PIECE).div_ceil(RECORD)
            }
            Self::Parts => u64::from(head > 0) + 1 + bytes.div_ceil(RECORD),
        };
        head + header + bytes + overhead.saturating_mul(records)
    }
}

/// The bytes that each output of an answer takes on the wire, with the head in the first one's; `outputs` are the bytes of
/// their headers and of themselves. `None` if all of them together do not come to exactly `all`.
pub(super) fn lengths(outputs: &[(u64, u64)], all: u64, overhead: u64) -> Option<Vec<u64>> {
    let body: u64 = outputs.iter().map(|(header, bytes)| header + bytes).sum();
    let handlers = [Handler::Gathers, Handler::Parts];
    let mut shapes = handlers.into_iter().flat_map(|handler| heads(body).map(|head| (handler, head)));
    shapes.find_map(|(handler, head)| {
        let of = |(number, &output)| handler.wire(if number == 0 { head } else { 0 }, output, overhead);
        let lengths: Vec<u64> = outputs.iter().enumerate().map(of).collect();
        (!lengths.is_empty() && lengths.iter().sum::<u64>() == all).then_some(lengths)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    /// Bytes of a header: the name of its map, two lengths of so many bytes, the reduce.
    const fn header(length: u64) -> u64 {
        1 + 37 + 2 * length + 1
    }

    /// Answers as they were recorded: bytes on the wire, of a header and of outputs.
    fn are_cut(answers: &[(u64, u64, &[u64])]) {
        for (all, header, outputs) in answers {
            let outputs: Vec<(u64, u64)> = outputs.iter().map(|&bytes| (*header, bytes)).collect();
            let found = lengths(&outputs, *all, 29).unwrap_or_else(|| panic!("{all} {outputs:?}"));
            assert_eq!(found.iter().sum::<u64>(), *all);
            for other in [all - 31, all - 1, all + 1, all + 31] {
                assert_eq!(lengths(&outputs, other, 29), None, "{other} is not {all}");
            }
            // Of a few records another head can have the same length, of many it cannot.
            assert!(*all < 1000 || lengths(&outputs, *all, 22).is_none());
        }
    }

    #[test]
    fn answers_of_hadoop_3_4_are_cut_to_the_byte() {
        are_cut(&[
            (296, header(1), &[93]),
            (457, header(1), &[92, 92]),
            (8_345_276, header(4), &[8_330_302]),
            (251_459, header(4), &[250_783]),
            (337_805, header(4), &[112_312, 112_234, 112_286]),
            (6_273_850, header(4), &[2_080_526, 2_088_014, 2_093_838]),
            (6_241_922, header(4), &[2_081_774, 2_081_774, 2_066_902]),
        ]);
        // Each was flushed by itself: 295 and 162 bytes were seen.
        assert_eq!(lengths(&[(header(1), 92), (header(1), 92)], 457, 29), Some(vec![295, 162]));
    }

    #[test]
    fn answers_of_hadoop_2_10_are_cut_to_the_byte() {
        are_cut(&[
            (332, header(1), &[92]),
            (4_187_719, header(4), &[4_180_078]),
            (112_901, header(4), &[112_481]),
            (4_147_488, header(4), &[4_139_934]),
        ]);
    }

    #[test]
    fn versions_of_tls_are_told_by_how_they_close() {
        assert_eq!(overhead_of_goodbye(31), Some(29));
        assert_eq!(overhead_of_goodbye(24), Some(22));
        assert_eq!(overhead_of_goodbye(326), None);
    }

    #[test]
    fn damaged_sizes_are_no_shape() {
        assert_eq!(lengths(&[], 100, 29), None);
        assert_eq!(lengths(&[(40, 1 << 50), (40, 1 << 50)], 1 << 20, 29), None);
    }
}
