//! Dimemas as a client of `replay dimemas`: the recorded exchange, and what it is answered.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::program;

const EXCHANGE: &str = include_str!("../../../replay/tests/data/dimemas-5.5.0.exchange");
/// The exchange has four nodes.
const NODES: &str = "4";
/// Far longer than any answer takes.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Ended when dropped, whatever has happened.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// All that the server answers, turn by turn.
pub(super) fn exchange(root: &Path, experiment: &str) -> Result<String> {
    let mut command = Command::new(program("replay")?);
    command.args(["dimemas", experiment, "--listen", "127.0.0.1:0", "--once", "--nodes", NODES]);
    let mut server = Server(command.current_dir(root).stderr(Stdio::piped()).spawn()?);
    let mut log = BufReader::new(server.0.stderr.take().context("the log is piped")?);
    let mut line = String::new();
    log.read_line(&mut line)?;
    let (_, address) = line.trim_end().split_once("listening on ").with_context(|| line.clone())?;
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut answers = String::new();
    for line in EXCHANGE.lines().filter_map(|line| line.strip_prefix("> ")) {
        stream.write_all(format!("{line}\n").as_bytes())?;
        if line != "END" {
            continue;
        }
        loop {
            let begin = answers.len();
            ensure!(reader.read_line(&mut answers)? > 0, "no answer to END: {answers}");
            if answers[begin..].trim_end() == "END" {
                break;
            }
        }
    }
    Ok(answers)
}
