//! One run on two threads, beside two runs at once on one thread each: about what the machine gains by its second core.

use anyhow::Result;

use crate::figure::{Figure, median};
use crate::run::{Running, announce, number};

/// Networks of 65,536 hosts and more.
pub const CASES: [&str; 3] = ["heap-65536", "heap-524288", "scale-store-and-forward"];

/// Its name among the benchmarks.
pub fn name_of(case: &str) -> String {
    format!("two-threads-{case}")
}

pub fn two_threads(case: &str, runs: usize) -> Result<Figure> {
    let name = name_of(case);
    announce(&name);
    let start = |threads: usize, label: &str| Running::start(case, &[], threads, label);
    let wall_s = |run: Running| number(&run.finish()?, "wall_s");
    let (mut one, mut two, mut at_once) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..runs {
        one.push(wall_s(start(1, "")?)?);
        two.push(wall_s(start(2, "")?)?);
        let [first, second] = [start(1, "-first")?, start(1, "-second")?];
        at_once.push(f64::midpoint(wall_s(first)?, wall_s(second)?));
    }
    let one = median(one);
    Ok(Figure {
        name: format!("{name}: speed"),
        ours: one / median(two),
        peer: Some(("two runs at once, one thread each", 2.0 * one / median(at_once))),
        unit: "times that of one run on one thread, wall time",
        more_is_better: true,
    })
}
