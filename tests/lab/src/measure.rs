//! What the network really does: rates and round trips, measured with TCP connections between the hosts.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::error::{Context, LabError, Result};
use trace::truth::{Measured, TruthLink};

use crate::netns;
use crate::network::{BURST_BYTES, Shape, bridge};
use crate::plan::{HostPlan, Plan};
use crate::stop::Stop;
use crate::units::LinkRate;

/// Left out at the beginning of a transfer: slow start, and what the shaper had saved up.
const WARM_UP: Duration = Duration::from_millis(200);
/// Measured after it.
const WINDOW: Duration = Duration::from_millis(500);
/// A transfer that is not through by then hangs.
const LIMIT: Duration = Duration::from_secs(20);
/// A rate below what was set is measured again, as often at most: a busy machine slows a transfer, never speeds it up.
const TRIES: u32 = 3;
/// Round trips, of which the median counts.
const ROUND_TRIPS: usize = 201;
/// Payload of a full frame with time stamps, and the frame as the shaper counts it.
const PAYLOAD_OF_FRAME: (f64, f64) = (1448.0, 1514.0);
/// Deviation from the expected rate that is worth a word.
const TOLERANCE: f64 = 0.05;

/// Goodput that a shaped link should have: payload bits per second.
#[must_use]
pub fn expected_goodput_bps(set_bps: u64) -> f64 {
    set_bps as f64 * PAYLOAD_OF_FRAME.0 / PAYLOAD_OF_FRAME.1
}

/// Measures all links and round trips of a lab, one after the other.
///
/// A host's link is measured with its neighbour in the rack, or across the uplink where it is alone. What deviates from
/// the rate that was set by more than 5% is told in words.
///
/// # Errors
/// If a transfer fails or a signal came.
pub fn all(plan: &Plan, shape: &Shape, stop: &Stop) -> Result<(Vec<TruthLink>, Measured, Vec<String>)> {
    let mut links = Vec::new();
    for host in &plan.hosts {
        let mut link = link(&host.name, &bridge(host.rack), shape.links, shape.queue_packets);
        if let Some((peer, path)) = neighbour(plan, host, shape)
            && path == shape.links
        {
            link.measured_ab_bps = Some(best_rate_bps(host, peer, path, stop)?);
            link.measured_ba_bps = Some(best_rate_bps(peer, host, path, stop)?);
        }
        links.push(link);
    }
    let mut uplink = link(&bridge(0), &bridge(1), shape.uplink, shape.queue_packets);
    let near = plan.rack(0).nth(1).unwrap_or_else(|| plan.master());
    let far = plan.rack(1).next();
    if let Some(far) = far
        && shape.links.narrower(shape.uplink) == shape.uplink
    {
        uplink.measured_ab_bps = Some(best_rate_bps(near, far, shape.uplink, stop)?);
        uplink.measured_ba_bps = Some(best_rate_bps(far, near, shape.uplink, stop)?);
    }
    links.push(uplink);
    let rack_mate = plan.rack(0).next().filter(|mate| *mate != near);
    let measured = Measured {
        loopback_bytes_per_s: rate_bps(near, near, stop)? / 8.0,
        loopback_round_trip_ns: round_trip_ns(near, near)?,
        rack_round_trip_ns: rack_mate.map_or(Ok(0), |mate| round_trip_ns(mate, near))?,
        across_round_trip_ns: far.map_or(Ok(0), |far| round_trip_ns(near, far))?,
    };
    let problems = links.iter().flat_map(deviations).collect();
    Ok((links, measured, problems))
}

fn link(a: &str, b: &str, rate: LinkRate, queue_packets: u32) -> TruthLink {
    let shaped = rate.bps().is_some();
    TruthLink {
        a: a.to_owned(),
        b: b.to_owned(),
        set_bps: rate.bps(),
        queue_packets: if shaped { queue_packets } else { 0 },
        burst_bytes: if shaped { BURST_BYTES } else { 0 },
        ..TruthLink::default()
    }
}

/// The other end for measuring a host's link, and the narrowest rate on the path to it.
fn neighbour<'a>(plan: &'a Plan, host: &HostPlan, shape: &Shape) -> Option<(&'a HostPlan, LinkRate)> {
    let mate = plan.rack(host.rack).find(|other| other.name != host.name);
    let other = || plan.rack(1 - host.rack).next();
    mate.map(|mate| (mate, shape.links)).or_else(|| other().map(|far| (far, shape.links.narrower(shape.uplink))))
}

fn deviations(link: &TruthLink) -> Vec<String> {
    let Some(set) = link.set_bps else { return Vec::new() };
    let expected = expected_goodput_bps(set);
    [(&link.a, &link.b, link.measured_ab_bps), (&link.b, &link.a, link.measured_ba_bps)]
        .into_iter()
        .filter_map(|(from, to, measured)| {
            let measured = measured.filter(|m| (m / expected - 1.0).abs() > TOLERANCE)?;
            Some(format!(
                "the link from {from} to {to} was set to {:.1} Mbit/s and should carry {:.1} Mbit/s of payload, but {:.1} were measured",
                set as f64 / 1e6,
                expected / 1e6,
                measured / 1e6
            ))
        })
        .collect()
}

/// The best of a few measurements, or the first that is what was set.
fn best_rate_bps(from: &HostPlan, to: &HostPlan, set: LinkRate, stop: &Stop) -> Result<f64> {
    let enough = set.bps().map_or(0.0, |bps| expected_goodput_bps(bps) * (1.0 - TOLERANCE / 2.0));
    let mut best = 0.0_f64;
    for _ in 0..TRIES {
        stop.check()?;
        best = best.max(rate_bps(from, to, stop)?);
        if best >= enough {
            break;
        }
    }
    Ok(best)
}

/// Payload rate of one TCP connection, bits per second, as the receiver counts it.
fn rate_bps(from: &HostPlan, to: &HostPlan, stop: &Stop) -> Result<f64> {
    let (listener, address) = listen(to)?;
    let done = stop.clone();
    let sender = netns::spawn(&from.namespace, move || {
        let mut stream = connect(address)?;
        let block = [0x5a_u8; 1 << 16];
        // The receiver hangs up when it has seen enough; that ends the sending.
        while !done.is_set() && stream.write_all(&block).is_ok() {}
        Ok(())
    })?;
    let received = netns::spawn(&to.namespace, move || receive(&listener));
    let rate = netns::join(received?);
    netns::join(sender)?;
    rate.with_context(|| format!("cannot measure the rate from {} to {}", from.name, to.name))
}

fn receive(listener: &TcpListener) -> Result<f64> {
    let mut stream = accept(listener)?;
    let mut block = vec![0_u8; 1 << 18];
    let begin = Instant::now();
    let mut bytes = 0_u64;
    let mut counted_from = None;
    loop {
        let read = stream.read(&mut block).context("the transfer broke off")?;
        let now = Instant::now();
        match counted_from {
            None if now - begin >= WARM_UP => counted_from = Some(now),
            None => {}
            Some(from) => {
                bytes += read as u64;
                if now - from >= WINDOW {
                    return Ok(bytes as f64 * 8.0 / (now - from).as_secs_f64());
                }
            }
        }
        if read == 0 || now - begin > LIMIT {
            return Err(LabError::Failed(format!(
                "only {bytes} bytes arrived in {:.1} s",
                (now - begin).as_secs_f64()
            )));
        }
    }
}

/// Median round trip of one byte on a warm connection, nanoseconds.
fn round_trip_ns(from: &HostPlan, to: &HostPlan) -> Result<u64> {
    let (listener, address) = listen(to)?;
    let echoing = netns::spawn(&to.namespace, move || echo(accept(&listener)?).context("the echo broke off"))?;
    let times = netns::within(&from.namespace, move || round_trips(connect(address)?).context("the echo broke off"));
    netns::join(echoing)?;
    let times = times.with_context(|| format!("cannot measure round trips {} - {}", from.name, to.name))?;
    Ok(times[times.len() / 2])
}

/// Sends back each byte that comes.
fn echo(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut byte = [0_u8; 1];
    while stream.read(&mut byte)? == 1 {
        stream.write_all(&byte)?;
    }
    Ok(())
}

/// Times of single bytes there and back, nanoseconds, ascending.
fn round_trips(mut stream: TcpStream) -> io::Result<Vec<u64>> {
    stream.set_nodelay(true)?;
    let mut byte = [1_u8; 1];
    let mut times = Vec::with_capacity(ROUND_TRIPS);
    for _ in 0..ROUND_TRIPS {
        let begin = Instant::now();
        stream.write_all(&byte)?;
        stream.read_exact(&mut byte)?;
        times.push(begin.elapsed().as_nanos() as u64);
    }
    times.sort_unstable();
    Ok(times)
}

/// Listens on a host's own address. A host talks to itself over that too, as in Hadoop; the kernel takes it over `lo`.
fn listen(host: &HostPlan) -> Result<(TcpListener, SocketAddr)> {
    let address = host.address;
    netns::within(&host.namespace, move || {
        let bound = TcpListener::bind((IpAddr::V4(address), 0)).and_then(|listener| {
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            Ok((listener, address))
        });
        bound.with_context(|| format!("cannot listen on {address}"))
    })
}

fn accept(listener: &TcpListener) -> Result<TcpStream> {
    let end = Instant::now() + LIMIT;
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                let set = stream.set_nonblocking(false).and_then(|()| stream.set_read_timeout(Some(LIMIT)));
                return set.map(|()| stream).context("cannot accept a connection");
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if Instant::now() >= end {
                    return Err(LabError::Timeout(format!("nobody connected within {} s", LIMIT.as_secs())));
                }
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(error) => return Err(error).context("cannot accept a connection"),
        }
    }
}

fn connect(address: SocketAddr) -> Result<TcpStream> {
    let connected = TcpStream::connect_timeout(&address, LIMIT).and_then(|stream| {
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        Ok(stream)
    });
    connected.with_context(|| format!("cannot connect to {address}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn a_link_off_its_rate_is_told_and_one_on_it_is_not() {
        let mut link = link("w1", "r1", LinkRate::Shaped(100_000_000), 170);
        link.measured_ab_bps = Some(95.6e6);
        link.measured_ba_bps = Some(80e6);
        let said = deviations(&link);
        assert_eq!(said.len(), 1);
        assert!(said[0].contains("from r1 to w1") && said[0].contains("80.0"), "{said:?}");
    }
}
