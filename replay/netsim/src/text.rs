//! Configurations as TOML. Readers and writers of all tables are compiled here, once, and not anew in each program that reads one.

use std::fmt;
use std::str::FromStr;

use crate::fabric::FabricConfig;
use crate::fabric::credit::CreditConfig;
use crate::fabric::ethernet::EthernetConfig;
use crate::fabric::input_output_queued::InputOutputQueuedConfig;
use crate::fabric::input_queued::InputQueuedConfig;
use crate::fabric::omni_path::OmniPathConfig;
use crate::fabric::rotor::RotorConfig;
use crate::fabric::spinnaker::SpinnakerRouterConfig;
use crate::fabric::store_and_forward::StoreAndForwardConfig;
use crate::topology::TopologyConfig;
use crate::traffic::TrafficConfig;

macro_rules! toml_text {
    ($($Config:ty),+ $(,)?) => { $(
        impl FromStr for $Config {
            type Err = toml::de::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                toml::from_str(text)
            }
        }

        impl fmt::Display for $Config {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&toml::to_string(self).map_err(|_| fmt::Error)?)
            }
        }
    )+ };
}

toml_text!(
    CreditConfig,
    EthernetConfig,
    FabricConfig,
    InputOutputQueuedConfig,
    InputQueuedConfig,
    OmniPathConfig,
    RotorConfig,
    SpinnakerRouterConfig,
    StoreAndForwardConfig,
    TopologyConfig,
    TrafficConfig
);
