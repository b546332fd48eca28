//! Any text is read as a routing file, or refused; what is taken leads everywhere; never a panic.

use netsim::routing::Routes;
use netsim::topology::TopologyConfig;

/// What must hold for any input.
pub fn check(text: &str) {
    let keys = "shape = \"fat-tree\"\nnodes = 4\nracks = 2";
    let topology = toml::from_str::<TopologyConfig>(keys).expect("good keys").build(&[]).expect("a good tree");
    if let Ok(routes) = Routes::from_table(text, "fuzz", &topology) {
        assert_eq!(routes.survey(&topology).expect("all pairs have a way").pairs, 12);
        let _ = routes.deadlock_freedom(&topology);
        let again = routes.to_table(&topology).expect("a table can be written");
        Routes::from_table(&again, "again", &topology).expect("what was written can be read");
    }
}
