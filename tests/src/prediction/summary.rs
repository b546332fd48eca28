//! What the matrix says: errors beside the noise floor, and whether intervals hold what they promise.

use comfy_table::Table;

use super::noise::median;
use super::table::{AblationRow, Row};

/// A cell in which the null model errs by less says little of a prediction.
pub const NULL_ERROR: f64 = 0.15;

/// Which cells are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cells {
    /// All.
    All,
    /// Those in which the null model errs by 15% or more.
    NullErrs,
    /// Of those, the ones towards a network on which the job takes less.
    Faster,
    /// Of those, the ones towards a network on which it takes more.
    Slower,
}

impl Cells {
    const ALL: [Self; 4] = [Self::All, Self::NullErrs, Self::Faster, Self::Slower];

    const fn name(self) -> &'static str {
        match self {
            Self::All => "all cells",
            Self::NullErrs => "null model off by 15% or more",
            Self::Faster => "of those, towards faster networks",
            Self::Slower => "of those, towards slower networks",
        }
    }

    fn has(self, row: &Row) -> bool {
        match self {
            Self::All => true,
            Self::NullErrs => row.null_error.abs() >= NULL_ERROR,
            Self::Faster => row.null_error >= NULL_ERROR,
            Self::Slower => row.null_error <= -NULL_ERROR,
        }
    }
}

/// Errors over some cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Errors {
    /// How many predictions.
    pub predictions: usize,
    /// Median of the absolute errors.
    pub median: f64,
    /// The worst.
    pub worst: f64,
    /// Median of the noise floors; not a number where none is known.
    pub floor: f64,
    /// Median of the null model's absolute errors.
    pub null: f64,
    /// Share of the real runs that lie within the intervals.
    pub covered: f64,
}

/// Errors over the cells that are looked at; `None` where there is none.
#[must_use]
pub fn errors(rows: &[Row], cells: Cells, captures: impl Fn(usize) -> bool) -> Option<Errors> {
    let rows: Vec<&Row> = rows.iter().filter(|row| cells.has(row) && captures(row.captures)).collect();
    if rows.is_empty() {
        return None;
    }
    let of = |value: fn(&Row) -> f64| median(&mut rows.iter().map(|row| value(row)).collect::<Vec<_>>());
    let (covered, runs) =
        rows.iter().fold((0, 0), |(covered, runs), row| (covered + row.covered, runs + row.measured_runs));
    Some(Errors {
        predictions: rows.len(),
        median: of(|row| row.error.abs()),
        worst: rows.iter().map(|row| row.error.abs()).fold(0.0, f64::max),
        floor: median(&mut rows.iter().filter_map(|row| row.noise_floor).collect::<Vec<_>>()),
        null: of(|row| row.null_error.abs()),
        covered: covered as f64 / runs as f64,
    })
}

/// The matrix in tables: errors by kind of cell, then what each idea is worth.
#[must_use]
pub fn text(rows: &[Row], ablations: &[AblationRow]) -> String {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::UTF8_HORIZONTAL_ONLY);
    table.set_header([
        "cells",
        "captures",
        "predictions",
        "median error",
        "noise floor",
        "worst",
        "null model",
        "real runs in the 80% interval",
    ]);
    let percent = |share: f64| format!("{:.1}%", 100.0 * share);
    for (name, is_of) in
        [("one", (|captures| captures == 1) as fn(usize) -> bool), ("several", |captures| captures > 1)]
    {
        for cells in Cells::ALL {
            if let Some(found) = errors(rows, cells, is_of) {
                table.add_row([
                    cells.name().to_owned(),
                    name.to_owned(),
                    found.predictions.to_string(),
                    percent(found.median),
                    percent(found.floor),
                    percent(found.worst),
                    percent(found.null),
                    percent(found.covered),
                ]);
            }
        }
    }
    format!("{table}\n{}", ablation_text(rows, ablations))
}

fn ablation_text(rows: &[Row], ablations: &[AblationRow]) -> String {
    let mut kinds: Vec<&str> = ablations.iter().map(|row| row.without.as_str()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let mut table = Table::new();
    table.load_style(comfy_table::presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(["without", "median error", "worst", "towards faster networks"]);
    let is_faster = |row: &AblationRow| {
        rows.iter().any(|cell| {
            (&cell.job, &cell.version, &cell.from, &cell.to) == (&row.job, &row.version, &row.from, &row.to)
                && Cells::Faster.has(cell)
        })
    };
    for kind in kinds {
        let of = |faster: bool| -> Vec<f64> {
            let wanted = ablations.iter().filter(|row| row.without == kind && (!faster || is_faster(row)));
            wanted.map(|row| row.error.abs()).collect()
        };
        let worst = of(false).into_iter().fold(0.0, f64::max);
        table.add_row([
            kind.to_owned(),
            format!("{:.1}%", 100.0 * median(&mut of(false))),
            format!("{:.1}%", 100.0 * worst),
            format!("{:.1}%", 100.0 * median(&mut of(true))),
        ]);
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn row(error: f64, null_error: f64, captures: usize) -> Row {
        Row {
            job: "terasort".into(),
            version: "3.4.2".into(),
            from: "a".into(),
            to: "b".into(),
            captures,
            predicted_s: 40.0 * (1.0 + error),
            low_s: Some(30.0),
            high_s: Some(50.0),
            measured_median_s: 40.0,
            measured_runs: 5,
            error,
            noise_floor: Some(0.03),
            noise_floor_p95: Some(0.1),
            null_error,
            covered: 4,
            load: 0.1,
        }
    }

    #[test]
    fn cells_are_told_apart_by_what_the_null_model_errs() {
        let rows = [row(0.02, 0.01, 3), row(-0.04, -0.5, 3), row(0.08, 1.0, 3), row(0.5, 1.0, 1)];
        let of = |cells| errors(&rows, cells, |captures| captures > 1).unwrap();
        assert_eq!((of(Cells::All).predictions, of(Cells::NullErrs).predictions), (3, 2));
        assert!((of(Cells::All).median - 0.04).abs() < 1e-12 && (of(Cells::All).worst - 0.08).abs() < 1e-12);
        assert!((of(Cells::Faster).median - 0.08).abs() < 1e-12 && (of(Cells::Slower).median - 0.04).abs() < 1e-12);
        assert!((of(Cells::All).covered - 0.8).abs() < 1e-12);
        assert_eq!(errors(&rows[..1], Cells::Faster, |_| true), None);
    }
}
