/* Adds an offset to the real-time clock of every process that preloads this (LD_PRELOAD): seconds,
 * as the eight bytes of the file ATTACK_CLOCK. The file is mapped, so that all processes see a jump
 * at once. The monotonic clock and timeouts in the kernel are not changed. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *offset;

__attribute__((constructor)) static void map(void) {
    const char *name = getenv("ATTACK_CLOCK");
    int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *at = mmap(0, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
    if (at != MAP_FAILED) offset = at;
    close(file);
}

int clock_gettime(clockid_t clock, struct timespec *at) {
    int failed = syscall(SYS_clock_gettime, clock, at);
    if (!failed && offset && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        at->tv_sec += *offset;
    return failed;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
    *at = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *at) {
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
