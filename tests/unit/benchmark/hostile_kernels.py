"""A library whose functions try what no kernel may: each writes 1 to y[0] where it got through."""

from __future__ import annotations

# Only ways that do no harm where they get through: signal 0, files that are new, no real attach.
ATTACKS = {
    "connects": "socket(AF_INET, SOCK_STREAM, 0) >= 0",
    "sends": "socket(AF_INET, SOCK_DGRAM, 0) >= 0",
    "talks_locally": "socket(AF_UNIX, SOCK_STREAM, 0) >= 0",
    "queues_calls": "syscall(SYS_io_uring_setup, 8, scratch) >= 0",
    "reads_passwords": 'open("/etc/passwd", O_RDONLY) >= 0',
    "reads_its_parents_keys": 'open(of_parent("environ"), O_RDONLY) >= 0',
    "reads_its_parents_memory": 'open(of_parent("mem"), O_RDONLY) >= 0',
    "lists_homes": 'open("/root", O_RDONLY | O_DIRECTORY) >= 0 || '
    'open("/home", O_RDONLY | O_DIRECTORY) >= 0',
    "knows_keys": 'getenv("KILN_SECRET_KEY") != nullptr',
    "writes_to_tmp": 'made("/tmp/kiln-was-here")',
    "writes_to_home": 'made("/root/kiln-was-here") || made("kiln-was-here")',
    "writes_to_what_it_was_handed": 'made("../handed/kiln-was-here")',
    "changes_rights": 'chmod("../handed", 0777) == 0',
    "fills_the_disk": "ftruncate(2, 100LL << 30) == 0 || fallocate(2, 0, 0, 100LL << 30) == 0",
    "forks": "forked(fork())",
    "clones": "forked(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0))",
    "starts_a_shell": 'system("true") == 0',
    "becomes_another": 'execl("/bin/true", "true", nullptr) == 0',
    "signals_its_parent": "kill(getppid(), 0) == 0",
    "signals_its_parents_thread": "syscall(SYS_tgkill, getppid(), getppid(), 0) == 0",
    "signals_all": "kill(-1, 0) == 0",
    "traces_its_parent": "ptrace(PTRACE_SEIZE, getppid(), 0, 0) == 0",
    "looks_into_its_parent": "looked_into(getppid())",
    "limits_its_parent": "limited(getppid())",
    "outlives_its_parent": "prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0) == 0",
    "leaves_its_group": "setsid() >= 0 || setpgid(0, 0) == 0",
    "keeps_shared_memory": "shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600) >= 0",
    "makes_a_namespace": "unshare(CLONE_NEWUSER) == 0",
    "fills_memory": "took(6LL << 30)",
}

SOURCE = r"""
#include <hip/hip_runtime.h>
#include <kiln/types.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static char scratch[4096];
static const char* of_parent(const char* file) {
  snprintf(scratch, sizeof scratch, "/proc/%d/%s", getppid(), file);
  return scratch;
}
static bool made(const char* path) {
  int file = open(path, O_CREAT | O_WRONLY, 0600);
  if (file >= 0) unlink(path);
  return file >= 0;
}
static bool forked(long pid) {
  if (pid == 0) _exit(0);
  if (pid > 0) waitpid((pid_t)pid, nullptr, 0);
  return pid > 0;
}
static bool looked_into(pid_t pid) {
  iovec here{scratch, 8}, there{(void*)&of_parent, 8};
  return process_vm_readv(pid, &here, 1, &there, 1, 0) >= 0;
}
static bool limited(pid_t pid) {
  rlimit limit;
  return prlimit(pid, RLIMIT_CORE, nullptr, &limit) == 0;
}
static bool took(long long bytes) {
  long long size = 1 << 26, taken = 0;
  while (taken < bytes &&
         mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE,
              -1, 0) != MAP_FAILED)
    taken += size;
  return taken >= bytes;
}
"""
FUNCTION = """
extern "C" PT_EXPORT int NAME(const float* x, float* y, int n, size_t* workspace_size,
                              uint8_t* workspace, hipStream_t stream) {
  if (workspace_size) { *workspace_size = 0; return 0; }
  y[0] = (ATTACK) ? 1.0f : 0.0f;
  return 0;
}
"""


def source() -> str:
    """All attacks in one source."""
    functions = (
        FUNCTION.replace("NAME", name).replace("ATTACK", attack) for name, attack in ATTACKS.items()
    )
    return SOURCE + "".join(functions)
