//! What one scan costs, with as many sockets as told: `scan_cost [SOCKETS [SCANS]]`, in a network namespace of its own
//! (`ip netns add x; ip -n x link set lo up; ip netns exec x scan_cost 10000`).

use std::net::{TcpListener, TcpStream};

use anyhow::{Context, Result};
use dumpingd::diag::{Lister, Listing};
use dumpingd::network_namespace::{NetworkNamespace, SourceKind};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::time::{ClockId, clock_gettime};
use trace::agent::{network_namespace, now_ns};

fn cpu_us() -> Result<u128> {
    Ok(std::time::Duration::from(clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)?).as_micros())
}

/// Raises the limit of open files as far as it goes.
fn allow_files(wanted: u64) -> Result<()> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft < wanted {
        setrlimit(Resource::RLIMIT_NOFILE, wanted.min(hard), hard)?;
    }
    Ok(())
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: usize| arguments.next().map_or(Ok(default), |text| text.parse());
    let (sockets, scans) = (number(10_000)?, number(20)?);
    allow_files((sockets + 2 * scans) as u64 + 100)?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let mut open = Vec::new();
    while open.len() + 2 <= sockets {
        open.push(TcpStream::connect(address).context("more sockets need a higher `ulimit -n`")?);
        open.push(listener.accept()?.0);
    }
    let (mut namespace, _) = NetworkNamespace::own(network_namespace()?, SourceKind::Netlink)?;
    let mut costs = Vec::new();
    for scan in 0..scans {
        let before = cpu_us()?;
        let found = namespace.scan(now_ns(), false)?;
        let cost = cpu_us()? - before;
        if scan == 0 {
            trace::stderr::print(format!(
                "first scan: {} sockets, {} records, {cost} us of CPU",
                found.sockets,
                found.records.len()
            ));
        } else {
            costs.push(cost);
        }
    }
    costs.sort_unstable();
    let mut with_news = Vec::new();
    for _ in 0..scans {
        open.push(TcpStream::connect(address)?);
        open.push(listener.accept()?.0);
        let before = cpu_us()?;
        // Thorough, as this program is none of Hadoop's, which are looked through each time.
        namespace.scan(now_ns(), true)?;
        with_news.push(cpu_us()? - before);
    }
    with_news.sort_unstable();
    let mut lister = Lister::open()?;
    let mut listing_us = |ask: fn(&mut Lister) -> std::io::Result<Listing>| -> Result<u128> {
        let before = cpu_us()?;
        for _ in 0..20 {
            ask(&mut lister)?;
        }
        Ok((cpu_us()? - before) / 20)
    };
    let (at_once, by_family) = (listing_us(Lister::list_at_once)?, listing_us(Lister::list_by_family)?);
    trace::stderr::print(format!("of that, for the kernel's list: {at_once} us at once, {by_family} us by family"));
    for (what, costs) in [("nothing changed", costs), ("a new connection in each", with_news)] {
        if let (Some(least), Some(most)) = (costs.first(), costs.last()) {
            let median = costs[costs.len() / 2];
            trace::stderr::print(format!(
                "later scans, {what}: {least} / {median} / {most} us of CPU (least, median, most)"
            ));
        }
    }
    Ok(())
}
