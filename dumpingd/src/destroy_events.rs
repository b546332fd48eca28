//! The kernel's broadcast of dying TCP sockets, with their last counters: the only trace of connections that are
//! shorter than the interval between two scans.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use netlink_sys::{Socket, SocketAddr as NetlinkAddress, protocols::NETLINK_SOCK_DIAG};
use nix::errno::Errno;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{RcvBuf, RcvBufForce};

use crate::diag::{TcpSocket, parse_datagram};

/// `SKNLGRP_INET_TCP_DESTROY` and `SKNLGRP_INET6_TCP_DESTROY` (linux/sock_diag.h).
const GROUPS: [u32; 2] = [1, 3];

/// Room for the news of some 10,000 dying sockets while a scan is running, bytes.
pub const RECEIVE_BUFFER_BYTES: usize = 32 << 20;

/// Hears of dying sockets.
pub struct SocketDestroyEvents {
    socket: Socket,
    receive: Vec<u8>,
}

/// News of dying sockets.
#[derive(Debug, Default)]
pub struct DestroyBatch {
    /// The sockets; those that never had a peer are left out.
    pub died: Vec<TcpSocket>,
    /// How often the kernel had to drop messages, because the buffer was full.
    pub overruns: u64,
    /// Messages that could not be understood.
    pub malformed: u64,
}

impl SocketDestroyEvents {
    /// Subscribes, with room for so many bytes of news. Second value: a remark when the buffer could not be made as large as it should be.
    ///
    /// # Errors
    /// If the kernel does not broadcast, or not to us.
    pub fn subscribe(buffer_bytes: usize) -> io::Result<(Self, Option<String>)> {
        let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
        socket.bind(&NetlinkAddress::new(0, 0))?;
        for group in GROUPS {
            socket.add_membership(group)?;
        }
        let remark = match setsockopt(&socket, RcvBufForce, &buffer_bytes) {
            Ok(()) => None,
            Err(_) => {
                setsockopt(&socket, RcvBuf, &buffer_bytes)?;
                Some(
                    "without CAP_NET_ADMIN the buffer for the news of dying sockets is limited by net.core.rmem_max: \
                     some may be lost (they are counted)"
                        .to_owned(),
                )
            }
        };
        socket.set_non_blocking(true)?;
        Ok((Self { socket, receive: Vec::with_capacity(8192) }, remark))
    }

    /// What to wait for.
    #[must_use]
    pub fn waits_for(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Takes what has come, at most `limit` messages.
    ///
    /// # Errors
    /// If the socket fails.
    pub fn take(&mut self, limit: usize) -> io::Result<DestroyBatch> {
        let mut batch = DestroyBatch::default();
        for _ in 0..limit {
            self.receive.clear();
            match self.socket.recv(&mut self.receive, 0) {
                Ok(_) => {
                    let datagram = parse_datagram(&self.receive);
                    batch.malformed += datagram.malformed;
                    batch.died.extend(datagram.sockets.into_iter().filter(|socket| socket.remote.port() != 0));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.raw_os_error() == Some(Errno::ENOBUFS as i32) => batch.overruns += 1,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(batch)
    }
}
