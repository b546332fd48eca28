//! How long a connection context of RPC is that nobody can see: it tells the protocol, the user and (2.x and 3.x) the
//! caller, and travels in one segment with the first call.

/// Bytes of the length, of the delimiters of its two messages, of RpcRequestHeaderProto (kind, operation, call id, client
/// id, retry count), and of the field with the user.
const FIXED: u64 = 4 + 1 + 26 + 1 + 2;
/// Letters of the user's name, which no record tells: as many as in hdfs, yarn, root.
const USER: u64 = 4;
/// Letters of a protocol's name, where its methods do not tell: as many as in ClientProtocol.
const NAME: u64 = 46;

/// Protocols, by methods that only they have. All others are those of `ClientProtocol`, or close to it in length.
const PROTOCOLS: [(&str, &[&str]); 9] = [
    (
        "org.apache.hadoop.hdfs.server.protocol.DatanodeProtocol",
        &[
            "versionRequest",
            "registerDatanode",
            "sendHeartbeat",
            "blockReport",
            "blockReceivedAndDeleted",
            "cacheReport",
        ],
    ),
    (
        "org.apache.hadoop.hdfs.server.protocol.NamenodeProtocol",
        &["getTransactionID", "getTransactionId", "rollEditLog", "getEditLogManifest", "getMostRecentCheckpointTxId"],
    ),
    (
        "org.apache.hadoop.yarn.api.ApplicationClientProtocolPB",
        &["getNewApplication", "submitApplication", "getApplicationReport", "getClusterMetrics", "getClusterNodes"],
    ),
    (
        "org.apache.hadoop.yarn.api.ApplicationMasterProtocolPB",
        &["registerApplicationMaster", "allocate", "finishApplicationMaster"],
    ),
    (
        "org.apache.hadoop.yarn.api.ContainerManagementProtocolPB",
        &["startContainers", "stopContainers", "getContainerStatuses"],
    ),
    (
        "org.apache.hadoop.yarn.server.api.ResourceTrackerPB",
        &["registerNodeManager", "nodeHeartbeat", "unRegisterNodeManager"],
    ),
    ("org.apache.hadoop.yarn.server.nodemanager.api.LocalizationProtocolPB", &["heartbeat"]),
    (
        "org.apache.hadoop.mapreduce.v2.api.MRClientProtocolPB",
        &["getJobReport", "getTaskReport", "getTaskReports", "getTaskAttemptReport", "getCounters", "killJob"],
    ),
    (
        "org.apache.hadoop.mapred.TaskUmbilicalProtocol",
        &["getTask", "statusUpdate", "commitPending", "canCommit", "done", "getMapCompletionEvents", "ping"],
    ),
];

/// Protocols of 1.x, by methods that only they have there.
const PROTOCOLS_1: [(&str, &[&str]); 3] = [
    ("org.apache.hadoop.mapred.InterTrackerProtocol", &["heartbeat", "getTaskCompletionEvents", "getSystemDir"]),
    ("org.apache.hadoop.mapred.JobSubmissionProtocol", &["getNewJobId", "submitJob", "getJobStatus", "getJobProfile"]),
    (
        "org.apache.hadoop.hdfs.server.protocol.DatanodeProtocol",
        &["register", "sendHeartbeat", "blockReport", "blocksBeingWrittenReport", "blockReceived"],
    ),
];

/// Bytes of "hrpc", version and authentication in 1.x; a negotiation goes between them and the rest.
pub(super) const PREAMBLE_1: u64 = 6;

/// Bytes with which a connection of 1.x opens: "hrpc", version, authentication, and behind its length the protocol's
/// name, and whether and what users follow.
pub(super) fn bytes_1<'a>(mut methods: impl Iterator<Item = &'a str>, by_token: bool) -> u64 {
    let protocols = || PROTOCOLS_1.iter().chain(&PROTOCOLS[PROTOCOLS.len() - 1..]);
    let name = methods.find_map(|method| protocols().find(|(_, known)| known.contains(&method)));
    let name = name.map_or(NAME, |(name, _)| name.len() as u64);
    PREAMBLE_1 + 4 + 1 + name + 1 + if by_token { 0 } else { 2 + USER + 1 }
}

/// Bytes of the context of a connection on which these methods were called, by a caller with this context. A connection
/// that was negotiated by a token does not name its user again.
pub(super) fn bytes<'a>(mut methods: impl Iterator<Item = &'a str>, caller: &str, by_token: bool) -> u64 {
    let name = methods.find_map(|method| PROTOCOLS.iter().find(|(_, known)| known.contains(&method)));
    let name = name.map_or(NAME, |(name, _)| name.len() as u64);
    let caller = if caller.is_empty() { 0 } else { 4 + caller.len() as u64 };
    let user = if by_token { 0 } else { 2 + USER };
    FIXED + caller + user + 2 + name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_those_that_hadoop_1_sends() {
        assert_eq!(bytes_1(["getProtocolVersion", "addBlock"].into_iter(), false), 65);
        assert_eq!(bytes_1(["getProtocolVersion", "sendHeartbeat"].into_iter(), false), 74);
    }

    #[test]
    fn lengths_are_those_that_hadoop_3_4_sends() {
        let appmaster = "mr_appmaster_appattempt_1795248155390_0001_000001";
        let task = "mr_attempt_1795248155390_0001_m_000000_0";
        for (method, caller, by_token, seen) in [
            ("getFileInfo", "", false, 88),
            ("getFileInfo", appmaster, false, 141),
            ("create", task, false, 132),
            ("versionRequest", "", false, 97),
            ("registerNodeManager", "", false, 93),
            ("heartbeat", "", false, 110),
            ("getJobReport", "CLI", false, 102),
            ("getNewApplication", "CLI", false, 103),
            ("registerApplicationMaster", appmaster, true, 143),
            ("startContainers", appmaster, true, 145),
            ("startContainers", "", true, 92),
            ("getTask", task, true, 126),
        ] {
            assert_eq!(bytes([method].into_iter(), caller, by_token), seen, "{method} {caller}");
        }
    }
}
