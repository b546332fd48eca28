//! Joins captures and prints the ten connections that carried most:
//! `cargo run --release -p merger --example largest_connections -- tests/golden/wordcount`

use std::cmp::Reverse;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use merger::build::{Silent, merge};
use trace::ids::ProcessId;

fn main() -> Result<()> {
    let captures: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    ensure!(!captures.is_empty(), "usage: largest_connections CAPTURE...");
    let merged = merge(&captures, &Silent)?;
    let joined = &merged.joined;
    let role = |process: Option<ProcessId>| match process {
        Some(process) => joined.processes[process.index()].role.as_str(),
        None => "?",
    };
    let mut connections: Vec<_> = joined.connections.rows().collect();
    connections.sort_by_key(|row| Reverse(row.client_bytes + row.server_bytes));
    for row in connections.iter().take(10) {
        println!(
            "{:>12} bytes {:<14} {} {} -> {} {}",
            row.client_bytes + row.server_bytes,
            row.protocol,
            role(row.client_process),
            row.client,
            role(row.server_process),
            row.server
        );
    }
    for loss in merged.losses() {
        println!("lost: {loss}");
    }
    Ok(())
}
