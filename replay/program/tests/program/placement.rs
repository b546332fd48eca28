//! Where ranks are.

use program::Placement;
use proptest::prelude::*;

#[test]
fn policies_are_those_of_insee() {
    let hosts = |placement: Placement, applications, ranks| placement.hosts(applications, ranks, 16).unwrap();
    assert_eq!(hosts(Placement::Consecutive, 2, 3), [0, 1, 2, 3, 4, 5]);
    assert_eq!(hosts(Placement::Shift(14), 1, 4), [14, 15, 0, 1]);
    // Four hosts to each of four switches: one rank under each, then the next.
    assert_eq!(hosts(Placement::Shuffle(4), 1, 6), [0, 4, 8, 12, 1, 5]);
    assert_eq!(hosts(Placement::Column(4, 4), 1, 6), [0, 4, 8, 12, 1, 5]);
    // On a grid that is no square as well: INSEE's code divides by the wrong side there.
    assert_eq!(hosts(Placement::Column(8, 2), 1, 5), [0, 8, 1, 9, 2]);
    assert_eq!(hosts(Placement::Quadrant(vec![4, 4]), 4, 2), [0, 1, 2, 3, 8, 9, 10, 11]);
    assert_eq!(hosts(Placement::Quadrant(vec![4, 2, 2]), 3, 2), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn applications_of_several_sizes_follow_one_another() {
    assert_eq!(Placement::Shift(14).hosts_of(&[1, 3], 16).unwrap(), [14, 15, 0, 1]);
    assert_eq!(Placement::Quadrant(vec![4, 4]).hosts_of(&[3, 1], 16).unwrap(), [0, 1, 4, 2]);
    assert!(Placement::Consecutive.hosts_of(&[9, 8], 16).unwrap_err().contains("9 + 8 ranks do not fit on 16 hosts"));
}

#[test]
fn policies_are_read_as_they_are_written() {
    for text in ["consecutive", "shift:3", "shuffle:4", "column:8x2", "quadrant:4x4x2", "random:9"] {
        assert_eq!(text.parse::<Placement>().unwrap().to_string(), text);
    }
    assert_eq!("random".parse(), Ok(Placement::Random(1)));
    for (text, expected) in [
        ("diagonal", "there are consecutive, shift:N"),
        ("shift:x", "\"x\" is no number"),
        ("column:8x2x2", "column has a grid of 2 sides"),
        ("quadrant:0x4", "\"0x4\" is no grid"),
    ] {
        let error = text.parse::<Placement>().unwrap_err();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    for (placement, applications, ranks, expected) in [
        (Placement::Consecutive, 3, 6, "3 x 6 ranks do not fit on 16 hosts"),
        (Placement::Shuffle(5), 1, 4, "16 hosts are no multiple of 5 to a switch"),
        (Placement::Shuffle(0), 1, 4, "no multiple of 0"),
        (Placement::Column(4, 3), 1, 4, "a grid of 4 x 3 is not 16 hosts"),
        (Placement::Quadrant(vec![16, 1]), 1, 4, "quadrants need 2 or 3 even sides"),
        (Placement::Quadrant(vec![4, 4]), 5, 2, "there are 4 boxes of 4 hosts"),
        (Placement::Quadrant(vec![4, 4]), 2, 5, "there are 4 boxes of 4 hosts"),
    ] {
        let error = placement.hosts(applications, ranks, 16).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

proptest! {
    #[test]
    fn no_two_ranks_share_a_host(x in 1u32..5, y in 1u32..5, applications in 1u32..5, ranks in 1u32..20, by in 0u32..99) {
        let (x, y) = (2 * x, 2 * y);
        let placements = [
            Placement::Consecutive,
            Placement::Shift(by),
            Placement::Shuffle(x),
            Placement::Column(x, y),
            Placement::Quadrant(vec![x, y]),
            Placement::Random(by.into()),
        ];
        for placement in placements {
            if let Ok(mut hosts) = placement.hosts(applications, ranks, x * y) {
                prop_assert_eq!(hosts.len() as u32, applications * ranks);
                hosts.sort_unstable();
                hosts.dedup();
                prop_assert_eq!(hosts.len() as u32, applications * ranks);
                prop_assert!(hosts.last().is_none_or(|last| *last < x * y));
            }
        }
    }
}
