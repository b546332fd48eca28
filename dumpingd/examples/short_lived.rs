//! Of how many connections of 1 ms dumpingd tells the owner, with the kernel's tracepoint and without it: `short_lived
//! DUMPINGD [CONNECTIONS [A_SECOND [LIFETIME_MS]]]`, as root, in a network namespace of its own (`ip netns add x; ip -n x
//! link set lo up; ip netns exec x target/release/examples/short_lived target/release/dumpingd 1000`).

use std::collections::HashMap;
use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use trace::files::read_json_lines;
use trace::socket::{Owner, SocketRecord};

/// Opens connections at a steady rate, each of which ends after `lifetime`; returns their own ends.
fn connect(connections: usize, a_second: f64, lifetime: Duration) -> Result<Vec<SocketAddr>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().take(connections).flatten() {
            // Until the other side closes.
            let _ = (&stream).read(&mut [0]);
        }
    });
    let mut ends = Vec::new();
    let began = Instant::now();
    for number in 0..connections {
        let due = Duration::from_secs_f64(number as f64 / a_second);
        thread::sleep(due.saturating_sub(began.elapsed()));
        let stream = TcpStream::connect(address)?;
        ends.push(stream.local_addr()?);
        thread::sleep(lifetime);
    }
    Ok(ends)
}

fn wait_until_ready(agent: &mut Child, folder: &Path) -> Result<()> {
    for _ in 0..500 {
        ensure!(agent.try_wait()?.is_none(), "dumpingd ended early");
        let text = std::fs::read_to_string(folder.join("dumpingd.json")).unwrap_or_default();
        if text.contains("\"ready\": true") {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(20));
    }
    anyhow::bail!("dumpingd is not ready after 10 s")
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let program = arguments.first().context("usage: short_lived DUMPINGD [CONNECTIONS [A_SECOND [LIFETIME_MS]]]")?;
    let number = |at: usize, default: f64| arguments.get(at).map_or(Ok(default), |text| text.parse::<f64>());
    let (connections, a_second, lifetime) = (number(1, 1000.0)?, number(2, 100.0)?, number(3, 1.0)?);
    for options in [&[][..], &["--no-tracepoint"]] {
        let folder = tempfile::tempdir()?;
        let mut agent = Command::new(program).args(["run", "--out"]).arg(folder.path()).args(options).spawn()?;
        wait_until_ready(&mut agent, folder.path())?;
        let ends = connect(connections as usize, a_second, Duration::from_secs_f64(lifetime / 1000.0))?;
        kill(Pid::from_raw(agent.id().cast_signed()), Signal::SIGTERM)?;
        agent.wait()?;
        let records = read_json_lines::<SocketRecord>(&folder.path().join("sockets.jsonl"))?.0;
        let owners: HashMap<SocketAddr, Owner> = records
            .iter()
            .filter_map(|record| match record {
                SocketRecord::Socket { local, owner: Some(owner), .. } => Some((*local, *owner)),
                _ => None,
            })
            .collect();
        let is_ours = |end: &&SocketAddr| owners.get(end).is_some_and(|owner| owner.pid == std::process::id());
        let owned = ends.iter().filter(is_ours).count();
        trace::stderr::print(format!(
            "{}: {owned} of {} connections of {lifetime} ms have their owner ({:.1}%)",
            if options.is_empty() { "with the tracepoint" } else { "without it" },
            ends.len(),
            owned as f64 * 100.0 / ends.len() as f64
        ));
    }
    Ok(())
}
