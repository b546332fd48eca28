//! Topologies as ibdiagnet writes them (`ibdiagnet.lst`): a line for each end of each cable.
//!
//! ```text
//! { CA Ports:01 SystemGUID:0000000000100000 NodeGUID:0000000000100000 PortGUID:0000000000100001 VenID:00000000 DevID:0000
//!   Rev:00000000 {node 1} LID:0001 PN:01 } { SW Ports:18 ... {spine} LID:0006 PN:01 } PHY=4x LOG=ACT SPD=10
//! ```
//!
//! All numbers are hexadecimal.

use super::super::text::{Graph, Wrong};
use super::devices::{DeviceDescription, Devices, Lid, lid, number, port};

/// Reads a file.
pub(in super::super) fn parse(text: &str) -> Result<Graph, Wrong> {
    let mut devices = Devices::default();
    for (line, content) in (1..).zip(text.lines()) {
        let content = content.trim();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        cable(&mut devices, content, line).map_err(|reason| Wrong { line, reason })?;
    }
    devices.finish()
}

fn cable(devices: &mut Devices, content: &str, line: usize) -> Result<(), String> {
    let (a, rest) = end(devices, content, line)?;
    let (b, rest) = end(devices, rest, line)?;
    if !rest.split_whitespace().all(|word| word.contains('=')) || rest.trim().is_empty() {
        return Err(format!(
            "\"{}\" is not understood: PHY=... LOG=... SPD=... end a line; is the file cut?",
            rest.trim()
        ));
    }
    devices.join(a, b, line)
}

/// One end of a cable, as a device and its port, and what follows.
fn end<'t>(devices: &mut Devices, text: &'t str, line: usize) -> Result<((usize, u8), &'t str), String> {
    let shape = "a line is { CA|SW Ports:.. NodeGUID:.. PortGUID:.. {DESCRIPTION} LID:.. PN:.. } twice, then PHY=.. LOG=.. SPD=..";
    let not_understood = |text: &str| format!("\"{}\" is not understood: {shape}", text.trim());
    let mut rest = text.trim_start().strip_prefix('{').ok_or_else(|| not_understood(text))?;
    let (mut kind, mut description) = (None, "");
    let (mut size, mut node, mut port_guid, mut own_lid, mut number_of_port) = (None, None, None, None, None);
    loop {
        rest = rest.trim_start();
        if let Some(behind) = rest.strip_prefix('}') {
            rest = behind;
            break;
        }
        if let Some(behind) = rest.strip_prefix('{') {
            (description, rest) = behind.split_once('}').ok_or_else(|| not_understood(text))?;
            continue;
        }
        let length = rest.find(|letter: char| letter.is_whitespace() || matches!(letter, '{' | '}'));
        let word;
        (word, rest) = rest.split_at(length.ok_or_else(|| not_understood(text))?);
        match word.split_once(':') {
            None if kind.is_none() && matches!(word, "CA" | "SW" | "RT" | "Rt") => kind = Some(word == "SW"),
            Some(("Ports", value)) => size = Some(port(value, 16)?),
            Some(("NodeGUID", value)) => node = Some(number::<u64>(value, 16, "a GUID")?),
            Some(("PortGUID", value)) => port_guid = Some(number::<u64>(value, 16, "a GUID")?),
            Some(("LID", value)) => own_lid = Some(lid(value, 16)?),
            Some(("PN", value)) => number_of_port = Some(port(value, 16)?),
            Some(_) => {}
            None => return Err(not_understood(word)),
        }
    }
    let missing = |key: &str| format!("an end of the cable has no {key}: {shape}");
    let switch = kind.ok_or_else(|| missing("CA or SW"))?;
    let guid = node.ok_or_else(|| missing("NodeGUID"))?;
    let port = number_of_port.ok_or_else(|| missing("PN"))?;
    let size = size.ok_or_else(|| missing("Ports"))?;
    let lid = own_lid.ok_or_else(|| missing("LID"))?.map(|base| Lid { base, lmc: 0 });
    let device = devices.number(&format!("{guid:016x}"));
    devices.describe(
        device,
        &DeviceDescription { switch, size, guid: Some(guid), description: description.trim() },
        line,
    )?;
    devices.address(device, port, lid, port_guid, line)?;
    Ok(((device, port), rest))
}
