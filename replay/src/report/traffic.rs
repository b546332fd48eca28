//! Traffic over time, and figures of each link.

use crate::results::{Detail, LinkDetail};
use pages::format;
use pages::markup::{Element, div, element, table};

/// So many links are drawn; the others are in the table.
const MAX_DRAWN: usize = 16;
/// A curve has so many points at most.
const MAX_POINTS: usize = 240;
/// Units of the drawings, which are stretched to the width of the page.
const WIDTH: f64 = 1_000.0;
const HEIGHT: f64 = 100.0;

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
    let curves: Vec<Curve> = links.iter().take(MAX_DRAWN).map(|link| Curve::of(link, detail.interval_s)).collect();
    let full_bps = curves.iter().map(Curve::peak_bps).fold(0.0, f64::max);
    let panels = links.iter().zip(&curves).map(|(link, curve)| panel(link, curve, full_bps, detail));
    let headers = ["link", "rate", "bytes", "packets", "mean use", "busiest", "longest queue", "lost"];
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
        .child(element("p").with("class", "hint").text(format!(
            "Throughput over time, busiest links first. All are drawn to one scale: the full height is {}.{rest}",
            format::rate(to_bps(full_bps))
        )))
        .child(div("panels traffic").children(panels))
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

/// Throughput over time.
struct Curve {
    width_s: f64,
    bps: Vec<f64>,
}

impl Curve {
    #[expect(clippy::cast_precision_loss, reason = "a picture")]
    fn of(link: &LinkDetail, interval_s: f64) -> Self {
        let intervals = link.bytes_by_interval.len().div_ceil(MAX_POINTS).max(1);
        let width_s = interval_s * intervals as f64;
        let bps = |chunk: &[u64]| chunk.iter().sum::<u64>() as f64 * 8.0 / width_s.max(f64::MIN_POSITIVE);
        Self { width_s, bps: link.bytes_by_interval.chunks(intervals).map(bps).collect() }
    }

    fn peak_bps(&self) -> f64 {
        self.bps.iter().copied().fold(0.0, f64::max)
    }

    /// Its outline in a drawing whose full height is `full_bps` and whose width is `end_s`.
    #[expect(clippy::cast_precision_loss, reason = "a picture")]
    fn outline(&self, full_bps: f64, end_s: f64) -> String {
        let y = |bps: f64| HEIGHT - (bps / full_bps.max(f64::MIN_POSITIVE)).min(1.0) * (HEIGHT - 2.0);
        let x = |number: usize| (number as f64 * self.width_s / end_s.max(f64::MIN_POSITIVE)).min(1.0) * WIDTH;
        let mut outline = format!("M0 {HEIGHT}");
        for (number, bps) in self.bps.iter().enumerate() {
            outline.push_str(&format!("L{:.1} {1:.1}L{2:.1} {1:.1}", x(number), y(*bps), x(number + 1)));
        }
        outline.push_str(&format!("L{:.1} {HEIGHT}Z", x(self.bps.len())));
        outline
    }
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn as_bps(bps: u64) -> f64 {
    bps as f64
}

/// A rate in whole bits per second.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate that was counted")]
fn to_bps(bps: f64) -> u64 {
    bps.round() as u64
}

fn panel(link: &LinkDetail, curve: &Curve, full_bps: f64, detail: &Detail) -> Element {
    let end_s = detail.summary.job_time_s;
    let peak = format::rate(to_bps(curve.peak_bps()));
    let picture = element("svg")
        .with("viewBox", format!("0 0 {WIDTH} {HEIGHT}"))
        .with("preserveAspectRatio", "none")
        .with("role", "img")
        .with("aria-label", format!("throughput of {} over time", link.name))
        .child(element("path").with("d", curve.outline(full_bps, end_s)));
    let tip = format!(
        "{}\n{} in {} packets\npeak {}{}\nlongest queue {}, {} lost",
        link.name,
        format::bytes(link.bytes),
        format::count(link.packets),
        peak,
        link.utilisation.map(|share| format!(", mean use {}", format::share(share))).unwrap_or_default(),
        format::bytes(link.queue_max_bytes),
        link.drops,
    );
    div("panel")
        .with("data-tip", tip)
        .child(div("caption").child(element("b").text(link.name.replace("->", " → "))).child(element("small").text(
            match link.rate_bps {
                0 => format!("peak {peak}"),
                rate => format!("{}, peak {:.0}%", format::rate(rate), curve.peak_bps() * 100.0 / as_bps(rate)),
            },
        )))
        .child(picture)
        .child(
            div("caption ends").child(element("small").text("0")).child(element("small").text(format::seconds(end_s))),
        )
}
