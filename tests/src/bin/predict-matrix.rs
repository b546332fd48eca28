//! The matrix of predictions: jobs are run on several networks, and what captures on each predict for the others is held against
//! the real runs there. Goes on where it was stopped. Needs root, `lab`, `merger` and `replay` beside it.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Parser;
use hadoptic_tests::interruption::Interruption;
use hadoptic_tests::prediction::cells::predict_all;
use hadoptic_tests::prediction::plan::Plan;
use hadoptic_tests::prediction::record::record;
use hadoptic_tests::prediction::summary;
use hadoptic_tests::prediction::table::{Origin, Row, write_ablations, write_rows};
use pages::chart::{Chart, Line, standing};

/// Runs jobs on several networks, predicts each from the captures of the others, and compares.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:\n  predict-matrix tests/prediction/plan.toml --out out/predict\n  predict-matrix \
                        tests/prediction/plan.toml --out out/predict --no-runs")]
struct Args {
    /// Which jobs, which networks, how often.
    plan: PathBuf,
    /// Folder of the runs' traces, matrix.csv, ablations.csv and matrix.svg; what is there already is not run again.
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
    /// Predict from the runs that are there.
    #[arg(long)]
    no_runs: bool,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let plan = Plan::read(&args.plan)?;
    let tell = |text: &str| trace::stderr::print(text);
    if !args.no_runs {
        record(&plan, &args.out, &Interruption::on_signals()?, &tell)?;
    }
    let matrix = predict_all(&plan, &args.out, &tell)?;
    ensure!(!matrix.rows.is_empty(), "{}: no runs on two networks of the plan", args.out.display());
    write_rows(&args.out.join("matrix.csv"), &matrix.rows, &Origin::here()?)?;
    write_ablations(&args.out.join("ablations.csv"), &matrix.ablations)?;
    std::fs::write(args.out.join("matrix.svg"), scatter(&matrix.rows))?;
    println!("{}", summary::text(&matrix.rows, &matrix.ablations));
    println!("{}", args.out.join("matrix.csv").display());
    Ok(())
}

/// Predicted over measured time; hollow where the prediction is of one capture.
fn scatter(rows: &[Row]) -> String {
    let mut jobs: Vec<String> = rows.iter().map(|row| format!("{} {}", row.job, row.version)).collect();
    jobs.sort_unstable();
    jobs.dedup();
    let line = |name: &String| Line {
        name: name.clone(),
        points: rows
            .iter()
            .filter(|row| format!("{} {}", row.job, row.version) == *name)
            .map(|row| (row.measured_median_s, row.predicted_s, row.captures == 1))
            .collect(),
    };
    let lines: Vec<Line> = jobs.iter().map(line).collect();
    let chart = Chart {
        title: "Predicted time (s)",
        over: "Median of the real runs (s)",
        places: &[],
        hollow: ", from one capture",
        diagonal: true,
        dots: true,
        joined: false,
    };
    standing(&chart.draw(&lines))
}
