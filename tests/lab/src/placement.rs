//! Where HDFS put blocks, as `fsck -files -blocks -locations` tells.

use crate::error::{Context, LabError, Result};
use trace::truth::BlockPlacement;

use crate::plan::Plan;

/// Reads the answer of fsck.
///
/// # Errors
/// If a block's line is not understood or names an address that no host of the lab has.
pub fn parse(answer: &str, plan: &Plan) -> Result<Vec<BlockPlacement>> {
    let mut file = None;
    let mut blocks = Vec::new();
    for line in answer.lines() {
        if let Some(path) = file_of(line) {
            file = Some(path);
        } else if let Some(rest) = block_of(line) {
            let file = file.ok_or_else(|| LabError::Parse(format!("fsck tells a block of no file: {line}")))?;
            let mut block = block(rest, plan).with_context(|| format!("fsck tells of a block: {line}"))?;
            block.file = file.to_owned();
            blocks.push(block);
        }
    }
    Ok(blocks)
}

/// "/a/b 1000 bytes, replicated: replication=1, 1 block(s):  OK"
fn file_of(line: &str) -> Option<&str> {
    let (path, _) = line.split_once(" bytes, ")?;
    let (path, bytes) = path.rsplit_once(' ')?;
    (path.starts_with('/') && bytes.bytes().all(|b| b.is_ascii_digit())).then_some(path)
}

/// What follows the number in "0. BP-..:blk_1_1001 len=1000 Live_repl=1  [..]", and in "0. blk_-1_1001 len=1000 repl=1
/// [..]" of Hadoop 1.x, whose block ids may be negative.
fn block_of(line: &str) -> Option<&str> {
    let (number, rest) = line.split_once(". ")?;
    let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    (is_number && (rest.starts_with("BP-") || rest.starts_with("blk_"))).then_some(rest)
}

fn block(text: &str, plan: &Plan) -> Result<BlockPlacement> {
    let missing = |what: &str| LabError::Parse(format!("no {what}"));
    let (id, _) = text.split_once(' ').ok_or_else(|| missing("blank after the block"))?;
    let (_, id) = id.split_once("blk_").ok_or_else(|| missing("block id"))?;
    let id = id.split('_').next().unwrap_or(id);
    let (_, length) = text.split_once(" len=").ok_or_else(|| missing("length"))?;
    let length: String = length.chars().take_while(char::is_ascii_digit).collect();
    let mut hosts = Vec::new();
    let (_, places) = text.split_once('[').unwrap_or_default();
    for part in places.split(", ").filter(|part| !part.trim_matches([']', ' ']).is_empty()) {
        let part = part.strip_prefix("DatanodeInfoWithStorage[").unwrap_or(part);
        let address = part.split(':').next().unwrap_or_default();
        let host = plan.hosts.iter().find(|host| host.address.to_string() == address);
        hosts.push(host.ok_or_else(|| LabError::Parse(format!("{address} is no host of the lab")))?.name.clone());
    }
    Ok(BlockPlacement {
        file: String::new(),
        block: format!("blk_{id}"),
        bytes: length.parse().context("no length")?,
        hosts,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    const ANSWER: &str = "\
FSCK started by root
/in <dir>
/in/_SUCCESS 0 bytes, replicated: replication=1, 0 block(s):  OK

/in/part-m-00000 4000000 bytes, replicated: replication=2, 1 block(s):  OK
0. BP-1-10.7.1.1-17:blk_1073741825_1001 len=4000000 Live_repl=2  [DatanodeInfoWithStorage[10.7.1.11:9866,DS-1,DISK], DatanodeInfoWithStorage[10.7.2.13:9866,DS-2,DISK]]

Status: HEALTHY
";

    #[test]
    fn blocks_are_joined_with_their_file_and_hosts() {
        let plan = Plan::new("lab", Some(7), 4).unwrap();
        let blocks = parse(ANSWER, &plan).unwrap();
        assert_eq!(blocks.len(), 1);
        assert_eq!(blocks[0].file, "/in/part-m-00000");
        assert_eq!(blocks[0].block, "blk_1073741825");
        assert_eq!(blocks[0].bytes, 4_000_000);
        assert_eq!(blocks[0].hosts, ["w1", "w3"]);
    }

    #[test]
    fn blocks_of_hadoop_1_are_understood() {
        let plan = Plan::new("lab", Some(7), 4).unwrap();
        let answer = "/in/part-00000 400 bytes, 1 block(s):  OK\n\
                      0. blk_-123_1003 len=400 repl=2 [10.7.1.11:50010, 10.7.2.13:50010]\n";
        let blocks = parse(answer, &plan).unwrap();
        assert_eq!((blocks[0].block.as_str(), blocks[0].bytes), ("blk_-123", 400));
        assert_eq!(blocks[0].hosts, ["w1", "w3"]);
    }

    #[test]
    fn a_strange_address_is_an_error() {
        let plan = Plan::new("lab", Some(8), 4).unwrap();
        assert!(format!("{:#}", parse(ANSWER, &plan).unwrap_err()).contains("10.7.1.11"));
    }
}
