//! An estimated network as a table.

use trace::manifest::NetworkEstimate;

use crate::check::table_parts::plain;

/// As a table and lines for people.
#[must_use]
pub fn show(network: &NetworkEstimate) -> String {
    let mut table = plain();
    table.set_header(["from", "to", "Mbit/s", "full for", "longest queue"]);
    for link in &network.links {
        let rate = link.rate_bps as f64 / 1e6;
        table.add_row([
            link.from.clone(),
            link.to.clone(),
            if link.at_least { format!("at least {rate:.1}") } else { format!("{rate:.1}") },
            if link.at_least { "–".to_owned() } else { format!("{:.1} s", link.full_s) },
            link.queue_bytes.map_or_else(
                || "–".to_owned(),
                |bytes| format!("{bytes} bytes{}", if link.overflowed { ", then losses" } else { "" }),
            ),
        ]);
    }
    let trip = |ns: Option<u64>| ns.map_or_else(|| "not seen".to_owned(), |ns| format!("{:.3} ms", ns as f64 / 1e6));
    format!(
        "{table}\n\nround trip  {} within a rack, {} between racks (the least of a handshake)\n",
        trip(network.rack_round_trip_ns),
        trip(network.across_round_trip_ns)
    )
}
