//! Hears when interfaces come, go, or are put up or down: the kernel tells whoever asks (rtnetlink(7)), and nobody has to
//! look.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket};

/// `RTMGRP_LINK` (linux/rtnetlink.h).
const LINKS: u32 = 1;

/// Hears of interfaces of this network namespace.
#[derive(Debug)]
pub struct Arrivals {
    socket: OwnedFd,
}

impl Arrivals {
    /// Begins to listen; it needs no right.
    ///
    /// # Errors
    /// If the kernel has no such socket for us.
    pub fn listen() -> io::Result<Self> {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkRoute)?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, LINKS))?;
        Ok(Self { socket })
    }

    /// Whether something was told since the last call; what it was, the list of interfaces says.
    #[must_use]
    pub fn heard(&self) -> bool {
        let mut is_news = false;
        let mut bytes = [0; 4096];
        loop {
            match recv(self.socket.as_raw_fd(), &mut bytes, MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_TRUNC) {
                // More was told than there was room for: the list has it.
                Ok(_) | Err(Errno::ENOBUFS) => is_news = true,
                Err(Errno::EINTR) => {}
                Err(_) => return is_news,
            }
        }
    }
}

impl AsFd for Arrivals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
