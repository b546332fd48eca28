//! `tables`.

use std::process::ExitCode;

use anyhow::{Error, bail};
use clap::Args;
use replay::results::descriptions::describe;
use serde_json::{Value, json};
use trace_tables::describe::TableDescription;

use super::common::say;

#[derive(Debug, Args)]
pub(super) struct TablesArgs {
    /// Only those of this name.
    table: Option<String>,
    /// Prints one JSON array in place of Markdown.
    #[arg(long)]
    json: bool,
}

const HEAD: &str = "\
# Tables of results

Made by `replay tables` from the definition of the rows; the same text stands in each file's metadata (`hadoptic.table`, `hadoptic.columns`).
`replay tables NAME` shows those of a name, `--json` is for programs. Each is `NAME.parquet` in the folder of results, packed with zstd; numbers of
64 bits are signed. The tables of a trace are in [tables.md](tables.md).
";

/// Says what the tables of results mean.
pub(super) fn show(args: &TablesArgs) -> Result<ExitCode, Error> {
    let groups = describe();
    let is_asked = |table: &&TableDescription| args.table.as_ref().is_none_or(|name| table.name == name);
    let asked: Vec<(&str, &TableDescription)> = groups
        .iter()
        .flat_map(|(group, tables)| tables.iter().filter(is_asked).map(move |table| (*group, table)))
        .collect();
    if asked.is_empty() {
        let mut names: Vec<&str> =
            groups.iter().flat_map(|(_, tables)| tables.iter().map(|table| table.name)).collect();
        names.sort_unstable();
        names.dedup();
        bail!("{}: no such table; there are {}", args.table.as_deref().unwrap_or_default(), names.join(", "));
    }
    if args.json {
        let object = |(group, table): &(&str, &TableDescription)| {
            let mut object = table.to_json();
            object["group"] = json!(group);
            object
        };
        say(&serde_json::to_string_pretty(&asked.iter().map(object).collect::<Vec<Value>>())?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut page = if args.table.is_none() { HEAD.to_owned() } else { String::new() };
    let mut of_group = "";
    for (group, table) in asked {
        if group != of_group {
            page += &format!("\n# {group}\n");
            of_group = group;
        }
        page += &format!("\n{}", table.to_markdown());
    }
    say(page.trim())?;
    Ok(ExitCode::SUCCESS)
}
