//! Any text is read as a schedule or as flows, or refused; small ones come to an end, or it is said why not; never a panic.
use netsim::fabric::{self, FabricConfig};
use netsim::network::HostIndex;
use netsim::topology::HostPlace;
use program::{Driver, Options, ParseError, Program, Sequences, alog, dimemas, flows, goal, trc, vef};

/// What must hold for any input.
pub fn check(text: &str) {
    let read = [trc::read(text.as_bytes()), alog::read(text.as_bytes()), dimemas::read(text.as_bytes())];
    for sequences in read.into_iter().flatten() {
        if sequences.ranks().len() <= 64 {
            is_written(&sequences);
        }
        if let Ok(program) = sequences.program() {
            ends(&program);
        }
    }
    for read in [goal::read(text.as_bytes()), flows::read(text.as_bytes()), vef::read(text.as_bytes())] {
        match read {
            Ok(program) => ends(&program),
            Err(ParseError::Line { line, .. }) => assert!(line <= text.lines().count() as u64, "line {line}"),
            Err(_) => (),
        }
    }
}

/// What can be written as a trace is read as it was.
fn is_written(sequences: &Sequences) {
    let mut text = Vec::new();
    if trc::write(sequences, &mut text).is_ok()
        && let Ok(again) = trc::read(&text[..])
    {
        assert!(sequences.ranks().len() >= again.ranks().len());
    }
    let mut text = Vec::new();
    if alog::write(sequences, &mut text).is_ok()
        && let Ok(again) = alog::read(&text[..])
    {
        assert!(sequences.ranks().len() >= again.ranks().len());
    }
    let mut text = Vec::new();
    if dimemas::write(sequences, "fuzzed", &mut text).is_ok() {
        let again = dimemas::read(&text[..]).expect("what was written is read");
        assert_eq!(again.ranks(), sequences.ranks());
    }
}

fn ends(program: &Program) {
    if program.ranks() > 64 || program.operations() > 256 {
        return;
    }
    let config: FabricConfig =
        toml::from_str("kind = \"ideal\"\nlatency = \"1us\"\nrate = \"8Gbps\"").expect("a fabric");
    let place = |host| HostPlace { name: format!("n{host}"), rack: "r".to_owned() };
    let mut network =
        fabric::build(&config, &(0..program.ranks()).map(place).collect::<Vec<_>>()).expect("any hosts will do");
    let hosts: Vec<HostIndex> = (0..program.ranks()).map(HostIndex).collect();
    let mut driver = Driver::new(program, &hosts, Options::default());
    if let Ok(end) = driver.run(&mut network) {
        assert_eq!(driver.messages().len() as u64, program.messages());
        assert!(driver.messages().iter().all(|times| times.sent <= times.delivered && times.delivered <= end));
        assert!(driver.ranks_end().iter().all(|rank| *rank <= end));
    }
}
