//! The structure that ARCHITECTURE.md describes is that of the code: no file needs one that needs it, and no crate depends on
//! what it must not know. No test ends before it has tested, and the simulator opens files with
//! bounds only.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use hadoptic_tests::structure::{
    Circle, Crate, Package, broken, circles, early_returns, early_returns_in, packages, rules, unbounded_opens,
};

fn root() -> PathBuf {
    fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap()
}

#[test]
fn no_file_needs_one_that_needs_it() {
    let root = root();
    let name = |file: &Path| file.strip_prefix(&root).unwrap_or(file).display().to_string();
    let mut found = BTreeMap::new();
    for package in packages(&root).unwrap() {
        for file in &package.roots {
            let circles = circles(&Crate::read(file).unwrap(), &name);
            found.extend(circles.into_iter().map(|circle| (circle.files, circle.ties)));
        }
    }
    let found: Vec<String> =
        found.iter().map(|(files, ties)| format!("{}\n  {}", files.join(", "), ties.join("\n  "))).collect();
    assert!(found.is_empty(), "files that need each other:\n{}", found.join("\n"));
}

#[test]
fn every_crate_keeps_the_invariants_of_the_architecture() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let broken = broken(&packages(&root()).unwrap(), &rules(&text).unwrap());
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn no_program_has_unit_tests_that_are_not_built() {
    let untested: Vec<PathBuf> = packages(&root()).unwrap().into_iter().flat_map(|package| package.untested).collect();
    let program = root().join("replay/src/main.rs");
    assert!(untested.contains(&program), "{} is built without its tests: {untested:?}", program.display());
    let files = |root: &PathBuf| Crate::read(root).unwrap().files().to_vec();
    assert!(files(&program).len() > 20, "the files of {} are found", program.display());
    let has_tests = |file: &PathBuf| fs::read_to_string(file).unwrap().contains("#[cfg(test)]");
    let found: Vec<PathBuf> = untested.iter().flat_map(files).filter(has_tests).collect();
    assert!(found.is_empty(), "take `test = false` out of their Cargo.toml: {found:?}");
}

#[test]
fn no_test_returns_before_its_end() {
    let found = early_returns(&root()).unwrap();
    assert!(found.is_empty(), "say why with #[ignore] or test_support::skip!:\n{}", found.join("\n"));
}

/// `replay/tests/experiment/named_files.rs` hands FIFOs, devices and files without an end to what names a file.
#[test]
fn what_reads_traces_and_experiments_opens_files_with_bounds_only() {
    let root = root();
    // What the kernel says of the process and the machine, and the program itself.
    let own = ["replay/netsim/src/cost.rs", "replay/netsim/rank/src/main.rs"];
    let name = |file: &Path| file.strip_prefix(&root).unwrap_or(file).display().to_string();
    let roots = packages(&root).unwrap().into_iter().flat_map(|package| package.roots);
    let roots: Vec<PathBuf> =
        roots.filter(|file| ["replay/", "trace/tables/"].iter().any(|folder| name(file).starts_with(folder))).collect();
    assert!(roots.len() > 10, "{roots:?}");
    let found: BTreeSet<(String, String)> = roots
        .iter()
        .flat_map(|file| unbounded_opens(&Crate::read(file).unwrap()))
        .map(|(file, way)| (name(&file), way))
        .collect();
    let files: BTreeSet<&str> = found.iter().map(|(file, _)| file.as_str()).collect();
    assert!(own.iter().all(|file| files.contains(file)), "what is found: {found:?}");
    let others: Vec<_> = found.iter().filter(|(file, _)| !own.contains(&file.as_str())).collect();
    assert!(others.is_empty(), "use netsim::files, or trace::folder where netsim is not known: {others:?}");
}

/// The circles of a crate whose files are made up.
fn circles_of(files: &[(&str, &str)]) -> Vec<Circle> {
    let read = |path: &Path| {
        let file = files.iter().find(|(name, _)| path == Path::new("/made").join(name));
        file.map(|(_, text)| (*text).to_owned()).with_context(|| path.display().to_string())
    };
    let name = |file: &Path| file.strip_prefix("/made").unwrap().display().to_string();
    circles(&Crate::of(Path::new("/made/lib.rs"), &read).unwrap(), &name)
}

#[test]
fn a_circle_is_found_with_what_ties_it() {
    let found = circles_of(&[
        ("lib.rs", "pub mod a; pub mod b; mod c;"),
        ("a/mod.rs", "mod deep; pub use deep::Deep; use crate::b::B; pub struct A(B);"),
        ("a/deep.rs", "pub struct Deep;"),
        ("b.rs", "use crate::c; pub struct B; fn f() { c::g(); }"),
        ("c.rs", "pub fn g() { let x = super::a::A::new(); matches!(x, crate::b::B); }"),
    ]);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].files, ["a/mod.rs", "b.rs", "c.rs"]);
    let ties = ["a/mod.rs -> b.rs: B", "b.rs -> c.rs: g", "c.rs -> a/mod.rs: A", "c.rs -> b.rs: B"];
    assert_eq!(found[0].ties.iter().map(String::as_str).collect::<BTreeSet<_>>(), BTreeSet::from(ties));
}

#[test]
fn what_a_macro_defines_is_needed_of_its_file() {
    let found = circles_of(&[
        ("lib.rs", "mod rows; mod store;"),
        ("rows.rs", "row! { Row in \"rows\" { id: u32 } } fn all() { super::store::COLUMNS; }"),
        ("store.rs", "use super::rows::Row; pub const COLUMNS: u32 = 1; fn write(row: &Row) {}"),
    ]);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].ties, ["rows.rs -> store.rs: COLUMNS", "store.rs -> rows.rs: Row"]);
}

#[test]
fn handing_a_name_on_tests_and_other_crates_make_no_circle() {
    let found = circles_of(&[
        ("lib.rs", "pub mod a;"),
        ("a/mod.rs", "mod deep; pub use deep::Deep; pub struct A; use a::Deep as Other; use std::fmt;"),
        ("a/deep.rs", "use super::A; pub struct Deep(A); #[cfg(test)] mod tests { use super::super::Deep; }"),
    ]);
    assert_eq!(found, []);
}

#[test]
fn a_test_that_returns_early_is_named_and_what_is_in_it_may_return() {
    let text = "fn helper() { return; } #[test] #[ignore = \"root\"] fn early() { if x { return; } }\
                mod tests { #[test] fn quiet() { let Some(y) = x else { return }; } }\
                #[test] fn late() { spawn(|| { return 1; }); fn inner() { return; } return Ok(()); skip!(\"no moon\"); }";
    assert_eq!(early_returns_in(text).unwrap(), ["early", "quiet"]);
}

#[test]
fn a_broken_rule_is_named() {
    let text = "# A\n\n## Invariants\n\n| crate | of ours | never |\n|---|---|---|\n| `net` | – | `polars` |\n\
                | `tables` | – | – |\n| `old` | – | – |\n\n## More\n\n| `net` | `tables` | – |\n";
    let package = |name: &str, dependencies: &[&str]| Package {
        untested: Vec::new(),
        name: name.to_owned(),
        dependencies: dependencies.iter().map(|name| (*name).to_owned()).collect(),
        roots: Vec::new(),
    };
    let packages = [package("net", &["tables", "serde"]), package("tables", &["polars"]), package("new", &[])];
    let lines = [
        "net uses tables",
        "net reaches polars",
        "new: ARCHITECTURE.md has no rule for it",
        "old: ARCHITECTURE.md has a rule for it, but there is no such crate",
    ];
    assert_eq!(broken(&packages, &rules(text).unwrap()), lines);
}
