//! The deliverable's own parameter names, each in the submodule in which the deliverable has it, as keys of ours.
//!
//! The same name means different things in different submodules: `AckDelay` of the ToR is the time to deal with an answer,
//! that of the OPS the time to make one. So the names stand in tables as in the deliverable, `[fabric.tor.output]`,
//! `[fabric.ops.switch]`. Those whose meaning is clear may also stand in `[fabric]` itself. Everything is read here,
//! before the keys are: a name becomes its key, and two that give one key different values are an error.

use std::collections::BTreeMap;
use toml::{Table, Value};

/// A parameter: the table in which the deliverable has it, its name there, and our key.
pub struct Parameter {
    /// `module.submodule`; empty for what may stand in `[fabric]` itself.
    pub scope: &'static str,
    /// The deliverable's name.
    pub name: &'static str,
    /// Our key; behind `rack.`, a key of the network below the ToRs.
    pub key: &'static str,
}

const fn parameter(scope: &'static str, name: &'static str, key: &'static str) -> Parameter {
    Parameter { scope, name, key }
}

/// All parameters of the deliverable's chapter 2, in its order; then those that may stand alone.
pub const PARAMETERS: [Parameter; 56] = [
    parameter("tor.input", "maxVL", "rack.maxVL"),
    parameter("tor.input", "width", "rack.width"),
    parameter("tor.input", "maxStatic", "rack.credits"),
    parameter("tor.output", "AckDelay", "ack_delay"),
    parameter("tor.output", "TORMaxMgs", "tor_output_buffer"),
    parameter("tor.output", "flitSize", "flit_size"),
    parameter("tor.output", "maxVL", "rack.maxVL"),
    parameter("tor.output", "credMinTime", "rack.credit_min_time"),
    parameter("tor.output", "flit2FlitGap", "rack.flit_gap"),
    parameter("tor.output", "pkt2PktGap", "rack.packet_gap"),
    parameter("tor.control_ops", "TORBW", "tor_rate"),
    parameter("tor.control_ops", "TORMaxMgs", "tor_max_messages"),
    parameter("tor.control_ops", "CableDelay", "cable_to_ops"),
    parameter("tor.control_ops", "TorStartupDelay", "tor_startup_delay"),
    parameter("tor.control_ops", "TorPer3ByteDelay", "tor_per_3_byte_delay"),
    parameter("tor.control_ocs", "TORBW", "tor_ocs_rate"),
    parameter("tor.control_ocs", "TORMaxMgs", "tor_ocs_max_messages"),
    parameter("tor.control_ocs", "CableDelay", "cable_to_ocs"),
    parameter("tor.control_ocs", "maxDstLids", "max_destinations"),
    parameter("tor.control_ocs", "retryReqDelay", "retry_request_delay"),
    parameter("ops.switch", "numFibers", "fibers"),
    parameter("ops.switch", "numWavelengths", "wavelengths"),
    parameter("ops.switch", "OPSDelay", "ops_delay"),
    parameter("ops.output", "AckDelay", "ops_ack_delay"),
    parameter("ops.output", "CableDelay", "cable_from_ops"),
    parameter("ops.output", "OPSBW", "ops_rate"),
    parameter("ops.contention", "numFibers", "fibers"),
    parameter("ops.contention", "numWavelengths", "wavelengths"),
    parameter("ops.contention", "maxDstLids", "max_destinations"),
    parameter("ocs.switch", "numWavelengths", "ocs_wavelengths"),
    parameter("ocs.switch", "OCSDelay", "ocs_delay"),
    parameter("ocs.output", "AckDelay", "ocs_ack_delay"),
    parameter("ocs.output", "OCSBW", "ocs_rate"),
    parameter("ocs.output", "OCSOutputSize", "ocs_output_size"),
    parameter("ocs.output", "CableDelay", "cable_from_ocs"),
    parameter("ocs.output", "OCSFirstMessageDelay", "ocs_first_message_delay"),
    parameter("ocs.contention", "numFibers", "ocs_fibers"),
    parameter("ocs.contention", "numWavelengths", "ocs_wavelengths"),
    parameter("", "flitSize", "flit_size"),
    parameter("", "TORBW", "tor_rate"),
    parameter("", "TorStartupDelay", "tor_startup_delay"),
    parameter("", "startup", "tor_startup_delay"),
    parameter("", "optdelay", "tor_byte_delay"),
    parameter("", "TorPer3ByteDelay", "tor_per_3_byte_delay"),
    parameter("", "AckDelay", "ack_delay"),
    parameter("", "TORMaxMgs", "tor_max_messages"),
    parameter("", "CableDelay", "cable_delay"),
    parameter("", "numWavelengths", "wavelengths"),
    parameter("", "numFibers", "fibers"),
    parameter("", "OPSDelay", "ops_delay"),
    parameter("", "OPSBW", "ops_rate"),
    parameter("", "OCSDelay", "ocs_delay"),
    parameter("", "OCSBW", "ocs_rate"),
    parameter("", "OCSFirstMessageDelay", "ocs_first_message_delay"),
    parameter("", "retryReqDelay", "retry_request_delay"),
    parameter("", "maxDstLids", "max_destinations"),
];

/// Our keys, with what set them.
struct Keys {
    table: Table,
    /// By key: how the file has it.
    set_by: BTreeMap<String, String>,
}

/// `written` with our keys in place of the deliverable's names.
///
/// # Errors
/// When a name is not known where it stands, or two names (or a name and a key) give different values to one key; the
/// message begins with the path of what is wrong.
pub fn translated(mut written: Table) -> Result<Table, String> {
    let modules: Vec<(String, Table)> = ["tor", "ops", "ocs"]
        .into_iter()
        .filter_map(|module| match written.remove(module)? {
            Value::Table(table) => Some(Ok((module.to_owned(), table))),
            _ => {
                Some(Err(format!("fabric.{module} is a table of the deliverable's submodules: {}", submodules(module))))
            }
        })
        .collect::<Result<_, String>>()?;
    let mut keys = Keys { table: Table::new(), set_by: BTreeMap::new() };
    let (alone, own): (Vec<_>, Vec<_>) = written.into_iter().partition(|(key, _)| parameter_of("", key).is_some());
    for (key, value) in own {
        keys.set_by.insert(key.clone(), key.clone());
        keys.table.insert(key, value);
    }
    for (name, value) in alone {
        if let Some(parameter) = parameter_of("", &name) {
            keys.set(parameter, &name, value)?;
        }
    }
    for (module, submodules) in modules {
        keys.take_module(&module, submodules)?;
    }
    keys.complete_rack();
    Ok(keys.table)
}

/// Upper and lower case, blanks and `_` make no difference, for the deliverable itself is not strict with them.
fn plain(name: &str) -> String {
    let name: String = name.chars().filter(|letter| !matches!(letter, ' ' | '_' | '-')).collect();
    name.to_lowercase().replace("photoniccontention", "contention")
}

fn parameter_of(scope: &str, name: &str) -> Option<&'static Parameter> {
    // What stands in [fabric] itself is one of our keys but for its case, so there the name must be exact.
    let is = |known: &str| if scope.is_empty() { known == name } else { plain(known) == plain(name) };
    PARAMETERS.iter().find(|parameter| parameter.scope == scope && is(parameter.name))
}

fn submodules(module: &str) -> String {
    let mut names: Vec<&str> =
        PARAMETERS.iter().filter_map(|parameter| parameter.scope.strip_prefix(module)?.strip_prefix('.')).collect();
    names.dedup();
    names.join(", ")
}

impl Keys {
    fn take_module(&mut self, module: &str, submodules_given: Table) -> Result<(), String> {
        for (submodule, parameters) in submodules_given {
            let path = format!("fabric.{module}.{submodule}");
            let scope = PARAMETERS.iter().map(|parameter| parameter.scope).find(|scope| {
                scope.strip_prefix(module).and_then(|scope| scope.strip_prefix('.')).map(plain)
                    == Some(plain(&submodule))
            });
            let (Some(scope), Value::Table(parameters)) = (scope, parameters) else {
                return Err(format!(
                    "{path}: the deliverable's submodules of {module} are tables: {}",
                    submodules(module)
                ));
            };
            for (name, value) in parameters {
                let Some(parameter) = parameter_of(scope, &name) else {
                    let known = PARAMETERS.iter().filter(|parameter| parameter.scope == scope);
                    let known: Vec<&str> = known.map(|parameter| parameter.name).collect();
                    return Err(format!("{path}.{name} is not known: it has {}", known.join(", ")));
                };
                self.set(parameter, &format!("{module}.{submodule}.{name}"), value)?;
            }
        }
        Ok(())
    }

    /// Gives `parameter`'s key a value that the file has as `path`.
    fn set(&mut self, parameter: &Parameter, path: &str, value: Value) -> Result<(), String> {
        let key = parameter.key;
        let (table, last) = match key.strip_prefix("rack.") {
            Some(last) => (self.rack(path)?, last),
            None => (&mut self.table, key),
        };
        if let Some(other) = table.get(last)
            && *other != value
        {
            let known = self.set_by.get(key).map_or(key, String::as_str);
            return Err(format!("fabric.{path} contradicts fabric.{known}: both are {key}, with different values"));
        }
        table.insert(last.to_owned(), value);
        self.set_by.entry(key.to_owned()).or_insert_with(|| path.to_owned());
        Ok(())
    }

    /// The network below the ToRs, which must be InfiniBand for a parameter of InfiniBand.
    fn rack(&mut self, path: &str) -> Result<&mut Table, String> {
        let entry = self.table.entry("rack").or_insert_with(|| {
            Value::Table(Table::from_iter([("kind".to_owned(), Value::String("credit".to_owned()))]))
        });
        let kind = entry.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        match entry {
            Value::Table(rack) if kind == "credit" => Ok(rack),
            _ => Err(format!(
                "fabric.{path} is a parameter of InfiniBand's links, but fabric.rack.kind = \"{kind}\": it needs \"credit\""
            )),
        }
    }

    /// InfiniBand below the ToRs has the flits of their packets and, where only the width of its links was given, the
    /// speed of MareNostrum's, on which the deliverable's traces were made.
    fn complete_rack(&mut self) {
        let flit = self.table.get("flit_size").cloned();
        let Some(Value::Table(rack)) = self.table.get_mut("rack") else { return };
        if rack.get("kind").and_then(Value::as_str) != Some("credit") {
            return;
        }
        if let Some(flit) = flit
            && !rack.contains_key("flit")
            && !rack.contains_key("flitSize")
        {
            rack.insert("flit".to_owned(), flit);
        }
        if self.set_by.contains_key("rack.width") && !rack.contains_key("speed") {
            rack.insert("speed".to_owned(), Value::String("FDR10".to_owned()));
        }
    }
}
