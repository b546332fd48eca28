//! Durations and sizes as people write them.

use std::time::Duration;

use proptest::prelude::*;
use trace::quantity::{parse_bytes, parse_duration, show_bytes};

#[test]
fn durations_carry_a_unit() {
    for (text, nanoseconds) in [
        ("1s", 1_000_000_000),
        ("200ms", 200_000_000),
        ("1.5 s", 1_500_000_000),
        ("5us", 5_000),
        ("2min", 120_000_000_000),
    ] {
        assert_eq!(parse_duration(text).unwrap(), Duration::from_nanos(nanoseconds), "{text}");
    }
    for text in ["", "1", "s", "-1s", "1 parsec", "1.2.3s", "99999999999999999999h"] {
        assert!(parse_duration(text).unwrap_err().contains("200ms"), "{text}");
    }
}

#[test]
fn sizes_know_powers_of_ten_and_two() {
    for (text, bytes) in [
        ("0", 0),
        ("4096", 4096),
        ("64KiB", 65_536),
        ("64K", 65_536),
        ("128 MiB", 134_217_728),
        ("1GB", 1_000_000_000),
        ("2gb", 2_000_000_000),
        ("1.5MiB", 1_572_864),
        ("0.3kB", 300),
    ] {
        assert_eq!(parse_bytes(text).unwrap(), bytes, "{text}");
    }
    for text in ["", "MiB", "1..5MiB", "1.MiB", ".5MiB", "1.0000000001GB", "-1", "1XB", "99999999999GiB"] {
        assert!(parse_bytes(text).unwrap_err().contains("128MiB"), "{text}");
    }
}

proptest! {
    #[test]
    fn what_is_shown_of_a_size_is_read_as_no_less(bytes in 0u64..1 << 60) {
        let again = parse_bytes(&show_bytes(bytes)).unwrap();
        prop_assert!(again >= bytes && again - bytes <= bytes / 10);
    }

    #[test]
    fn any_text_is_a_quantity_or_an_error(text in "\\PC{0,20}") {
        let _ = parse_duration(&text);
        let _ = parse_bytes(&text);
    }
}
