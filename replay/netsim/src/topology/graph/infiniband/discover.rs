//! Topologies as `ibnetdiscover` prints them and ibsim reads them.
//!
//! ```text
//! switchguid=0x200000(200000)
//! Switch  24 "S-0000000000200000"     # "spine" base port 0 lid 6 lmc 0
//! [1]     "H-0000000000100000"[1](100001)     # "node 1" lid 1 4xQDR
//!
//! caguid=0x100000
//! Ca      1 "H-0000000000100000"      # "node 1"
//! [1](100001)     "S-0000000000200000"[1]     # lid 1 lmc 0 "spine" lid 6 4xQDR
//! ```
//!
//! What stands behind `#` is the only place of LIDs; ibsim's files have neither that nor GUIDs.

use super::super::text::{Graph, Wrong};
use super::devices::{DeviceDescription, Devices, Lid, lid, number, port};

/// Reads a file.
pub(in super::super) fn parse(text: &str) -> Result<Graph, Wrong> {
    let mut devices = Devices::default();
    let mut guid = None;
    let mut block = None;
    for (line, content) in (1..).zip(text.lines()) {
        let wrong = |reason| Wrong { line, reason };
        let content = content.trim();
        let (said, comment) = content.split_at(comment_begins(content));
        let said = said.trim();
        let first = said.split(|letter: char| letter.is_whitespace() || letter == '=').next().unwrap_or_default();
        if said.is_empty() || said.starts_with("ibwarn:") {
            // The tools say their warnings on stderr.
            continue;
        } else if said.starts_with('[') {
            let Some(block) = block else {
                return Err(wrong(format!("\"{said}\" is a port, but no line Switch or Ca stands before it")));
            };
            cable(&mut devices, block, said, comment, line).map_err(wrong)?;
        } else if let Some(switch) = kind(first) {
            block = Some(device(&mut devices, switch, guid.take(), said, comment, line).map_err(wrong)?);
        } else if matches!(first, "switchguid" | "caguid" | "rtguid") {
            let value = said[first.len()..].trim_start_matches([' ', '=']);
            guid = Some(number(value.split('(').next().unwrap_or_default(), 16, "a GUID").map_err(wrong)?);
        } else if !matches!(first, "vendid" | "devid" | "sysimgguid" | "Chassis" | "chassisguid") {
            let known = "a line is Switch, Ca (Hca) or Rt with ports and name, a port [1] \"NAME\"[2], or a key such as caguid=0x1";
            return Err(wrong(format!("\"{said}\" is not understood: {known}")));
        }
    }
    devices.finish()
}

/// Where a line's comment begins: # outside of quotes.
fn comment_begins(line: &str) -> usize {
    let mut quoted = false;
    let sign = line.char_indices().find(|(_, letter)| {
        quoted ^= *letter == '"';
        *letter == '#' && !quoted
    });
    sign.map_or(line.len(), |(at, _)| at)
}

/// Whether a word begins the block of a switch (`Some(true)`), or of another device.
fn kind(word: &str) -> Option<bool> {
    match word {
        "Switch" => Some(true),
        "Ca" | "Hca" | "Rt" => Some(false),
        _ => None,
    }
}

/// What stands between two signs, and what follows.
fn between(text: &str, open: char, close: char) -> Option<(&str, &str)> {
    text.trim_start().strip_prefix(open)?.split_once(close)
}

/// The description in a comment, what stands before it and behind it.
fn description(comment: &str) -> (&str, &str, &str) {
    match (comment.find('"'), comment.rfind('"')) {
        (Some(begin), Some(end)) if begin < end => (&comment[..begin], &comment[begin + 1..end], &comment[end + 1..]),
        _ => (comment, "", ""),
    }
}

/// `lid N`, and `lmc N` if it is there.
fn lid_in(text: &str) -> Result<Option<Lid>, String> {
    let mut words = text.split_whitespace();
    let mut value = |key: &str| words.find(|word| *word == key).and_then(|_| words.next());
    let Some(base) = value("lid").map(|text| lid(text, 10)).transpose()?.flatten() else { return Ok(None) };
    let lmc = value("lmc").map_or(Ok(0), |text| number::<u8>(text, 10, "an LMC"))?;
    if lmc > 7 {
        return Err(format!("lmc {lmc}: there are 0 to 7"));
    }
    Ok(Some(Lid { base, lmc }))
}

/// `Switch 24 "NAME"`.
fn device(
    devices: &mut Devices,
    switch: bool,
    guid: Option<u64>,
    said: &str,
    comment: &str,
    line: usize,
) -> Result<usize, String> {
    let shape =
        || format!("\"{said}\" is not understood: Switch or Ca, the number of ports and a name in quotes are needed");
    let rest = said.split_once(char::is_whitespace).map(|(_, rest)| rest).ok_or_else(shape)?;
    let (size, name) = rest.trim_start().split_once(char::is_whitespace).ok_or_else(shape)?;
    let (id, _) = between(name, '"', '"').filter(|(id, _)| !id.is_empty()).ok_or_else(shape)?;
    let size = port(size, 10)?;
    let guid = guid.or_else(|| guid_in(id));
    let (_, description, behind) = description(comment);
    let device = devices.number(id);
    if devices.is_described(device) {
        return Err(format!("\"{id}\" is described twice"));
    }
    devices.describe(device, &DeviceDescription { switch, size, guid, description }, line)?;
    if switch {
        devices.address(device, 0, lid_in(behind)?, None, line)?;
    }
    Ok(device)
}

/// The GUID in a name such as S-0002c902400a2f88.
fn guid_in(id: &str) -> Option<u64> {
    let digits = id.strip_prefix(['S', 'H', 'R'])?.strip_prefix('-')?;
    if digits.len() == 16 { number(digits, 16, "a GUID").ok() } else { None }
}

/// `[1](GUID) "NAME"[2](GUID)`; the GUIDs are those of adapters' ports.
fn cable(devices: &mut Devices, block: usize, said: &str, comment: &str, line: usize) -> Result<(), String> {
    let shape = || {
        format!("\"{said}\" is not understood: a port is [1] \"NAME\"[2], the other end's name and port behind its own")
    };
    let (own, rest) = between(said, '[', ']').ok_or_else(shape)?;
    let (own_guid, rest) = guid(external(rest))?;
    let (name, rest) = between(rest, '"', '"').filter(|(name, _)| !name.is_empty()).ok_or_else(shape)?;
    let (other, rest) = between(rest, '[', ']').ok_or_else(shape)?;
    let (other_guid, _) = guid(external(rest))?;
    let (own, other) = (port(own, 10)?, port(other, 10)?);
    let to = devices.number(name);
    devices.join((block, own), (to, other), line)?;
    let (before, _, behind) = description(comment);
    if !devices.is_switch(block) {
        devices.address(block, own, lid_in(before.trim_start_matches('#'))?, own_guid, line)?;
    }
    // Of the other end, which may not be described yet, a GUID says that it is an adapter.
    if other_guid.is_some() && !devices.is_switch(to) {
        devices.address(to, other, lid_in(behind)?, other_guid, line)?;
    }
    Ok(())
}

/// Leaves out a port's number on the outside, `[ext 5]`.
fn external(text: &str) -> &str {
    between(text, '[', ']').filter(|(inside, _)| inside.starts_with("ext")).map_or(text, |(_, rest)| rest)
}

/// A GUID in parentheses, if there is one, and what follows.
fn guid(text: &str) -> Result<(Option<u64>, &str), String> {
    match between(text, '(', ')') {
        None => Ok((None, text)),
        Some((guid, rest)) => Ok((Some(number(guid, 16, "a GUID")?), rest)),
    }
}
