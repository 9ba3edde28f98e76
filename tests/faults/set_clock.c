/* The wall clock of one process, set by so many seconds as lie in the first eight bytes of the file
   that TEST_CLOCK_FILE names. Preloaded by tests.faults.set_clock; the monotonic clock is left. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *ahead_seconds;

__attribute__((constructor)) static void open_file(void)
{
    const char *path = getenv("TEST_CLOCK_FILE");
    int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        abort();
    void *mapped = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (mapped == MAP_FAILED)
        abort();
    ahead_seconds = mapped;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    int is_wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
    if (!failed && is_wall && ahead_seconds != NULL)
        now->tv_sec += *ahead_seconds;
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec precise;
    (void)zone;
    int failed = clock_gettime(CLOCK_REALTIME, &precise);
    if (!failed) {
        now->tv_sec = precise.tv_sec;
        now->tv_usec = precise.tv_nsec / 1000;
    }
    return failed;
}

time_t time(time_t *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out != NULL)
        *out = now.tv_sec;
    return now.tv_sec;
}
