//! Kernels: who sends to whom, and how long that takes where flows do not meet.

use program::{Kernel, KernelKind, Operation, Program, goal};

use super::run_with;

pub(super) const KINDS: [(KernelKind, u32); 13] = [
    (KernelKind::AllToAll, 1),
    (KernelKind::AllToOne, 1),
    (KernelKind::OneToAll, 1),
    (KernelKind::BinaryTree, 1),
    (KernelKind::Butterfly, 1),
    (KernelKind::Mesh, 2),
    (KernelKind::Torus, 2),
    (KernelKind::TorusAll, 3),
    (KernelKind::Sweep, 3),
    (KernelKind::Waterfall, 2),
    (KernelKind::NBodies, 1),
    (KernelKind::Gups, 1),
    (KernelKind::Random, 1),
];

pub(super) fn kernel(kind: KernelKind, sides: &[u32]) -> Kernel {
    Kernel { kind, sides: sides.to_vec(), bytes: 500, rounds: 10, coupled: 4, compute_ns_per_byte: 0, seed: 3 }
}

fn program(kind: KernelKind, sides: &[u32]) -> Program {
    kernel(kind, sides).sequences().unwrap().program().unwrap()
}

/// Ways of 1,500 ns each that a kernel takes, and its messages.
fn ways(kind: KernelKind, sides: &[u32]) -> (u64, u64) {
    let program = program(kind, sides);
    let ran = run_with(&program, 0).unwrap();
    assert_eq!(ran.end_ns % 1_500, 0, "{kind:?}");
    (ran.end_ns / 1_500, program.messages())
}

#[test]
fn each_takes_as_many_ways_as_its_longest_chain() {
    for ranks in [2u32, 4, 16, 64] {
        let (n, bits) = (u64::from(ranks), u64::from(ranks.ilog2()));
        assert_eq!(ways(KernelKind::AllToAll, &[ranks]), (1, n * (n - 1)));
        assert_eq!(ways(KernelKind::AllToOne, &[ranks]), (1, n - 1));
        assert_eq!(ways(KernelKind::OneToAll, &[ranks]), (1, n - 1));
        assert_eq!(ways(KernelKind::BinaryTree, &[ranks]), (bits, n - 1));
        assert_eq!(ways(KernelKind::Butterfly, &[ranks]), (bits, n * bits));
        // Half round the ring, and back.
        assert_eq!(ways(KernelKind::NBodies, &[ranks]), (n / 2 + 1, n * (n / 2 + 1)));
    }
    assert_eq!(ways(KernelKind::Mesh, &[5, 3]), (1, 2 * (4 * 3 + 5 * 2)));
    assert_eq!(ways(KernelKind::Mesh, &[3, 3, 2]), (1, 2 * (2 * 3 * 2 * 2 + 9)));
    assert_eq!(ways(KernelKind::TorusAll, &[4, 3]), (1, 4 * 12));
    assert_eq!(ways(KernelKind::Torus, &[8, 8]), (8, 8 * 64 * 2));
    assert_eq!(ways(KernelKind::Sweep, &[6, 4]), (5 + 3, 5 * 4 + 6 * 3));
    assert_eq!(ways(KernelKind::Sweep, &[3, 3, 3]), (6, 3 * 2 * 9));
    // Ten fronts: each is the 500 ns of a message behind the one before, which are three ways for nine of them.
    assert_eq!(ways(KernelKind::Waterfall, &[4, 4]), (6 + 3, 10 * 24));
}

#[test]
fn random_pairs_are_as_many_as_asked_and_never_one_rank() {
    for kind in [KernelKind::Gups, KernelKind::Random] {
        for ranks in [2, 3, 17] {
            let program = program(kind, &[ranks]);
            assert_eq!((program.messages(), program.operations()), (10, 20), "{kind:?}");
            run_with(&program, 0).unwrap();
        }
        let other = Kernel { seed: 4, ..kernel(kind, &[17]) }.sequences().unwrap();
        assert_ne!(other, kernel(kind, &[17]).sequences().unwrap());
    }
}

#[test]
fn what_a_rank_says_to_itself_is_left_out() {
    for (kind, dimensions) in KINDS {
        let sides = vec![1; dimensions as usize];
        match kernel(kind, &sides).sequences() {
            Ok(sequences) => assert_eq!(sequences.ranks(), [vec![]], "{kind:?}"),
            Err(_) => assert!(matches!(kind, KernelKind::NBodies | KernelKind::Gups | KernelKind::Random)),
        }
    }
}

#[test]
fn a_rank_calculates_before_each_send_where_asked() {
    let with = Kernel { compute_ns_per_byte: 10, ..kernel(KernelKind::Butterfly, &[4]) };
    let program = with.sequences().unwrap();
    let first = &program.ranks()[0];
    assert_eq!(first[0], Operation::Calculate { ns: 5_000 });
    assert_eq!(run_with(&program.program().unwrap(), 0).unwrap().end_ns, 2 * (5_000 + 1_500));
}

#[test]
fn sizes_that_are_not_possible_are_refused() {
    let error = |kind, sides: &[u32]| kernel(kind, sides).sequences().unwrap_err();
    assert!(error(KernelKind::Butterfly, &[6]).contains("6 ranks: this kernel needs a power of 2"));
    assert!(error(KernelKind::NBodies, &[5]).contains("5 ranks: this kernel needs an even number"));
    assert!(error(KernelKind::Gups, &[1]).contains("this kernel needs two"));
    assert!(error(KernelKind::Mesh, &[0, 4]).contains("0 ranks"));
    assert!(error(KernelKind::Mesh, &[1 << 20, 1 << 20]).contains("that many ranks"));
    assert!(error(KernelKind::AllToAll, &[1 << 20]).contains("operations"));
    let none = Kernel { coupled: 0, ..kernel(KernelKind::Random, &[4]) }.sequences().unwrap_err();
    assert!(none.contains("after 1 or more"));
}

#[test]
fn instances_have_ranks_of_their_own_and_take_as_long_as_one() {
    let one = program(KernelKind::Butterfly, &[8]);
    let three = one.repeated(3).unwrap();
    assert_eq!((three.ranks(), three.messages()), (24, 3 * one.messages()));
    let ran = run_with(&three, 40).unwrap();
    let alone = run_with(&one, 40).unwrap();
    assert_eq!(ran.ranks_ns, [&alone.ranks_ns[..], &alone.ranks_ns[..], &alone.ranks_ns[..]].concat());
    assert!(one.repeated(1 << 20).is_err());
    assert_eq!((one.applications(), three.applications()), (vec![8], vec![8; 3]));
}

#[test]
fn several_applications_run_at_once_as_each_alone() {
    let programs = [program(KernelKind::Butterfly, &[8]), program(KernelKind::OneToAll, &[5])];
    let both = Program::together(&[&programs[0], &programs[1], &programs[0]]).unwrap();
    assert_eq!((both.ranks(), both.applications()), (21, vec![8, 5, 8]));
    let [one, other] = programs.each_ref().map(|program| run_with(program, 40).unwrap().ranks_ns);
    assert_eq!(run_with(&both, 40).unwrap().ranks_ns, [&one[..], &other, &one].concat());
    let tagged = goal::read(&b"num_ranks 1\nrank 0 {\nl1: calc 5\n}\n"[..]).unwrap();
    assert!(Program::together(&[&programs[0], &tagged]).unwrap_err().contains("do not run together"));
}
