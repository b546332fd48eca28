//! Experiment files with random edits are read or refused, and never end in a panic; what is read can be written and read
//! again. The fuzz target `replay/fuzz/fuzz_targets/experiment.rs` says the same of any text.

use proptest::prelude::*;
use replay::experiment::{Override, Sweep};

const GOOD: [&str; 3] = [
    "name = \"a\"\n[traffic]\npattern = \"hot-spot\"\nspots = [0, 3]\nshare = 0.2\nload = [0.1, 0.5]\nflits = 8\nwarm_up = \
     \"100 cycles\"\nlevels = { 0 = 0.5, 1 = 0.5 }\n[fabric]\nkind = \"credit\"\nvls = 2\nsl_to_vl = [0, 1]\nrouting = \
     \"dor\"\n[fabric.topology]\nshape = \"torus\"\nsize = [4, 4]\nlink.length = \"5m\"\n[run]\nseeds = [1, 2]\n",
    "[traffic]\npattern = \"tornado\"\nradix = 4\nhosts = 16\nsize = \"4KiB\"\ninterval = \"2us\"\n[fabric]\nkind = \
     \"store-and-forward\"\nmtu = \"1500B\"\ntopology = { shape = \"single-switch\" }\n[run]\nseed = 7\n",
    "[workload]\ntrace = \"t\"\ncpu_factor = 0.5\ncpu_factors.map = 2.0\n[fabric]\nkind = \"ethernet\"\n[fabric.topology]\n\
     shape = \"fat-tree\"\nnodes = 16\nracks = 4\n",
];

/// What is put in: pieces that mean something here.
const PIECES: [&str; 28] = [
    "[",
    "]",
    "{",
    "}",
    "\"",
    "=",
    "\n",
    ",",
    ".",
    "-1",
    "0",
    "99999999999999999999",
    "1e400",
    "nan",
    "true",
    "[1, 2]",
    "{ sweep = [1, 2] }",
    "{ sweep = [] }",
    "[]",
    "traffic",
    "fabric",
    "sweep",
    "load",
    "\u{e4}",
    "'",
    "#",
    "0x",
    "seeds",
];

/// An edit: where (of the length), how much is taken out, what is put in.
fn edits() -> impl Strategy<Value = Vec<(prop::sample::Index, usize, usize)>> {
    prop::collection::vec((any::<prop::sample::Index>(), 0usize..12, 0..PIECES.len()), 1..5)
}

fn edited(text: &str, edits: &[(prop::sample::Index, usize, usize)]) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    for (place, out, piece) in edits {
        let from = place.index(letters.len() + 1);
        let until = (from + out).min(letters.len());
        letters.splice(from..until, PIECES[*piece].chars());
    }
    letters.into_iter().collect()
}

fn read(text: &str, changes: &[Override]) -> Result<(), TestCaseError> {
    let Ok(sweep) = Sweep::parse(text, "x.toml", changes) else { return Ok(()) };
    let effective = sweep.to_toml().unwrap();
    let again = Sweep::parse(&effective, "effective.toml", &[]);
    prop_assert!(again.is_ok(), "{effective}\n{:?}", again.err());
    let again = again.unwrap();
    // What a file says in another way (a full path, a name) stays the same experiment.
    let experiments = |sweep: Sweep| sweep.points.into_iter().map(|point| point.experiment).collect::<Vec<_>>();
    prop_assert_eq!(experiments(again), experiments(sweep));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn edited_experiments_are_read_or_refused(which in 0..GOOD.len(), edits in edits()) {
        read(&edited(GOOD[which], &edits), &[])?;
    }

    #[test]
    fn overrides_of_any_text_are_read_or_refused(which in 0..GOOD.len(), path in "[a-z_.]{1,20}", edits in edits(), value in ".{0,20}") {
        let known = ["traffic.load", "fabric.vls", "run.seeds", "fabric.topology.size", "traffic", "fabric.kind"];
        let value = edited(&value, &edits);
        let changes: Vec<Override> = known.iter().chain([&path.as_str()])
            .filter_map(|path| format!("{path}={value}").parse().ok()).collect();
        for change in &changes {
            read(GOOD[which], std::slice::from_ref(change))?;
        }
    }
}
