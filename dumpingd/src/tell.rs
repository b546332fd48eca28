//! Tells whoever records packets what belongs to Hadoop's processes now: `ports.json`.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use trace::agent::write_atomically;
use trace::ports::{FILE, HadoopPorts, OpenConnection};
use trace::socket::Owner;

use crate::diag::{TcpSocket, TcpState};
use crate::processes::ProcessInfo;

/// Connections that are told at most: the file is written anew whenever one comes or goes.
const CONNECTIONS: usize = 20_000;

/// Writes the file when something has changed.
#[derive(Debug)]
pub struct Teller {
    path: PathBuf,
    told: Option<HadoopPorts>,
}

impl Teller {
    /// Into this folder.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self { path: folder.join(FILE), told: None }
    }

    /// Tells what is so at `t`, unless it was told already.
    ///
    /// # Errors
    /// If the file cannot be written; the next call tries again.
    pub fn tell(&mut self, t: u64, now: &HadoopPorts) -> io::Result<()> {
        let is_told =
            self.told.as_ref().is_some_and(|told| told.listen == now.listen && told.connections == now.connections);
        if is_told {
            return Ok(());
        }
        let now = HadoopPorts { version: 1, t, ..now.clone() };
        write_atomically(&self.path, &serde_json::to_vec(&now)?)?;
        self.told = Some(now);
        Ok(())
    }
}

/// What belongs to Hadoop among these sockets.
#[must_use]
pub fn hadoops<'a>(
    sockets: &[TcpSocket],
    owner_of: impl Fn(u64) -> Option<Owner>,
    processes: impl Iterator<Item = &'a ProcessInfo>,
) -> HadoopPorts {
    let hadoop: HashMap<Owner, String> = processes
        .filter(|process| process.is_hadoop())
        .map(|process| (process.owner, format!("{} {}", process.role, process.owner.pid)))
        .collect();
    let owned = |socket: &TcpSocket| owner_of(socket.inode).and_then(|owner| hadoop.get(&owner)).cloned();
    let mut found = HadoopPorts::default();
    for socket in sockets.iter().filter(|socket| socket.state == TcpState::LISTEN) {
        if let Some(who) = owned(socket) {
            found.listen.insert(socket.local.port(), who);
        }
    }
    for socket in sockets.iter().filter(|socket| socket.remote.port() != 0) {
        if found.connections.len() < CONNECTIONS
            && !found.listen.contains_key(&socket.local.port())
            && let Some(owner) = owned(socket)
        {
            found.connections.insert(OpenConnection { local: socket.local, remote: socket.remote, owner });
        }
    }
    found
}
