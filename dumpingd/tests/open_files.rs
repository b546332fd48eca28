//! Whose a socket is, as files are opened, closed, given the numbers of others and doubled.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::net::TcpListener;
use std::os::fd::AsRawFd;

use dumpingd::numbers::NumberSet;
use dumpingd::owners::OwnerFinder;
use trace::agent::network_namespace;

fn inode(socket: &TcpListener) -> u64 {
    let target = fs::read_link(format!("/proc/self/fd/{}", socket.as_raw_fd())).unwrap();
    target.to_str().unwrap().strip_prefix("socket:[").unwrap().strip_suffix(']').unwrap().parse().unwrap()
}

/// Brings the finder up to date with these sockets, and counts those that are ours.
fn ours(finder: &mut OwnerFinder, open: &[TcpListener]) -> usize {
    let inodes: NumberSet = open.iter().map(inode).collect();
    finder.update(&inodes, true).unwrap();
    let is_ours = |inode: &&u64| finder.owner(**inode).is_some_and(|owner| owner.pid == std::process::id());
    inodes.iter().filter(is_ours).count()
}

#[test]
fn sockets_have_their_owner_whatever_number_they_get() {
    let socket = || TcpListener::bind("127.0.0.1:0").unwrap();
    let mut finder = OwnerFinder::new(network_namespace().unwrap());
    let mut open: Vec<TcpListener> = (0..100).map(|_| socket()).collect();
    assert_eq!(ours(&mut finder, &open), 100);
    // New ones behind the last one, more than free numbers are looked at in a row.
    open.extend((0..100).map(|_| socket()));
    assert_eq!(ours(&mut finder, &open), 200);
    // New ones with the numbers of old ones that are gone, and free numbers left between.
    let mut number = 0;
    open.retain(|_| {
        number += 1;
        number % 3 != 0
    });
    open.extend((0..40).map(|_| socket()));
    assert_eq!(ours(&mut finder, &open), open.len());
    // One whose number becomes that of another, while it lives on under a second number.
    let doubled = open[10].try_clone().unwrap();
    let freed = open[10].as_raw_fd();
    drop(open.remove(10));
    let new = socket();
    assert_eq!(new.as_raw_fd(), freed, "another number than the lowest free one was given");
    open.extend([doubled, new]);
    assert_eq!(ours(&mut finder, &open), open.len());
    // One whose socket was there before it was looked for.
    let early = socket();
    assert_eq!(ours(&mut finder, &open), open.len());
    open.push(early);
    assert_eq!(ours(&mut finder, &open), open.len());
}
