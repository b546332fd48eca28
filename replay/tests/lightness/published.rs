//! The published figures as files, and the command that puts them beside simulated ones.

use replay::published::{LIGHTNESS, Published};
use std::path::Path;
use std::process::{Command, Output};

fn replay(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_replay")).args(arguments).output().unwrap()
}

#[test]
fn every_figure_is_what_the_models_arithmetic_gives() {
    let mut simulated = Vec::new();
    for (name, text) in LIGHTNESS.into_iter().filter(|(name, _)| *name != "mixed-fabrics.toml") {
        for row in Published::parse(text, name, &[]).unwrap().run().unwrap().rows {
            assert!(row.arithmetic_ps.is_some() && row.as_computed, "{name}: {row:?}");
            simulated.push((row.what, row.simulated_ps));
        }
    }
    let of = |what: &str| simulated.iter().find(|(known, _)| known == what).unwrap().1;
    assert_eq!(of("32 KB"), 22 * 1_678_000 + 32_768 * 2_150);
    assert_eq!(of("no cables, decided at the tail"), 3_276_000);
    assert_eq!(of("80 B, first") - of("80 B, second"), 753_000_000_000);
}

#[test]
fn the_same_servers_stand_on_several_fabrics() {
    let (name, text) = LIGHTNESS.into_iter().find(|(name, _)| *name == "mixed-fabrics.toml").unwrap();
    let rows = Published::parse(text, name, &[]).unwrap().run().unwrap().rows;
    // All messages arrive everywhere, and the fabrics are told apart.
    let mut times: Vec<u64> = rows.iter().map(|row| row.simulated_ps).collect();
    assert!(times.iter().all(|time| *time > 0), "{rows:?}");
    times.sort_unstable();
    times.dedup();
    assert_eq!(times.len(), rows.len(), "{rows:?}");
    assert!(rows.len() >= 5);
}

#[test]
fn a_row_is_compared_with_one_above_it_or_told_that_it_is_not_there() {
    let file = |less: &str| {
        let text = format!(
            "title = \"t\"\n[fabric]\nkind = \"ideal\"\nlatency = \"200ns\"\n[[message]]\nfrom = 0\nto = 1\nbytes = \"1B\"\n\
             [[row]]\nwhat = \"slow\"\n[[row]]\nwhat = \"fast\"\nset = {{ latency = \"150ns\" }}\n{less}\n"
        );
        Published::parse(&text, "f.toml", &[]).and_then(|published| published.run())
    };
    let outcome = file("less = [{ than = \"slow\", percent = 20.0 }]").unwrap();
    let less = &outcome.rows[1].less[0];
    assert!((less.simulated_percent - 25.0).abs() < 1e-9 && (less.points().unwrap() - 5.0).abs() < 1e-9, "{less:?}");
    let error = file("less = [{ than = \"slower\" }]").unwrap_err().to_string();
    assert!(error.contains("slower") && error.contains("no row above"), "{error}");
}

#[test]
fn the_program_holds_every_file_of_the_folder() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/lightness");
    let mut files: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    let mut held = LIGHTNESS.map(|(name, _)| name.to_owned());
    files.sort();
    held.sort();
    assert_eq!(files, held);
}

#[test]
fn the_command_shows_published_beside_simulated() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let output = replay(&["lightness", "--out", out.to_str().unwrap()]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    for shown in
        ["107,426 ns", "107,367.2 ns", "1,742 ns", "1,780.4 ns", "1,850 ns", "1,953.2 ns", "3,276 ns", "753,001,850 ns"]
    {
        assert!(text.contains(shown), "{shown} in {text}");
    }
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(out.join("published.json")).unwrap()).unwrap();
    assert_eq!(json.as_array().unwrap().len(), LIGHTNESS.len());
    let picture = std::fs::read_to_string(out.join("figure-16-collision.svg")).unwrap();
    assert!(picture.starts_with("<svg") && picture.trim_end().ends_with("</svg>"));
    for shown in ["3,276 ns", "3,776 ns", "decided at the head"] {
        assert!(picture.contains(shown), "{shown} in {picture}");
    }
    assert_eq!(std::fs::read_to_string(out.join("published.txt")).unwrap().trim_end(), text.trim_end());
}

#[test]
fn a_figure_that_does_not_come_out_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wrong.toml");
    let (_, text) = LIGHTNESS[2];
    std::fs::write(&path, text.replace("arithmetic = \"3276ns\"", "arithmetic = \"3277ns\"")).unwrap();
    let output = replay(&["lightness", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stdout).unwrap().contains("not as computed"));
}

#[test]
fn what_is_wrong_with_a_file_is_named() {
    let file = |fabric: &str, message: &str, row: &str| {
        let text = format!("title = \"t\"\n[fabric]\n{fabric}\n[[message]]\n{message}\n[[row]]\nwhat = \"w\"\n{row}\n");
        let error = Published::parse(&text, "f.toml", &[]).and_then(|published| published.run()).unwrap_err();
        error.to_string()
    };
    let (fabric, message, row) = ("kind = \"ideal\"", "from = 0\nto = 1", "bytes = \"1B\"");
    let lines = [
        (file(fabric, message, "bytes = \"1\""), "f.toml:9:9: "),
        (file("kind = \"lightness\"\nwindow = 0", message, row), "f.toml:4:1: row \"w\": fabric.window = 0"),
        (
            file("kind = \"lightness\"\nnumWavelengths = 0", message, row),
            "f.toml:4:1: row \"w\": fabric.numWavelengths = 0",
        ),
        // Keys of a row: those that are set for it, those of the run beside it, those of its own fabric.
        (
            file("kind = \"lightness\"", message, "bytes = \"1B\"\nset = { window = 0 }"),
            "f.toml:10:9: row \"w\": fabric.window = 0",
        ),
        (
            file(
                "kind = \"lightness\"\nwindow = 2",
                message,
                "bytes = \"1B\"\n[row.set]\ndecision = \"ocs\"\nwindow = 0",
            ),
            "f.toml:13:1: row \"w\": fabric.window = 0",
        ),
        (
            file("kind = \"lightness\"", message, "bytes = \"1B\"\nset = { numWavelengths = 0 }"),
            "f.toml:10:9: row \"w\": fabric.numWavelengths = 0",
        ),
        (
            file("kind = \"lightness\"", message, "bytes = \"1B\"\n[row.set.ops.switch]\nOPSDelay = \"1 parsec\""),
            "f.toml:11:1: row \"w\": fabric.ops",
        ),
        (
            file("kind = \"lightness\"", message, "bytes = \"1B\"\nset = { windw = 2 }"),
            "f.toml:10:9: row \"w\": fabric.windw: unknown field `windw`; did you mean `window`?",
        ),
        (
            file("kind = \"lightness\"", message, "bytes = \"1B\"\nbeyond = { wavelengths = 0 }"),
            "f.toml:10:12: row \"w\": fabric.wavelengths = 0",
        ),
        (
            file("kind = \"ideal\"", message, "bytes = \"1B\"\nfabric = { kind = \"lightness\", window = 0 }"),
            "f.toml:10:32: row \"w\": fabric.window = 0",
        ),
        (
            file("kind = \"ethernet\"", message, "bytes = \"1B\"\nset = { topology = { shpe = \"racks\" } }"),
            "f.toml:10:22: row \"w\": fabric.topology.shpe: unknown field `shpe`; did you mean `shape`?",
        ),
        (
            file(fabric, message, "bytes = \"1B\"\nsett = {}"),
            "f.toml:10:1: unknown field `sett`, expected one of `what`, `fabric`, `set`, `beyond`, `bytes`, `message`, `all`, `published`, \
             `arithmetic`, `less`; did you mean `set`?",
        ),
        (file(fabric, "form = 0\nto = 1", row), "f.toml:5:1: unknown field `form`, expected one of"),
        (file(fabric, message, "bytes = \"1B\"\nmessage = 2"), "f.toml:10:1: row \"w\": message = 2"),
        (file(fabric, message, ""), "f.toml:7:1: row \"w\": neither the row nor"),
        (file(fabric, "from = 0\nto = 2", row), "f.toml:6:1: host 2"),
    ];
    for (error, place) in lines {
        assert!(error.starts_with(place), "{place}: {error}");
    }
    let cases = [
        (file(fabric, "from = 0\nto = 2", row), "host 2"),
        (file(fabric, message, ""), "how many bytes"),
        (file(fabric, message, "bytes = \"1B\"\nmessage = 2"), "message = 2"),
        (file(fabric, message, "bytes = \"1B\"\nset = { speed = 1 }"), "`speed`"),
        (file(fabric, message, "bytes = \"1\""), "unit"),
        (file("kind = \"lightness\"\nwindow = 0", message, row), "fabric.window = 0"),
        (file(fabric, "from = 0\nto = 1\ncount = 0", row), "0 messages"),
    ];
    for (error, named) in cases {
        assert!(error.starts_with("f.toml:") && error.contains(named), "{named}: {error}");
    }
}

#[test]
fn keys_of_figures_can_be_set_and_the_fit_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let (name, text) = LIGHTNESS[2];
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    let file = path.to_str().unwrap();
    let output = replay(&["lightness", file, "--json", "--set", "fabric.ops_delay=1030ns"]);
    // A microsecond more at the switch is one more before the packet comes again.
    let rows: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(rows[0]["rows"][0]["simulated_ps"], 4_276_000);
    let wrong = replay(&["lightness", file, "--set", "fabric.windw=2"]);
    let printed = String::from_utf8(wrong.stderr).unwrap();
    assert!(wrong.status.code() == Some(2) && printed.contains("--set fabric.windw=2: row"), "{printed}");
    let out = folder.path().join("out");
    assert!(replay(&["lightness", "--fit", "--out", out.to_str().unwrap()]).status.success());
    let fit: serde_json::Value = serde_json::from_slice(&std::fs::read(out.join("fit.json")).unwrap()).unwrap();
    assert!(fit["family"].as_array().unwrap().len() > 1 && out.join("fit.txt").exists());
    // Those of the family in which keys have given values, of OPS and OCS and of InfiniBand.
    let chosen = ["lightness", "--fit", "--json", "--set", "fabric.window=1", "--set", "fabric.mtu=2KiB"];
    let output = replay(&chosen);
    let some: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    let is_chosen = |fit: &&serde_json::Value| {
        let reading = &fit["reading"];
        reading["optics"]["window"] == 1 && reading["infiniband"]["mtu"] == 2_048
    };
    let all: Vec<&serde_json::Value> = fit["family"].as_array().unwrap().iter().filter(is_chosen).collect();
    assert_eq!(some["family"].as_array().unwrap().iter().collect::<Vec<_>>(), all);
    assert_eq!(some["readings"].as_u64().unwrap(), fit["readings"].as_u64().unwrap() / 2 / 6);
    assert!(is_chosen(&&some["closest_at_10_gbit"]), "{some}");
    for (change, expected) in [
        ("fabric.window=3", "no reading has this value"),
        ("fabric.topology.uplink.rate=10Gbps", "its rate is what is searched"),
        ("fabric.windw=1", "unknown field `windw`"),
        ("window=1", "a path begins with fabric"),
    ] {
        let output = replay(&["lightness", "--fit", "--set", change]);
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{printed}");
        assert!(printed.contains(&format!("--set {change}: ")) && printed.contains(expected), "{printed}");
    }
}
