//! Configuration files of others: what is put in can be taken out to the byte, or the file is refused with a reason.

use deploy::env_block;
use deploy::site_xml;
use deploy::versions::{Generation, launched, properties};

/// What must hold for any input.
pub fn check(input: &[u8]) {
    let lines = ["a=1".to_owned()];
    if let (Ok(with), false) = (env_block::install(input, &lines), env_block::is_in(input)) {
        assert_eq!(env_block::install(&with, &lines).as_deref(), Ok(with.as_slice()), "twice is once");
        assert_eq!(env_block::remove(&with).as_deref(), Ok(input), "what was put in goes");
    }
    let Ok(text) = std::str::from_utf8(input) else { return };
    let agent = launched("/opt/hadoptic");
    for generation in [Generation::One, Generation::Three] {
        let Ok(with) = site_xml::install(text, properties(generation), &agent, &[]) else { continue };
        if !site_xml::is_in(text) {
            assert_eq!(
                site_xml::remove(&with, std::slice::from_ref(&agent)).as_deref(),
                Ok(text),
                "what was put in goes"
            );
        }
    }
}
