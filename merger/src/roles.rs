//! Which parts processes play of which no agent and no person has said it, by what they ask and answer.

use std::collections::{BTreeMap, BTreeSet};

use trace::ids::ProcessId;
use trace::rows::{MessageKind, ProcessRow};

use crate::compact::{Connections, ReadMessages};
use crate::processes::UNKNOWN_ROLE;

const LOCALIZER: &str = "ContainerLocalizer";

/// Calls that only one role makes, and only one answers; "" = several do. Hadoop 2 and 3: the protocols of HDFS and YARN.
const CALLS: [(&str, &str, &str); 27] = [
    ("sendHeartbeat", "DataNode", "NameNode"),
    ("registerDatanode", "DataNode", "NameNode"),
    ("blockReport", "DataNode", "NameNode"),
    ("blockReceivedAndDeleted", "DataNode", "NameNode"),
    ("getBlockLocations", "", "NameNode"),
    ("getFileInfo", "", "NameNode"),
    ("getListing", "", "NameNode"),
    ("addBlock", "", "NameNode"),
    ("complete", "", "NameNode"),
    ("create", "", "NameNode"),
    ("mkdirs", "", "NameNode"),
    ("renewLease", "", "NameNode"),
    ("getTransactionId", "SecondaryNameNode", "NameNode"),
    ("rollEditLog", "SecondaryNameNode", "NameNode"),
    ("registerNodeManager", "NodeManager", "ResourceManager"),
    ("nodeHeartbeat", "NodeManager", "ResourceManager"),
    ("registerApplicationMaster", "MRAppMaster", "ResourceManager"),
    ("allocate", "MRAppMaster", "ResourceManager"),
    ("finishApplicationMaster", "MRAppMaster", "ResourceManager"),
    ("getNewApplication", "Client", "ResourceManager"),
    ("submitApplication", "Client", "ResourceManager"),
    // The ResourceManager starts and stops application masters by these, too.
    ("startContainers", "", "NodeManager"),
    ("stopContainers", "", "NodeManager"),
    ("heartbeat", LOCALIZER, "NodeManager"),
    ("getMapCompletionEvents", "YarnChild", "MRAppMaster"),
    ("statusUpdate", "YarnChild", "MRAppMaster"),
    ("getTask", "YarnChild", "MRAppMaster"),
];
/// The same of Hadoop 1.x, whose tasks make some of the same calls.
const CALLS_1: [(&str, &str, &str); 7] = [
    ("heartbeat", "TaskTracker", "JobTracker"),
    ("submitJob", "Client", "JobTracker"),
    ("getTask", "Child", "TaskTracker"),
    ("statusUpdate", "Child", "TaskTracker"),
    ("sendHeartbeat", "DataNode", "NameNode"),
    ("addBlock", "", "NameNode"),
    ("getBlockLocations", "", "NameNode"),
];

/// Gives processes without a known role the one that all of their calls and answers tell, and says which these are. One that
/// works for a task attempt runs it, whatever it asks; one that asks for files, and on whose `listening` nobody could call, is
/// a client.
pub(crate) fn infer(
    messages: &ReadMessages,
    connections: &Connections,
    listening: &BTreeSet<ProcessId>,
    processes: &mut [ProcessRow],
) -> Vec<ProcessId> {
    let is_1 = messages.iter().any(|message| message.name == "heartbeat" && message.kind == MessageKind::RpcRequest)
        && !messages.iter().any(|message| message.name == "nodeHeartbeat" || message.name == "allocate");
    let (calls, shuffles, runner): (&[_], _, _) =
        if is_1 { (&CALLS_1, "TaskTracker", "Child") } else { (&CALLS, "NodeManager", "YarnChild") };
    let mut reported: BTreeMap<ProcessId, BTreeSet<&str>> = BTreeMap::new();
    // Of those that ask a NameNode or a DataNode: the attempts for which they work.
    let mut asking: BTreeMap<ProcessId, BTreeSet<Option<&str>>> = BTreeMap::new();
    for message in messages.iter() {
        let row = &connections[message.connection];
        let (client, server) = match message.kind {
            MessageKind::RpcRequest => {
                let call = calls.iter().find(|(name, ..)| message.name == *name);
                call.map_or(("", ""), |(_, client, server)| (*client, *server))
            }
            MessageKind::BlockRequest => ("", "DataNode"),
            MessageKind::ShuffleRequest => ("", shuffles),
            _ => continue,
        };
        if let Some(process) = row.client_process.filter(|_| matches!(server, "NameNode" | "DataNode")) {
            asking.entry(process).or_default().insert(message.attempt);
        }
        for (process, role) in [(row.client_process, client), (row.server_process, server)] {
            if let Some(process) = process.filter(|_| !role.is_empty()) {
                reported.entry(process).or_default().insert(role);
            }
        }
    }
    for (process, attempts) in asking.into_iter().filter(|(process, _)| !listening.contains(process)) {
        let named = attempts.iter().flatten().count();
        let role = match named {
            0 => "Client",
            1 => runner,
            _ => continue,
        };
        let roles = reported.entry(process).or_default();
        if roles.is_empty() {
            roles.insert(role);
        }
    }
    // A NodeManager that fetches files for containers itself does so as the localizer that others start.
    for roles in reported.values_mut().filter(|roles| roles.len() > 1) {
        roles.remove(LOCALIZER);
    }
    let mut inferred = Vec::new();
    for (process, roles) in reported {
        let row = &mut processes[process.index()];
        if row.role == UNKNOWN_ROLE
            && let (1, Some(role)) = (roles.len(), roles.first())
        {
            (*role).clone_into(&mut row.role);
            inferred.push(process);
        }
    }
    inferred
}
