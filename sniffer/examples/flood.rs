//! Sends TCP segments without a connection at a steady rate: `flood INTERFACE PACKETS_PER_SECOND SECONDS [BYTES]`. Prints
//! how many were sent. For measuring recorders on a veth pair: `sniffer/examples/measure.sh`.

use std::io::IoSlice;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use etherparse::PacketBuilder;
use nix::sys::socket::{
    AddressFamily, LinkAddr, MsgFlags, MultiHeaders, SockFlag, SockType, SockaddrLike, sendmmsg, socket,
};

/// Frames for one system call.
const AT_ONCE: usize = 64;

fn link_address(name: &str) -> Result<LinkAddr> {
    nix::ifaddrs::getifaddrs()?
        .find(|entry| {
            entry.interface_name == name && entry.address.is_some_and(|a| a.family() == Some(AddressFamily::Packet))
        })
        .and_then(|entry| entry.address?.as_link_addr().copied())
        .with_context(|| format!("there is no interface {name}"))
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let usage = "usage: flood INTERFACE PACKETS_PER_SECOND SECONDS [BYTES]";
    let [name, rate, seconds, rest @ ..] = arguments.as_slice() else { anyhow::bail!(usage) };
    let (rate, seconds) = (rate.parse::<f64>().context(usage)?, seconds.parse::<f64>().context(usage)?);
    let bytes = rest.first().map_or(Ok(1500), |text| text.parse::<usize>()).context(usage)?;
    let mut frames = Vec::new();
    for number in 0..u16::try_from(AT_ONCE)? {
        let mut frame = Vec::new();
        PacketBuilder::ethernet2([2; 6], [6; 6])
            .ipv4([10, 98, 0, 9], [10, 98, 0, 8], 64)
            .tcp(40_000 + number, 9866, 1, 1)
            .write(&mut frame, &vec![0; bytes.saturating_sub(54)])?;
        frames.push(frame);
    }
    let out = socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, None)?;
    let to = link_address(name)?;
    let slices: Vec<[IoSlice<'_>; 1]> = frames.iter().map(|frame| [IoSlice::new(frame)]).collect();
    let addresses = vec![Some(to); AT_ONCE];
    let mut headers = MultiHeaders::preallocate(AT_ONCE, None);
    let began = Instant::now();
    let mut sent = 0u64;
    while began.elapsed().as_secs_f64() < seconds {
        let due = (began.elapsed().as_secs_f64() * rate) as u64;
        if sent >= due {
            std::thread::sleep(Duration::from_micros(200));
            continue;
        }
        match sendmmsg(out.as_raw_fd(), &mut headers, &slices, &addresses, [], MsgFlags::empty()) {
            Ok(results) => sent += results.count() as u64,
            Err(nix::errno::Errno::ENOBUFS | nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    trace::stderr::print(format!("{sent} frames in {:.2} s", began.elapsed().as_secs_f64()));
    Ok(())
}
