"""System calls: seccomp filters on the calling thread, inherited by everything that it starts.

A denied call fails with EPERM, as on a kernel that does not permit it to this user. Calls of
another ABI than this machine's (32-bit calls) end the process.
"""

from __future__ import annotations

import errno
import os
import threading
from functools import cache
from typing import Any

# Network calls, and the calls that bypass a filter on them.
_NETWORK_CALLS = ("socketpair", "io_uring_setup", "io_uring_enter", "io_uring_register")
# Socket types (linux/net.h) except SOCK_SEQPACKET; flags are in the bits above them.
_SOCKET_KINDS, _KIND_BITS = (0, 1, 2, 3, 4, *range(6, 16)), 0xF
_AF_UNIX, _AF_INET, _AF_INET6 = 1, 2, 10  # linux/socket.h
# Calls by which a process leaves its parent's process group.
_GROUP_CALLS = ("setsid", "setpgid")
# Calls that inspect or control other processes, or share memory that outlives this one.
_PROCESS_CALLS = (
    *("ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease"),
    *("kcmp", "pidfd_open", "pidfd_getfd", "pidfd_send_signal", "setpriority", "ioprio_set"),
    *("migrate_pages", "move_pages", "shmget", "shmat", "msgget", "semget", "mq_open"),
)
# Machine calls that an unprivileged process does not need and that have had kernel vulnerabilities.
_MACHINE_CALLS = (
    *("mount", "umount2", "move_mount", "fsopen", "open_tree", "mount_setattr", "pivot_root"),
    *("unshare", "setns", "chroot", "bpf", "perf_event_open", "userfaultfd", "personality"),
    *("keyctl", "add_key", "request_key", "swapon", "swapoff", "reboot", "quotactl", "acct"),
    *("kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module"),
    *("open_by_handle_at", "name_to_handle_at", "fanotify_init", "lookup_dcookie", "syslog"),
    *("settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname"),
)
# After the start: no new program or process, and no escape from the parent's control.
_SPAWN_CALLS = ("execve", "execveat", "fork", "vfork", *_GROUP_CALLS)
_SIGNAL_CALLS = ("kill", "tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")
_SCHEDULER_CALLS = ("sched_setscheduler", "sched_setparam", "sched_setattr")
# Owner, permissions, timestamps and extended attributes of files: Landlock does not check them.
_FILE_ATTRIBUTE_CALLS = (
    *("chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat"),
    *("utime", "utimes", "utimensat", "futimesat", "setxattr", "lsetxattr", "fsetxattr"),
    *("setxattrat", "removexattr", "lremovexattr", "fremovexattr", "removexattrat"),
)
_CLONE_THREAD = 0x00010000  # linux/sched.h
_PR_SET_PDEATHSIG = 1  # linux/prctl.h

_UNKNOWN_CALL = -1  # seccomp.h: __NR_SCMP_ERROR

_load_lock = threading.Lock()


@cache
def library() -> Any:
    """Return the module pyseccomp. Raises ``OSError`` with a one-line reason if it cannot be
    used."""
    try:
        import pyseccomp  # noqa: PLC0415 -- fails at import where libseccomp is not installed
    except (ImportError, RuntimeError, OSError, AttributeError) as error:
        raise OSError(str(error)) from None
    return pyseccomp


def restrict(
    *, packet_sockets: bool = False, network: bool = False, one_group: bool = False
) -> None:
    """Deny the calling thread access to other processes, and sockets: all except local packet
    sockets with ``packet_sockets``, and internet sockets with ``network``. With ``one_group`` calls
    that leave the process group have no effect. Sets no_new_privs.

    Raises ``OSError`` if libseccomp is missing or the kernel rejects the filter.
    """
    with _load_lock:  # libseccomp modifies the filter, which all threads share
        _base_filter(packet_sockets, network, one_group).load()


def forbid_new_processes() -> None:
    """Also deny new processes and programs, for a started process that has one thread. Other
    processes may still end it, and it still dies with its parent as arranged before."""
    seccomp = library()
    rules = seccomp.SyscallFilter(seccomp.ALLOW)
    for name in (*_SPAWN_CALLS, *_SIGNAL_CALLS, *_SCHEDULER_CALLS, *_FILE_ATTRIBUTE_CALLS):
        _deny(rules, name)
    # A process may read and lower its own limits, but not those of others.
    _deny(rules, "prlimit64", seccomp.Arg(0, seccomp.NE, 0))
    _deny(rules, "tgkill", seccomp.Arg(0, seccomp.NE, os.getpid()))
    _deny(rules, "prctl", seccomp.Arg(0, seccomp.EQ, _PR_SET_PDEATHSIG))
    _deny(rules, "clone", seccomp.Arg(0, seccomp.MASKED_EQ, _CLONE_THREAD, 0))
    # clone3 passes its flags in memory, which a filter cannot read; the C library falls back to
    # clone.
    _deny(rules, "clone3", error=errno.ENOSYS)
    rules.load()


@cache
def _base_filter(packet_sockets: bool, network: bool, one_group: bool) -> Any:
    seccomp = library()
    rules = seccomp.SyscallFilter(seccomp.ALLOW)
    allowed = {*((_AF_UNIX,) if packet_sockets else ())}
    allowed |= {*((_AF_INET, _AF_INET6) if network else ())}
    # A rule compares an argument once, so each family that is not allowed has its own.
    for family in set(range(_AF_INET6 + 1)) - allowed:
        _deny(rules, "socket", seccomp.Arg(0, seccomp.EQ, family))
    _deny(rules, "socket", seccomp.Arg(0, seccomp.GT, _AF_INET6))
    for kind in _SOCKET_KINDS if packet_sockets else ():
        is_unix = seccomp.Arg(0, seccomp.EQ, _AF_UNIX)
        _deny(rules, "socket", is_unix, seccomp.Arg(1, seccomp.MASKED_EQ, _KIND_BITS, kind))
    for name in (*_NETWORK_CALLS, *_PROCESS_CALLS, *_MACHINE_CALLS):
        if not (network and name == "socketpair"):  # resolvers use it within a process
            _deny(rules, name)
    for name in _GROUP_CALLS if one_group else ():
        _deny(rules, name, error=0)
    return rules


def _deny(rules: Any, name: str, *args: Any, error: int = errno.EPERM) -> None:
    """Deny a call. A call that this libseccomp does not know is too new to be filtered."""
    seccomp = library()
    number = seccomp.resolve_syscall(seccomp.Arch.NATIVE, name)
    if number != _UNKNOWN_CALL:
        rules.add_rule(seccomp.ERRNO(error), number, *args)
