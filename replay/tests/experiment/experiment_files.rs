//! Experiment files are read strictly: what is wrong is named with file, line, value and what is allowed.

use std::path::Path;

use causal::Causality;
use netsim::fabric::FabricConfig;
use replay::experiment::{Experiment, Override, Sweep};

fn error(text: &str, changes: &[&str]) -> String {
    let changes: Vec<Override> = changes.iter().map(|change| change.parse().unwrap()).collect();
    Experiment::parse(text, "x.toml", &changes).unwrap_err().to_string()
}

#[test]
fn a_place_in_a_list_is_a_step_of_a_path() {
    let text = "[traffic]\nhosts = 4\nload = [0.1, 0.3]\n[fabric]\nkind = \"ideal\"\nrate = \"1Gbps\"\n";
    let change = |text: &str| text.parse::<Override>().unwrap();
    let sweep = Sweep::parse(text, "x.toml", &[change("traffic.load.1=0.5")]).unwrap();
    let values: Vec<String> = sweep.axes[0].values.iter().map(ToString::to_string).collect();
    assert_eq!(values, ["0.1", "0.5"]);
    for (set, expected) in [
        (
            "traffic.load.2=0.5",
            "--set traffic.load.2=0.5: \"load\" is a list of 2: its places are steps of the path, load.0 the first",
        ),
        ("traffic.load.first=0.5", "\"load\" is a list of 2"),
        ("traffic.hosts.0=5", "--set traffic.hosts.0=5: \"hosts\" is a value and has no keys of its own"),
    ] {
        let found = error(text, &[set]);
        assert!(found.contains(expected), "{set}: {found}");
    }
}

#[test]
fn every_wrong_line_is_named_with_its_value_and_what_is_allowed() {
    // The file, the place, and what the message must say.
    let cases: &[(&str, &str, &[&str])] = &[
        ("", "x.toml", &["missing field `fabric`", "kind = \"ethernet\"", "`replay experiments`"]),
        ("name = ", "x.toml:1:", &[]),
        ("name = \"a\"\nname = \"b\"", "x.toml:2:1", &["duplicate"]),
        ("[fabric\nkind = \"ideal\"", "x.toml:1:", &[]),
        ("[fabric]\nrate = \"1Gbps\"", "x.toml:1:2", &["missing field `kind`"]),
        ("[fabric]\nkind = \"ethernett\"", "x.toml:2:8", &["ethernett", "ethernet", "ideal", "lightness"]),
        ("[fabric]\nkind = 3", "x.toml:2:8", &["3"]),
        ("[fabric]\nkind = \"ideal\"\n\nlatencyy = \"1us\"", "x.toml:4:1", &["`latencyy`", "latency", "rate"]),
        ("[fabric]\nkind = \"ideal\"\nlatency = \"5\"", "x.toml:3:11", &["\"5\" has no unit", "20us"]),
        ("[fabric]\nkind = \"ideal\"\nlatency = 5", "x.toml:3:11", &["\"5\" has no unit"]),
        ("[fabric]\nkind = \"ideal\"\nlatency = \"5 parsecs\"", "x.toml:3:11", &["unknown unit \"parsecs\""]),
        ("[fabric]\nkind = \"ideal\"\nrate = \"fast\"", "x.toml:3:8", &["\"fast\" is no rate", "10Gbps"]),
        ("[fabric]\nkind = \"ideal\"\nrate = \"0bps\"", "x.toml:3:8", &["above 0"]),
        ("[fabric]\nkind = \"ideal\"\nrate = \"-1Gbps\"", "x.toml:3:8", &["-1Gbps"]),
        ("[fabric]\nkind = \"ideal\"\nrate = true", "x.toml:3:8", &["true"]),
        ("[fabric]\nkind = \"ideal\"\nlatency = \"0.0001ps\"", "x.toml:3:11", &["too fine"]),
        ("[fabric]\nkind = \"ideal\"\nlatency = \"99999999999min\"", "x.toml:3:11", &["too large"]),
        ("nam = \"a\"\n[fabric]\nkind = \"ideal\"", "x.toml:1:1", &["`nam`", "`name`", "`workload`"]),
        ("[fabric]\nkind = \"ideal\"\n[workload]\ntracee = \"t\"", "x.toml:4:1", &["`tracee`", "`trace`"]),
        ("[fabric]\nkind = \"ideal\"\n[workload]\ntrace = 7", "x.toml:4:9", &["7", "expected"]),
        ("[fabric]\nkind = \"ideal\"\n[workload]\ncausality = \"none\"", "x.toml:4:13", &["`trace`", "`recorded`"]),
        ("[fabric]\nkind = \"ideal\"\n[workload]\ncpu_factor = 0", "x.toml:4:1", &["above 0"]),
        ("[fabric]\nkind = \"ideal\"\n[workload]\ncpu_factor = -1.5", "x.toml:4:1", &["-1.5", "above 0"]),
        ("[fabric]\nkind = \"ideal\"\n[workload]\ncpu_factor = nan", "x.toml:4:1", &["above 0"]),
        ("[fabric]\nkind = \"ideal\"\n[workload]\ncpu_factor = \"2\"", "x.toml:4:14", &["\"2\""]),
        ("[fabric]\nkind = \"ideal\"\n[workload.cpu_factors]\nmap = 0.0", "x.toml:4:1", &["cpu_factors.map"]),
        (
            "[fabric]\nkind = \"ethernet\"\ntopology = 3",
            "x.toml:3:12",
            &["integer `3`, expected a table, such as fabric.topology = { shape = \"racks\" }"],
        ),
        (
            "[fabric]\nkind = \"ethernet\"\n[fabric.topology]\nshape = \"racks\"\nuplink = \"1Gbps\"",
            "x.toml:5:10",
            &["expected a table with keys among `", "such as fabric.topology.uplink = { rate = \"1Gbps\" }"],
        ),
        ("[fabric]\nkind = \"ideal\"\n[workload]\nhandshakes = 1", "x.toml:4:14", &["1", "boolean"]),
        ("[fabric]\nkind = \"ideal\"\n[run]\nseed = -4", "x.toml:4:8", &["-4"]),
        ("[fabric]\nkind = \"ideal\"\n[run]\nsed = 4", "x.toml:4:1", &["`sed`", "`seed`"]),
        (
            "[fabric]\nkind = \"ethernet\"\nseed = 3\n[run]\nseed = 4",
            "x.toml:3:1",
            &["fabric.seed = 3", "run.seed = 4"],
        ),
        ("[fabric]\nkind = \"ethernet\"\nmtu = \"1500\"", "x.toml:3:7", &["\"1500\" has no unit"]),
        (
            "[fabric]\nkind = \"ethernet\"\n[fabric.topology]\nshape = \"ring\"",
            "x.toml:4:9",
            &["`ring`", "racks", "fat-tree"],
        ),
        (
            "[fabric]\nkind = \"ethernet\"\n[fabric.topology]\nshape = \"racks\"\nuplink = { rat = \"1Gbps\" }",
            "x.toml:5:12",
            &["`rat`", "`rate`"],
        ),
        (
            "[fabric]\nkind = \"credit\"\nrouting = { file = \"x\" }",
            "x.toml:3:",
            &["routing = { file = \"x\" } is not known", "\"d-mod-k\"", "\"file\" or { table = \"FILE\" }"],
        ),
        (
            "[fabric]\nkind = \"credit\"\nrouting = { table = 7 }",
            "x.toml:3:",
            &["routing = { table = 7 } is not known", "{ table = \"FILE\" }"],
        ),
        (
            "[fabric]\nkind = \"credit\"\nrouting = \"best\"",
            "x.toml:3:11",
            &["routing = \"best\" is not known", "\"ecmp\""],
        ),
        ("[fabric]\nkind = \"credit\"\nrouting = \"table\"", "x.toml:3:11", &["{ table = \"FILE\" }"]),
        (
            "[fabric]\nkind = \"ethernet\"\n[fabric.topology]\nshape = \"racks\"\nuplink.buffer = \"170\"",
            "x.toml:5:17",
            &["\"170\"", "170 packets"],
        ),
    ];
    assert!(cases.len() >= 25);
    for (text, place, parts) in cases {
        let message = error(text, &[]);
        assert!(message.starts_with(place), "{text:?}\n  gives: {message}\n  not at {place}");
        for part in *parts {
            assert!(message.contains(part), "{text:?}\n  gives: {message}\n  without {part}");
        }
    }
}

#[test]
fn a_key_that_is_not_known_says_which_may_have_been_meant() {
    let cases = [
        ("nam = \"a\"\n[fabric]\nkind = \"ideal\"", "did you mean `name`?"),
        ("[fabric]\nkind = \"ideal\"\nlatencyy = \"1us\"", "did you mean `latency`?"),
        (
            "[fabric]\nkind = \"ethernet\"\n[fabric.topology]\nshape = \"racks\"\nuplink = { rat = \"1Gbps\" }",
            "did you mean `rate`?",
        ),
    ];
    for (text, part) in cases {
        assert!(error(text, &[]).contains(part), "{}", error(text, &[]));
    }
    let far = error("[fabric]\nkind = \"ideal\"\nqueues = 3", &[]);
    assert!(far.contains("unknown field `queues`") && !far.contains("did you mean"), "{far}");
    // Where a guess would stand behind a long list of keys, there is no list.
    let long = error("[fabric]\nkind = \"lightness\"\nops_decisio = \"head\"", &[]);
    assert!(long.starts_with("x.toml:3:1: unknown field `ops_decisio`; did you mean `ops_decision`?\n"), "{long}");
    // Values of which only some are allowed get a guess too.
    let kind = error("[fabric]\nkind = \"ethernt\"", &[]);
    assert!(kind.starts_with("x.toml:2:8: unknown variant `ethernt`"), "{kind}");
    assert!(kind.contains("; did you mean `ethernet`?"), "{kind}");
    // A key that chooses what the others of its table are: by its name, or because all is good with it.
    let topology = "[fabric]\nkind = \"ethernet\"\n[fabric.topology]\n";
    for (text, place, key, meant) in [
        (format!("{topology}shpe = \"racks\""), "x.toml:4:1", "shpe", "shape"),
        (format!("{topology}Shape = \"rcks\"\nuplink = {{}}"), "x.toml:4:1", "Shape", "shape"),
        (format!("{topology}type = \"fat-tree\"\ncores = 3"), "x.toml:4:1", "type", "shape"),
        ("[fabric]\nknd = \"radio\"".to_owned(), "x.toml:2:1", "knd", "kind"),
        ("[fabric]\nmodel = \"credit\"\nvls = 2".to_owned(), "x.toml:2:1", "model", "kind"),
    ] {
        let printed = error(&text, &[]);
        let expected = format!("{place}: unknown field `{key}`; did you mean `{meant}`?\n");
        assert!(printed.starts_with(&expected) && printed.matches("x.toml").count() == 1, "{printed}");
    }
    let change = error(&format!("{topology}shape = \"racks\""), &["fabric.topology={ shpe = \"racks\" }"]);
    assert!(change.starts_with("--set fabric.topology={ shpe = \"racks\" }: unknown field `shpe`"), "{change}");
    let none = error(&format!("{topology}uplink = {{}}"), &[]);
    assert!(none.starts_with("x.toml:3:9: missing field `shape`"), "{none}");
    let far = error("[fabric]\nkind = \"radio\"", &[]);
    assert!(far.contains("unknown variant `radio`") && !far.contains("did you mean"), "{far}");
}

#[test]
fn all_keys_that_are_not_known_are_told_at_once() {
    let text = "nam = \"a\"\n[run]\nsed = 1\n[fabric]\nkind = \"ethernet\"\nmtuu = \"1500B\"\n[fabric.topology]\nshape = \"racks\"\n\
                [fabric.topolgy]\nracks = 1\n";
    let printed = error(text, &["workload.handshake=false"]);
    let places: Vec<&str> =
        printed.lines().filter(|line| line.contains("unknown field")).map(|line| &line[..10]).collect();
    assert_eq!(places, ["x.toml:1:1", "x.toml:3:1", "x.toml:6:1", "x.toml:9:9", "--set work"], "{printed}");
    for meant in ["`name`", "`seed`", "`mtu`", "`topology`", "`handshakes`"] {
        assert!(printed.contains(&format!("did you mean {meant}?")), "{meant}: {printed}");
    }
    // A wrong value is told by itself: what else is wrong may come of it.
    let value = error("nam = 1\n[fabric]\nkind = \"ideal\"\nlatency = \"5\"\n", &[]);
    assert_eq!(value.matches("x.toml:").count(), 1, "{value}");
}

#[test]
fn an_error_of_an_override_is_told_of_the_override() {
    let good = "[fabric]\nkind = \"ethernet\"\n[fabric.topology]\nshape = \"racks\"\n";
    let bad = "[run]\nseed = 1\n";
    for (text, changes, place) in [
        (good, &["fabric.mtu=3", "run.seed=2"][..], "--set fabric.mtu=3: "),
        (good, &["run.seed=2", "fabric.topology={ shape = \"rack\" }"], "--set fabric.topology={ shape"),
        (good, &["run.seed=2", "fabric={ kind = \"ideal\", late = 1 }"], "--set fabric={ kind"),
        (good, &["run.seed=2", "fabric.kind=ideal"], "--set fabric.kind=ideal: "),
        // What is wrong with the file is told of the file.
        (bad, &["run.seed=2"], "x.toml: missing field `fabric`"),
        ("[fabric]\nkind = \"ideal\"\nlate = 1\n", &["run.seed=2"], "x.toml:3:1: "),
        (bad, &["run.seed=2", "fabric.latency=1us", "run.seeds=3"], "--set fabric.latency=1us: "),
    ] {
        let printed = error(text, changes);
        assert!(printed.starts_with(place), "{changes:?}: {printed}");
    }
}

#[test]
fn a_wrong_value_is_found_by_its_key_and_not_by_what_it_says() {
    // The same value stands in several places, and only one of them is wrong.
    let seed = error("[workload.racks]\nm1 = \"-4\"\n[fabric]\nkind = \"ideal\"\n[run]\nseed = -4", &[]);
    assert!(seed.starts_with("x.toml:6:8: "), "{seed}");
    let rate = error("name = \"fast\"\n[fabric]\nkind = \"ideal\"\nrate = \"fast\"", &[]);
    assert!(rate.starts_with("x.toml:4:8: "), "{rate}");
    let key = error("[workload.racks]\nrat = \"r\"\n[fabric]\nkind = \"ideal\"\nrat = \"1Gbps\"", &[]);
    assert!(key.starts_with("x.toml:5:1: "), "{key}");
}

const GOOD: &str = "name = \"a\"\n[workload]\ntrace = \"t\"\n[fabric]\nkind = \"ethernet\"\n";

#[test]
fn a_wrong_override_is_named_as_such() {
    let cases = [
        ("fabric.mtu=1500", "--set fabric.mtu=1500: ", "no unit"),
        ("fabric.mtuu=1500B", "--set fabric.mtuu=1500B: ", "unknown field `mtuu`"),
        ("workload.causality=maybe", "--set workload.causality=maybe: ", "`recorded`"),
        ("name.first=3", "--set name.first=3: ", "\"name\" is a value"),
        ("workload.cpu_factor=0", "--set workload.cpu_factor=0: ", "above 0"),
    ];
    for (change, start, part) in cases {
        let message = error(GOOD, &[change]);
        assert!(message.starts_with(start) && message.contains(part), "{message}");
    }
    for text in ["nothing", "=3", "a..b=1"] {
        assert!(text.parse::<Override>().is_err(), "{text}");
    }
}

#[test]
fn overrides_replace_values_and_reach_tables_that_are_not_there() {
    let changes: Vec<Override> = ["fabric.mtu=9000B", "workload.cpu_factors.map=0.5", "run.seed=7", "name=b"]
        .iter()
        .map(|change| change.parse().unwrap())
        .collect();
    let experiment = Experiment::parse(GOOD, "x.toml", &changes).unwrap();
    assert_eq!((experiment.name.as_str(), experiment.run.seed), ("b", 7));
    assert_eq!(experiment.workload.cpu_factors["map"], 0.5);
    let FabricConfig::Ethernet(config) = experiment.fabric else { panic!("no Ethernet") };
    assert_eq!((config.mtu.get(), config.seed), (9_000, 7));
}

#[test]
fn the_effective_configuration_reads_back_as_the_same_experiment() {
    let experiment = Experiment::parse(GOOD, "x.toml", &[]).unwrap();
    let effective = experiment.to_toml().unwrap();
    assert_eq!(Experiment::parse(&effective, "effective.toml", &[]).unwrap(), experiment);
    for key in ["cpu_factor", "causality", "handshakes", "seed", "mtu", "initial_window"] {
        assert!(effective.contains(key), "{key} is missing in:\n{effective}");
    }
}

#[test]
fn traces_are_found_beside_the_file_and_files_give_their_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lab.toml");
    std::fs::write(&path, "[workload]\ntrace = \"traces/a\"\n[fabric]\nkind = \"ideal\"").unwrap();
    let experiment = Experiment::read(&path, &[]).unwrap();
    assert_eq!(experiment.name, "lab");
    assert_eq!(experiment.workload.trace.unwrap(), folder.path().join("traces/a"));
    assert_eq!(experiment.workload.causality, Causality::Trace);
    let missing = Experiment::read(Path::new("/nowhere/x.toml"), &[]).unwrap_err().to_string();
    assert!(missing.starts_with("/nowhere/x.toml: "), "{missing}");
}

#[test]
fn all_experiments_of_the_repository_are_good() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments");
    let mut names = Vec::new();
    // Folders below hold files of another form.
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    for path in paths.filter(|path| path.is_file()) {
        let experiment = Experiment::read(&path, &[]).unwrap();
        names.push(experiment.name);
    }
    names.sort();
    for name in ["ethernet-10g", "fat-tree", "ideal", "lab-100mbit", "lab-10mbit", "lightness-mixed"] {
        assert!(names.iter().any(|known| known == name), "{names:?}");
    }
}

#[test]
fn an_override_that_breaks_a_good_file_is_blamed_and_not_the_file() {
    let text = "[fabric]\nkind = \"ethernet\"\n[fabric.topology]\nshape = \"fat-tree\"\ncores = 2\n";
    let change = "fabric.kind=lightness";
    let message = error(text, &["run.seed=3", change]);
    assert!(message.starts_with("--set fabric.kind=lightness: unknown field `topology`"), "{message}");
    let shape = error(text, &["fabric.topology.shape=torus"]);
    assert!(shape.starts_with("--set fabric.topology.shape=torus: "), "{shape}");
}

#[test]
fn a_task_file_is_taken_from_the_folder_of_the_experiment_once() {
    let folder = tempfile::tempdir_in(".").unwrap();
    let text = "[fabric]\nkind = \"ideal\"\n[dispatcher]\ntaskFilename = \"tasks.txt\"\n";
    let relative = Path::new(folder.path().file_name().unwrap());
    std::fs::write(relative.join("e.toml"), text).unwrap();
    let experiment = Experiment::read(&relative.join("e.toml"), &[]).unwrap();
    assert_eq!(experiment.dispatcher.mapping_file().unwrap(), relative.join("tasks.txt"));
}

#[test]
fn keys_below_the_tors_are_named_where_they_stand() {
    let built = |text: &str| {
        let experiment = Experiment::parse(text, "x.toml", &[]).map_err(|error| error.to_string())?;
        let place =
            |host: &str, rack: &str| netsim::topology::HostPlace { name: host.to_owned(), rack: rack.to_owned() };
        netsim::fabric::build(&experiment.fabric, &[place("a", "r"), place("b", "s")])
            .map(|_| ())
            .map_err(|error| error.to_string())
    };
    let lightness = "[fabric]\nkind = \"lightness\"\n";
    let width = built(&format!("{lightness}[fabric.tor.input]\nwidth = 3\n")).unwrap_err();
    assert!(width.starts_with("fabric.rack.width = 3"), "{width}");
    let kind = built(&format!("{lightness}[fabric.rack.topology]\nshape = \"racks\"\n")).unwrap_err();
    assert!(kind.contains("fabric.rack has no kind"), "{kind}");
    let kind = built(&format!("{lightness}[fabric.rack]\nkind = \"credti\"\n")).unwrap_err();
    assert!(kind.contains("fabric.rack.kind = \"credti\"") && kind.contains("\"credit\""), "{kind}");
    let wavelengths = built(&format!("{lightness}numWavelengths = 0\n")).unwrap_err();
    assert!(wavelengths.starts_with("fabric.wavelengths = 0"), "{wavelengths}");
}
