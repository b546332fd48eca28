//! seccomp: system calls that fail from now on.

use std::collections::BTreeMap;

use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter_all_threads,
};

use super::needs::Needs;

/// Calls that no agent makes, on all architectures.
const NEVER: &[libc::c_long] = &[
    // Other processes' memory, files and registers.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    // Mounts and roots.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_quotactl,
    // Files by handle, past the folders above them.
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_mknodat,
    // The kernel itself.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_personality,
    // The host's name and clock.
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    // Other users.
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setfsuid,
    libc::SYS_setfsgid,
    libc::SYS_setgroups,
    // Namespaces of one's own.
    libc::SYS_unshare,
];

#[cfg(target_arch = "x86_64")]
const NEVER_HERE: &[libc::c_long] = &[
    libc::SYS_kexec_file_load,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_mknod,
    libc::SYS_uselib,
    libc::SYS_ustat,
    libc::SYS_sysfs,
];
#[cfg(not(target_arch = "x86_64"))]
const NEVER_HERE: &[libc::c_long] = &[];

/// Flags of clone(2) that make a namespace.
const NEW_NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWCGROUP,
];

/// Numbers of the x32 interface of x86_64 kernels: the same calls with this bit, some under another number.
#[cfg(target_arch = "x86_64")]
const X32: libc::c_long = 0x4000_0000;
/// execve, ptrace, kexec_load, process_vm_readv, process_vm_writev, execveat (arch/x86/entry/syscalls/syscall_64.tbl).
#[cfg(target_arch = "x86_64")]
const X32_NUMBERS: [libc::c_long; 6] = [520, 521, 528, 539, 540, 545];

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Denies from now on what is not needed, in all threads.
pub fn deny(needs: &Needs) -> Result<(), String> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH)
        .map_err(|_| format!("no filter for processors of kind {}", std::env::consts::ARCH))?;
    let mut refused: Rules = denied(needs).into_iter().map(|call| (call, Vec::new())).collect();
    refused.insert(libc::SYS_clone, namespaces().map_err(|error| error.to_string())?);
    // Its flags lie in memory that a filter cannot see. A libc that hears that there is no such call uses clone(2).
    let unknown = Rules::from([(libc::SYS_clone3, Vec::new())]);
    for (rules, errno) in [(refused, libc::EPERM), (unknown, libc::ENOSYS)] {
        apply(rules, errno, architecture).map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn denied(needs: &Needs) -> Vec<i64> {
    let mut calls = [NEVER, NEVER_HERE].concat();
    if !needs.starts_programs {
        calls.extend([libc::SYS_execve, libc::SYS_execveat]);
    }
    if !needs.enters_namespaces {
        calls.push(libc::SYS_setns);
    }
    #[cfg(target_arch = "x86_64")]
    {
        let x32: Vec<_> = calls.iter().copied().chain(X32_NUMBERS).map(|call| call | X32).collect();
        calls.extend(x32);
    }
    calls
}

/// One rule a flag: any of them is denied.
fn namespaces() -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let flag = |flag: libc::c_int| {
        let flag = u64::from(flag.unsigned_abs());
        let is_set = SeccompCondition::new(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(flag), flag)?;
        SeccompRule::new(vec![is_set])
    };
    NEW_NAMESPACES.into_iter().map(flag).collect()
}

fn apply(rules: Rules, errno: libc::c_int, architecture: TargetArch) -> Result<(), seccompiler::Error> {
    let action = SeccompAction::Errno(errno.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, architecture)?;
    let program: BpfProgram = filter.try_into()?;
    apply_filter_all_threads(&program)
}
