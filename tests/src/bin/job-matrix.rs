//! The matrix of generated and grown jobs: jobs are run in the lab in several settings, and what one recorded run says of the others
//! is held against the real runs there. Goes on where it was stopped. Needs root, `lab`, `merger` and `replay` beside it.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Parser;
use hadoptic_tests::interruption::Interruption;
use hadoptic_tests::job_matrix::cells::predict_all;
use hadoptic_tests::job_matrix::plan::Plan;
use hadoptic_tests::job_matrix::record::record;
use hadoptic_tests::job_matrix::summary;
use hadoptic_tests::job_matrix::table::write_rows;
use hadoptic_tests::prediction::table::Origin;

/// Runs jobs in several settings, makes each of a run in another one, and compares.
#[derive(Debug, Parser)]
#[command(
    after_help = "Examples:\n  job-matrix tests/jobs/plan.toml --out out/jobs\n  job-matrix tests/jobs/plan.toml --out \
                        out/jobs --no-runs"
)]
struct Args {
    /// Which jobs, which settings, how often.
    plan: PathBuf,
    /// Folder of the runs' traces and matrix.csv; what is there already is not run again.
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
    let scratch = tempfile::tempdir()?;
    let rows = predict_all(&plan, &args.out, scratch.path(), &tell)?;
    ensure!(!rows.is_empty(), "{}: no runs from which anything is predicted", args.out.display());
    let table = args.out.join("matrix.csv");
    write_rows(&table, &rows, &Origin::here()?)?;
    println!("{}", summary::text(&rows));
    println!("{}", table.display());
    Ok(())
}
