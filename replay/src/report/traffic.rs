//! Traffic over time, and figures of each link.

use super::timeline;
use super::words::word;
use crate::results::{Detail, LinkDetail};
use pages::format;
use pages::markup::{Element, div, element, table};
use pages::parts::legend;

/// So many links are drawn; the others are in the table.
const MAX_DRAWN: usize = 16;
/// A curve has so many points at most.
const MAX_POINTS: usize = 500;
/// Units of the drawings, which are stretched to the width of the page.
const WIDTH: f64 = 1_000.0;
const HEIGHT: f64 = 100.0;
/// Where nothing is drawn: below what is seen.
const BELOW: f64 = 106.0;
/// Of the height, above the highest step; and the length of the marks of lost packets there.
const ROOM: f64 = 16.0;
const MARK: f64 = 13.0;

/// The section with curves and table.
pub(super) fn section(detail: &Detail) -> Element {
    let mut links: Vec<&LinkDetail> = detail.links.iter().filter(|link| link.bytes > 0).collect();
    links.sort_by_key(|link| std::cmp::Reverse(link.bytes));
    let hidden = links.len().saturating_sub(MAX_DRAWN);
    let idle = detail.links.len() - links.len();
    let rest = match (hidden, idle) {
        (0, 0) => String::new(),
        (0, idle) => format!(" {idle} links carried nothing."),
        (hidden, idle) => format!(" {hidden} more are in the table; {idle} carried nothing."),
    };
    let end_s = timeline::end_s(detail);
    let drawn: Vec<Drawn> = links.iter().take(MAX_DRAWN).map(|link| Drawn::of(link, detail.interval_s)).collect();
    let full = drawn.iter().fold(Full::default(), |full, one| Full {
        bps: full.bps.max(one.bps.most()),
        queue: full.queue.max(one.queue.most()),
    });
    let queues = match whole(full.queue) {
        0 => String::new(),
        longest => format!("; that of queues is {}, the longest one in each step", format::bytes(longest)),
    };
    let panels = links.iter().zip(&drawn).map(|(link, one)| panel(link, one, full, detail));
    let busiest = format!("busiest {}", width(detail.interval_s));
    let headers = ["link", "rate", "bytes", "packets", "mean use", &busiest, "longest queue", "lost"];
    let rows = links.iter().map(|link| {
        vec![
            link.name.clone(),
            format::rate(link.rate_bps),
            format::bytes(link.bytes),
            format::count(link.packets),
            link.utilisation.map_or_else(|| "–".to_owned(), format::share),
            peak(link, detail.interval_s).map_or_else(|| "–".to_owned(), format::share),
            format::bytes(link.queue_max_bytes),
            format::count(link.drops),
        ]
    });
    let counters = detail.summary.counters.iter().map(|(name, value)| vec![name.clone(), format::count(*value)]);
    element("section")
        .child(element("h3").text("Traffic of the links"))
        .child(
            element("p")
                .with("class", "hint")
                .text("Busiest links first, all to one scale. Throughput is a ")
                .child(word("mean", &format!("mean over {}", width(step_s(&drawn, detail.interval_s)))))
                .text(format!(
                    ", and its full height {}{queues}. {}{rest}",
                    format::rate(whole(full.bps)),
                    losses(detail)
                )),
        )
        .child(legend([
            ("k-network", "throughput"),
            ("k-timer-wait", "queue in front of the link"),
            ("k-lost", "packets lost"),
        ]))
        .child(div("panels traffic").with("data-end", end_s).children(panels))
        .child(
            element("details").child(element("summary").text("All links as a table")).child(table(&headers, 1, rows)),
        )
        .children((!detail.summary.counters.is_empty()).then(|| {
            element("details").child(element("summary").text("Counters of the fabric")).child(table(
                &["counter", "value"],
                1,
                counters,
            ))
        }))
}

#[expect(clippy::cast_precision_loss, reason = "a picture")]
fn peak(link: &LinkDetail, interval_s: f64) -> Option<f64> {
    let most = *link.bytes_by_interval.iter().max()?;
    let capacity = link.rate_bps as f64 / 8.0 * interval_s;
    (capacity > 0.0).then(|| most as f64 / capacity)
}

/// Where packets were lost.
fn losses(detail: &Detail) -> String {
    let mut lossy: Vec<&LinkDetail> = detail.links.iter().filter(|link| link.drops > 0).collect();
    lossy.sort_by_key(|link| std::cmp::Reverse(link.drops));
    let places: Vec<String> =
        lossy.iter().take(4).map(|link| format!("{} ({})", arrow(&link.name), format::count(link.drops))).collect();
    let more = lossy.len().saturating_sub(places.len());
    match (detail.summary.drops, &places[..]) {
        (0, _) => "No packet was lost in the network.".to_owned(),
        (_, []) => "Packets were lost, of which the fabric does not tell where.".to_owned(),
        (_, places) if more > 0 => format!("Packets were lost in front of {} and {more} more.", places.join(", ")),
        (_, places) => format!("Packets were lost in front of {}.", places.join(", ")),
    }
}

fn arrow(name: &str) -> String {
    name.replace("->", " → ")
}

/// A width of time, short: "100 ms".
fn width(seconds: f64) -> String {
    format::seconds(seconds).replace(".0 ", " ").replace(".00 ", " ")
}

/// The width of the steps that are drawn.
fn step_s(drawn: &[Drawn], interval_s: f64) -> f64 {
    drawn.first().map_or(interval_s, |one| one.bps.width_s)
}

/// What full heights stand for.
#[derive(Clone, Copy, Default)]
struct Full {
    bps: f64,
    queue: f64,
}

/// What is drawn of a link.
struct Drawn {
    bps: Steps,
    queue: Steps,
    drops: Steps,
}

impl Drawn {
    fn of(link: &LinkDetail, interval_s: f64) -> Self {
        let lists = [&link.bytes_by_interval, &link.queue_by_interval, &link.drops_by_interval];
        let intervals = lists.iter().map(|list| list.len()).max().unwrap_or(0).div_ceil(MAX_POINTS).max(1);
        let sum = |chunk: &[u64]| float(chunk.iter().sum());
        let width_s = (interval_s * float(intervals as u64)).max(f64::MIN_POSITIVE);
        let steps = |list: &[u64], of: &dyn Fn(&[u64]) -> f64| Steps {
            width_s,
            values: list.chunks(intervals).map(of).collect(),
        };
        Self {
            bps: steps(&link.bytes_by_interval, &|chunk| sum(chunk) * 8.0 / width_s),
            queue: steps(&link.queue_by_interval, &|chunk| float(chunk.iter().copied().max().unwrap_or(0))),
            drops: steps(&link.drops_by_interval, &sum),
        }
    }
}

/// A figure over time, in steps of one width.
struct Steps {
    width_s: f64,
    values: Vec<f64>,
}

impl Steps {
    fn most(&self) -> f64 {
        self.values.iter().copied().fold(0.0, f64::max)
    }

    /// Its outline from the lower edge up to `full`, in a drawing whose width is `end_s`. Equal steps are one.
    fn outline(&self, full: f64, end_s: f64) -> String {
        let y = |value: f64| match value / full.max(f64::MIN_POSITIVE) {
            share if share > 0.0 => HEIGHT - share.min(1.0) * (HEIGHT - ROOM),
            _ => BELOW,
        };
        let mut outline = format!("M0 {BELOW}");
        let mut last = BELOW;
        for (number, value) in self.values.iter().enumerate() {
            let y = y(*value);
            if (y - last).abs() >= 0.05 {
                outline.push_str(&format!("H{:.1}V{y:.1}", self.x(number, end_s)));
                last = y;
            }
        }
        outline.push_str(&format!("H{:.1}V{BELOW}Z", self.x(self.values.len(), end_s)));
        outline
    }

    /// A mark at the upper edge for each step that is not 0.
    fn marks(&self, end_s: f64) -> String {
        let not_0 = self.values.iter().enumerate().filter(|(_, value)| **value > 0.0);
        not_0.map(|(number, _)| format!("M{:.1} 0V{MARK}", self.x(number, end_s))).collect()
    }

    #[expect(clippy::cast_precision_loss, reason = "a picture")]
    fn x(&self, number: usize, end_s: f64) -> f64 {
        (number as f64 * self.width_s / end_s.max(f64::MIN_POSITIVE)).min(1.0) * WIDTH
    }
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn float(value: u64) -> f64 {
    value as f64
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "what was counted")]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

fn panel(link: &LinkDetail, drawn: &Drawn, full: Full, detail: &Detail) -> Element {
    let end_s = timeline::end_s(detail);
    let busiest = format::rate(whole(drawn.bps.most()));
    let width = width(drawn.bps.width_s);
    let path = |class: &str, outline: String| element("path").with("class", class).with("d", outline);
    let queue =
        (full.queue > 0.0 && drawn.queue.most() > 0.0).then(|| path("queue", drawn.queue.outline(full.queue, end_s)));
    let lost = (drawn.drops.most() > 0.0).then(|| path("lost", drawn.drops.marks(end_s)));
    let picture = element("svg")
        .with("viewBox", format!("0 0 {WIDTH} {HEIGHT}"))
        .with("preserveAspectRatio", "none")
        .with("role", "img")
        .with("aria-label", format!("throughput, queue and losses of {} over time", link.name))
        .child(path("bytes", drawn.bps.outline(full.bps, end_s)))
        .children(queue)
        .children(lost);
    let tip = format!(
        "{}\n{} in {} packets\nbusiest {width} {busiest}{}\nlongest queue {}, {} lost",
        link.name,
        format::bytes(link.bytes),
        format::count(link.packets),
        link.utilisation.map(|share| format!(", mean use {}", format::share(share))).unwrap_or_default(),
        format::bytes(link.queue_max_bytes),
        link.drops,
    );
    let use_of_rate = match link.rate_bps {
        0 => busiest,
        rate => format!("{}, busiest {width} {:.0}%", format::rate(rate), drawn.bps.most() * 100.0 / float(rate)),
    };
    let held = match (link.queue_max_bytes, link.drops) {
        (0, 0) => "no queue".to_owned(),
        (queue, 0) => format!("queue up to {}", format::bytes(queue)),
        (queue, lost) => format!("queue up to {}, {} lost", format::bytes(queue), format::count(lost)),
    };
    let edge = |edge: &str, text: String| element("small").with("data-edge", edge).text(text);
    div("panel")
        .with("data-tip", tip)
        .child(div("caption").child(element("b").text(arrow(&link.name))).child(element("small").text(use_of_rate)))
        .child(div("window").with("data-brush", "").child(div("reel").child(picture)))
        .child(
            div("caption ends")
                .child(edge("from", "0".to_owned()))
                .child(element("small").text(held))
                .child(edge("to", format::seconds(end_s))),
        )
}
