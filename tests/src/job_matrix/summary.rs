//! What the matrix says: errors beside the noise floor, by how the job was made and what is compared.

use comfy_table::Table;

use super::table::{QUANTITIES, Row};
use crate::prediction::noise::median;

/// The bar of document 001, chapter 4.3, for all but TeraSort.
pub const WITHIN: f64 = 0.10;

/// Errors over some rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Errors {
    /// How many predictions.
    pub predictions: usize,
    /// Median of the absolute errors.
    pub median: f64,
    /// The worst.
    pub worst: f64,
    /// Median of the noise floors; `None` where none is known, as of one real run.
    pub floor: Option<f64>,
    /// Share of the predictions that err by [`WITHIN`] at most.
    pub within: f64,
}

/// Errors of the rows that are made in one way and tell one quantity; `None` without any.
#[must_use]
pub fn errors(rows: &[Row], job: &str, by: &str, quantity: &str) -> Option<Errors> {
    let is_wanted = |row: &&Row| row.job == job && row.by == by && row.quantity == quantity;
    let rows: Vec<&Row> = rows.iter().filter(is_wanted).collect();
    let mut found: Vec<f64> = rows.iter().map(|row| row.error.abs()).collect();
    let mut floors: Vec<f64> = rows.iter().filter_map(|row| row.noise_floor).collect();
    (!rows.is_empty()).then(|| Errors {
        predictions: rows.len(),
        within: found.iter().filter(|error| **error <= WITHIN).count() as f64 / rows.len() as f64,
        worst: found.iter().copied().fold(0.0, f64::max),
        median: median(&mut found),
        floor: (!floors.is_empty()).then(|| median(&mut floors)),
    })
}

/// The matrix in a table.
#[must_use]
pub fn text(rows: &[Row]) -> String {
    let names = |of: fn(&Row) -> &str| {
        let mut names: Vec<&str> = rows.iter().map(of).collect();
        names.sort_unstable();
        names.dedup();
        names
    };
    let mut table = Table::new();
    table.load_style(comfy_table::presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(["job", "by", "what", "predictions", "median error", "noise floor", "worst", "within 10%"]);
    let percent = |share: f64| format!("{:.1}%", 100.0 * share);
    for job in names(|row| &row.job) {
        for by in names(|row| &row.by) {
            for quantity in QUANTITIES {
                let Some(found) = errors(rows, job, by, quantity) else { continue };
                table.add_row([
                    job.to_owned(),
                    by.to_owned(),
                    quantity.to_owned(),
                    found.predictions.to_string(),
                    percent(found.median),
                    found.floor.map_or_else(|| "–".to_owned(), percent),
                    percent(found.worst),
                    percent(found.within),
                ]);
            }
        }
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn errors_are_of_one_job_way_and_quantity() {
        let row = |by: &str, quantity: &str, error: f64| Row {
            job: "terasort".into(),
            version: "3.4.2".into(),
            by: by.into(),
            from: "a".into(),
            to: "b".into(),
            capture: 1,
            quantity: quantity.into(),
            predicted_s: 1.0 + error,
            measured_median_s: 1.0,
            measured_runs: 5,
            error,
            noise_floor: Some(0.04),
            noise_floor_p95: None,
            load: 0.0,
        };
        let rows =
            [row("like", "job", -0.2), row("like", "job", 0.05), row("like", "map", 9.0), row("grow", "job", 0.0)];
        let found = errors(&rows, "terasort", "like", "job").unwrap();
        assert_eq!((found.predictions, found.within), (2, 0.5));
        assert!((found.median - 0.125).abs() < 1e-12 && (found.worst - 0.2).abs() < 1e-12);
        assert_eq!(errors(&rows, "wordcount", "like", "job"), None);
        assert!(text(&rows).contains("12.5%"));
    }
}
