//! Runs CAMINOS on one of its own configurations and prints what came out as JSON, for `make bench`.
//!
//!     peers CONFIG.cfg

use caminos_lib::config_parser::{ConfigurationValue, Token, parse};
use caminos_lib::{Plugs, Simulation};
use std::time::Instant;

fn main() {
    let path = std::env::args().nth(1).unwrap_or_else(|| fail("usage: peers CONFIG.cfg"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| fail(&format!("{path}: {error}")));
    let value = match parse(&text) {
        Ok(Token::Value(value)) => value,
        _ => fail(&format!("{path}: not a configuration of CAMINOS")),
    };
    let plugs = Plugs::default();
    let mut simulation = Simulation::new(&value, &plugs);
    let began = Instant::now();
    simulation.run();
    let wall_s = began.elapsed().as_secs_f64();
    let ConfigurationValue::Object(_, results) = simulation.get_simulation_results() else { fail("no results") };
    let servers = simulation.shared.network.servers.len();
    let mut line = format!("\n{{\"wall_s\": {wall_s}, \"servers\": {servers}");
    for (name, value) in results {
        if let ConfigurationValue::Number(number) = value {
            line.push_str(&format!(", \"{name}\": {number}"));
        }
    }
    println!("{line}}}");
}

fn fail(message: &str) -> ! {
    eprintln!("peers: {message}");
    std::process::exit(2);
}
