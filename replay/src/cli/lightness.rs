//! `lightness`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Error};
use clap::Args;
use replay::experiment::Override;
use replay::published::fit;
use replay::published::{Chosen, LIGHTNESS, Outcome, Published, svg};

use super::common::{FOUND_WRONG, say};
use super::table;

#[derive(Debug, Args)]
pub(super) struct LightnessArgs {
    /// Files of published figures [default: those of LIGHTNESS' deliverable, which the program holds].
    files: Vec<PathBuf>,
    /// In place of that, searches what the deliverable leaves open for the readings that fit figures 19 and 21 together.
    #[arg(long, conflicts_with = "files")]
    fit: bool,
    /// Prints JSON in place of tables.
    #[arg(long)]
    json: bool,
    /// Folder to write published.json, published.txt and a picture (SVG) of each file to, or with --fit fit.json and
    /// fit.txt; made where it is missing.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replaces a value of each file by its path, such as fabric.window=4; with --fit, searches only readings that have this value; may
    /// be given more than once.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    overrides: Vec<Override>,
}

/// So many readings are shown as a table.
const SHOWN_READINGS: usize = 12;

/// Searches for the readings that fit figures 19 and 21.
fn show_fit(args: &LightnessArgs) -> Result<ExitCode, Error> {
    let chosen = Chosen::by(&args.overrides)?;
    let fits = chosen.of(fit::search());
    let family = fit::family(&fits);
    let at_10_gbit = fit::closest_at_10_gbit(|reading| chosen.has(reading));
    let json = serde_json::to_string_pretty(&serde_json::json!({
        "readings": fits.len(),
        "fits_ppm": fit::FITS_PPM,
        "family": family,
        "closest_at_10_gbit": at_10_gbit,
    }))?;
    let text = table::of_fits(&fits, at_10_gbit, SHOWN_READINGS);
    if let Some(folder) = &args.out {
        let named = || format!("cannot write to {}", folder.display());
        fs::create_dir_all(folder).with_context(named)?;
        fs::write(folder.join("fit.json"), &json).with_context(named)?;
        fs::write(folder.join("fit.txt"), &text).with_context(named)?;
    }
    say(if args.json { &json } else { text.trim_end() })?;
    Ok(ExitCode::SUCCESS)
}

/// Simulates published figures and puts both side by side.
pub(super) fn show(args: &LightnessArgs) -> Result<ExitCode, Error> {
    if args.fit {
        return show_fit(args);
    }
    let published: Vec<Published> = if args.files.is_empty() {
        LIGHTNESS.iter().map(|(name, text)| Published::parse(text, name, &args.overrides)).collect::<Result<_, _>>()?
    } else {
        args.files.iter().map(|path| Published::read(path, &args.overrides)).collect::<Result<_, _>>()?
    };
    let outcomes = published.iter().map(Published::run).collect::<Result<Vec<Outcome>, _>>()?;
    let json = serde_json::to_string_pretty(&outcomes)?;
    let text: String = outcomes.iter().map(table::of_published).collect();
    if let Some(folder) = &args.out {
        let named = || format!("cannot write to {}", folder.display());
        fs::create_dir_all(folder).with_context(named)?;
        fs::write(folder.join("published.json"), &json).with_context(named)?;
        fs::write(folder.join("published.txt"), &text).with_context(named)?;
        for outcome in &outcomes {
            let name = Path::new(&outcome.file).with_extension("svg");
            let picture = folder.join(name.file_name().unwrap_or_default());
            fs::write(picture, svg(outcome)).with_context(named)?;
        }
    }
    say(if args.json { &json } else { text.trim_end() })?;
    let all_right = outcomes.iter().flat_map(|outcome| &outcome.rows).all(|row| row.as_computed);
    Ok(ExitCode::from(if all_right { 0 } else { FOUND_WRONG }))
}
