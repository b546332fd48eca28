//! How well causes could be told, in figures.

use super::check::Report;

/// What inference left open, and what the check of the finished graph found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// Jobs whose application master is not known: their tasks keep their recorded times.
    pub without_master: Vec<String>,
    /// Pieces into which long messages were cut, beyond one each: those that left as the network let them, as their receiver
    /// made room, and as their sender had them.
    pub pieces_by_limit: [u64; 3],
    /// The check.
    pub report: Report,
    /// Supposed causes that came after their effect, and were left out.
    pub disbelieved: u64,
    /// Supposed causes of the same instant, left out.
    pub cyclic: u64,
    /// Pieces of news that found no beat in time.
    pub without_beat: u64,
}

impl Findings {
    /// All of it in words.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let masterless = self.without_master.iter().map(|job| {
            format!(
                "causality: the application master of {job} is not known (no owners of its connections): its tasks keep \
                 their recorded times, whatever the network"
            )
        });
        let [network, receiver, sender] = self.pieces_by_limit;
        let Self { report, disbelieved, cyclic, without_beat, .. } = self;
        let share = if report.bytes == 0 { 0.0 } else { report.root_bytes as f64 / report.bytes as f64 };
        let worst = report.worst.as_ref().map_or(0, |(error, _)| *error);
        let figures = [
            format!(
                "causality: long messages are cut into {} more pieces, of which {network} left as the network let them, \
                 {receiver} as their receiver made room and {sender} as their sender had them",
                network + receiver + sender
            ),
            format!(
                "causality: {} of the sends wait for nothing and keep their recorded time ({:.2}% of the bytes)",
                report.roots,
                share * 100.0
            ),
            format!(
                "causality: on the recorded network the graph is off by {:.3} ms at worst, {} events by more than 1 ms",
                worst as f64 / 1e6,
                report.off
            ),
            format!(
                "causality: {disbelieved} supposed causes came after their effect and were left out, {cyclic} of one \
                 instant; {without_beat} pieces of news found no beat in time"
            ),
        ];
        masterless.chain(figures).collect()
    }
}
