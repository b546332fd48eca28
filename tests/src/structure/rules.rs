//! What each crate may depend on: the table of ARCHITECTURE.md ("Invariants") held against what cargo says.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// A crate of the workspace.
#[derive(Clone, Debug, Default)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// What it is built on, tests apart.
    pub dependencies: BTreeSet<String>,
    /// The roots of its library and programs.
    pub roots: Vec<PathBuf>,
    /// Those of them whose unit tests are not built (`test = false`).
    pub untested: Vec<PathBuf>,
}

/// What a crate may and must not depend on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// The crates of this workspace that it may use directly.
    pub ours: BTreeSet<String>,
    /// Crates that it must not reach, itself or through crates of this workspace.
    pub never: BTreeSet<String>,
}

/// The crates of the workspace at `root`, as cargo describes them.
///
/// # Errors
/// If cargo cannot be run, or says something else.
pub fn packages(root: &Path) -> Result<Vec<Package>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["metadata", "--offline", "--no-deps", "--format-version", "1"];
    let output = Command::new(cargo).args(arguments).current_dir(root).output()?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let roots = |package: &Value, is_wanted: fn(&Value) -> bool| {
        let targets = list(&package["targets"]).into_iter();
        let programs = targets.filter(|target| list(&target["kind"]).iter().any(|kind| kind == "lib" || kind == "bin"));
        programs.filter(is_wanted).map(|target| text(&target["src_path"]).into()).collect()
    };
    let package = |package: &Value| Package {
        name: text(&package["name"]),
        dependencies: list(&package["dependencies"])
            .iter()
            .filter(|dependency| dependency["kind"] != "dev")
            .map(|dependency| text(&dependency["name"]))
            .collect(),
        roots: roots(package, |_| true),
        untested: roots(package, |target| target["test"] == false),
    };
    Ok(list(&metadata["packages"]).iter().map(package).collect())
}

/// Reads the rules: the rows of the table below "Invariants", `crate`, crates of ours, crates never.
///
/// # Errors
/// If there is no such table.
pub fn rules(text: &str) -> Result<BTreeMap<String, Rule>> {
    let (_, section) = text.split_once("\n## Invariants\n").context("no section \"Invariants\"")?;
    let section = section.split("\n## ").next().unwrap_or_default();
    let names = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<BTreeSet<_>>();
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').collect();
        let (name, rest) = cells.split_first()?;
        let name = names(name).pop_first()?;
        Some((name, Rule { ours: names(rest.first()?), never: names(rest.get(1)?) }))
    };
    let rules: BTreeMap<String, Rule> =
        section.lines().filter(|line| line.starts_with("| `")).filter_map(row).collect();
    ensure!(!rules.is_empty(), "no table below \"Invariants\"");
    Ok(rules)
}

/// What breaks the rules, a line each.
#[must_use]
pub fn broken(packages: &[Package], rules: &BTreeMap<String, Rule>) -> Vec<String> {
    let by_name: BTreeMap<&str, &Package> = packages.iter().map(|package| (package.name.as_str(), package)).collect();
    let mut lines = Vec::new();
    for package in packages {
        let Some(rule) = rules.get(&package.name) else {
            lines.push(format!("{}: ARCHITECTURE.md has no rule for it", package.name));
            continue;
        };
        let ours = package.dependencies.iter().filter(|name| by_name.contains_key(name.as_str()));
        lines
            .extend(ours.filter(|name| !rule.ours.contains(*name)).map(|name| format!("{} uses {name}", package.name)));
        let (mut reached, mut open) = (BTreeSet::new(), vec![package]);
        while let Some(at) = open.pop() {
            for name in at.dependencies.iter().filter(|name| reached.insert(name.as_str())) {
                open.extend(by_name.get(name.as_str()));
            }
        }
        let never = rule.never.iter().filter(|name| reached.contains(name.as_str()));
        lines.extend(never.map(|name| format!("{} reaches {name}", package.name)));
    }
    let stale = rules.keys().filter(|name| !by_name.contains_key(name.as_str()));
    lines.extend(stale.map(|name| format!("{name}: ARCHITECTURE.md has a rule for it, but there is no such crate")));
    lines
}
