//! `experiments`.

use std::process::ExitCode;

use anyhow::{Error, bail};
use clap::Args;
use comfy_table::ContentArrangement;
use comfy_table::presets::NOTHING;
use replay::experiment::{EXPERIMENTS, JOBS, Shipped};
use serde_json::json;

use super::common::say;
use super::table::new_table;

#[derive(Debug, Args)]
pub(super) struct ExperimentsArgs {
    /// Prints the file of this one.
    name: Option<String>,
    /// Prints one JSON array in place of lines.
    #[arg(long, conflicts_with = "name")]
    json: bool,
}

/// Lists the experiments and job files that are built in, or prints one.
pub(super) fn show(args: &ExperimentsArgs) -> Result<ExitCode, Error> {
    let kinds = [("experiment", EXPERIMENTS), ("job", JOBS)];
    if let Some(name) = &args.name {
        let mut all = kinds.iter().flat_map(|(_, files)| *files);
        let Some(file) = all.find(|file| file.name == name) else {
            bail!("{name}: nothing of this name is built in; without a name all are listed");
        };
        say(file.text.trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.json {
        let object = |kind: &str, file: &Shipped| json!({ "kind": kind, "name": file.name, "about": file.about() });
        let all = kinds.iter().flat_map(|(kind, files)| files.iter().map(|file| object(kind, file)));
        say(&serde_json::to_string_pretty(&all.collect::<Vec<_>>())?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = new_table(&["name", "", "what"]);
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    for (kind, file) in kinds.iter().flat_map(|(kind, files)| files.iter().map(move |file| (kind, file))) {
        let about = file.about();
        let sentence = about.split_once(". ").map_or(about.as_str(), |(first, _)| first).trim_end_matches('.');
        table.add_row([file.name, kind, sentence]);
    }
    say(&table.to_string())?;
    Ok(ExitCode::SUCCESS)
}
