"""System calls: seccomp filters of the calling thread, which all that it starts inherits.

What is turned down gets EPERM, as from a kernel that does not let this user. Calls by another
numbering than this machine's own (32-bit ones) end the process.
"""

from __future__ import annotations

import errno
import os
import threading
from functools import cache
from typing import Any

# Network, and the ways around a filter of it.
_NETWORK = ("socketpair", "io_uring_setup", "io_uring_enter", "io_uring_register")
# Kinds of sockets (linux/net.h) but for SOCK_SEQPACKET; flags lie above them.
_SOCKET_KINDS, _KIND_BITS = (0, 1, 2, 3, 4, *range(6, 16)), 0xF
_AF_UNIX = 1
# Other processes: to look into them, to steer them, to share memory that outlives this one.
_PROCESS_CALLS = (
    *("ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease"),
    *("kcmp", "pidfd_open", "pidfd_getfd", "pidfd_send_signal", "setpriority", "ioprio_set"),
    *("migrate_pages", "move_pages", "shmget", "shmat", "msgget", "semget", "mq_open"),
)
# The machine: what an unprivileged process has no use for, and where the kernel's faults were.
_MACHINE = (
    *("mount", "umount2", "move_mount", "fsopen", "open_tree", "mount_setattr", "pivot_root"),
    *("unshare", "setns", "chroot", "bpf", "perf_event_open", "userfaultfd", "personality"),
    *("keyctl", "add_key", "request_key", "swapon", "swapoff", "reboot", "quotactl", "acct"),
    *("kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module"),
    *("open_by_handle_at", "name_to_handle_at", "fanotify_init", "lookup_dcookie", "syslog"),
    *("settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname"),
)
# After the start: no program and no process besides this one, nor out of reach of its parent.
_SPAWN_CALLS = ("execve", "execveat", "fork", "vfork", "setsid", "setpgid")
_SIGNALS = ("kill", "tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")
_STEERING = ("sched_setscheduler", "sched_setparam", "sched_setattr")
# Whose a file is, its rights, dates and notes: nothing that Landlock looks at.
_PROPERTIES = (
    *("chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat"),
    *("utime", "utimes", "utimensat", "futimesat", "setxattr", "lsetxattr", "fsetxattr"),
    *("setxattrat", "removexattr", "lremovexattr", "fremovexattr", "removexattrat"),
)
_CLONE_THREAD = 0x00010000  # linux/sched.h
_PR_SET_PDEATHSIG = 1  # linux/prctl.h

_UNKNOWN = -1  # seccomp.h: __NR_SCMP_ERROR

_load_lock = threading.Lock()


@cache
def library() -> Any:
    """The module pyseccomp. ``OSError`` with one line of why it cannot be used."""
    try:
        import pyseccomp  # noqa: PLC0415 -- fails at import where libseccomp is not installed
    except (ImportError, RuntimeError, OSError, AttributeError) as error:
        raise OSError(str(error)) from None
    return pyseccomp


def restrict(*, packet_sockets: bool = False) -> None:
    """No network and no other process for the calling thread; no socket at all, but for local ones
    of packets where they are allowed. Sets no_new_privs.

    Raises ``OSError`` where there is no libseccomp, or the kernel takes no filter.
    """
    with _load_lock:  # libseccomp works in the filter, which all threads share
        _base_filter(packet_sockets).load()


def forbid_new_processes() -> None:
    """Furthermore no new process and no program, for a process that is started and has one thread:
    others may end it, and its death follows its parent's as it was arranged before."""
    _process_filter(os.getpid()).load()


@cache
def _base_filter(packet_sockets: bool) -> Any:
    seccomp = library()
    rules = seccomp.SyscallFilter(seccomp.ALLOW)
    if packet_sockets:
        _deny(rules, "socket", seccomp.Arg(0, seccomp.NE, _AF_UNIX))
        for kind in _SOCKET_KINDS:
            _deny(rules, "socket", seccomp.Arg(1, seccomp.MASKED_EQ, _KIND_BITS, kind))
    else:
        _deny(rules, "socket")
    for name in (*_NETWORK, *_PROCESS_CALLS, *_MACHINE):
        _deny(rules, name)
    return rules


def _process_filter(pid: int) -> Any:
    seccomp = library()
    rules = seccomp.SyscallFilter(seccomp.ALLOW)
    for name in (*_SPAWN_CALLS, *_SIGNALS, *_STEERING, *_PROPERTIES):
        _deny(rules, name)
    # One's own limits may be read and lowered; those of others not.
    _deny(rules, "prlimit64", seccomp.Arg(0, seccomp.NE, 0))
    _deny(rules, "tgkill", seccomp.Arg(0, seccomp.NE, pid))
    _deny(rules, "prctl", seccomp.Arg(0, seccomp.EQ, _PR_SET_PDEATHSIG))
    _deny(rules, "clone", seccomp.Arg(0, seccomp.MASKED_EQ, _CLONE_THREAD, 0))
    # Its flags lie in memory, where a filter cannot look: the C library then takes ``clone``.
    _deny(rules, "clone3", error=errno.ENOSYS)
    return rules


def _deny(rules: Any, name: str, *args: Any, error: int = errno.EPERM) -> None:
    """Turn a call down; one that this libseccomp does not know is newer than what it can filter."""
    seccomp = library()
    number = seccomp.resolve_syscall(seccomp.Arch.NATIVE, name)
    if number != _UNKNOWN:
        rules.add_rule(seccomp.ERRNO(error), number, *args)
