/* A preloaded library that moves the wall clock of one program and its children by ENVSDK_CLOCK_SHIFT_S seconds.

   Only reading the time of day is moved. Monotonic clocks, time-outs, sleeps and the times of files stay as they are, so
   that a program waits as long as it would. Needs no C library of its own, hence one file fits glibc and musl alike.
   Programs that ask the kernel directly (static Go) are not moved; whoever preloads this must look whether it worked. */

#define REALTIME 0
#define REALTIME_COARSE 5
#define TAI 11
#define ABSOLUTE 1
#define INTERRUPTED 4

struct timespec { long tv_sec; long tv_nsec; };
struct timeval { long tv_sec; long tv_usec; };

extern char **environ __attribute__((weak));
extern int *__errno_location(void) __attribute__((weak));

#if defined(__x86_64__)
enum { NR_CLOCK_GETTIME = 228, NR_CLOCK_NANOSLEEP = 230 };
static long call(long number, long a, long b, long c, long d) {
    long result;
    register long r10 __asm__("r10") = d;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__)
enum { NR_CLOCK_GETTIME = 113, NR_CLOCK_NANOSLEEP = 115 };
static long call(long number, long a, long b, long c, long d) {
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
    return x0;
}
#else
#error "write the two system calls of this processor here"
#endif

static long shift;

static int is_wall(int clock) { return clock == REALTIME || clock == REALTIME_COARSE || clock == TAI; }

__attribute__((constructor)) static void read_shift(void) {
    static const char name[] = "ENVSDK_CLOCK_SHIFT_S=";
    if (!&environ || !environ) return;
    for (char **entry = environ; *entry; entry++) {
        const char *text = *entry;
        int at = 0;
        while (name[at] && text[at] == name[at]) at++;
        if (name[at]) continue;
        long sign = text[at] == '-' ? -1 : 1;
        if (text[at] == '-' || text[at] == '+') at++;
        long value = 0;
        while (text[at] >= '0' && text[at] <= '9') value = value * 10 + (text[at++] - '0');
        shift = sign * value;
    }
}

static int ended(long result) {
    if (result >= 0) return 0;
    if (&__errno_location) *__errno_location() = (int)-result;
    return -1;
}

int clock_gettime(int clock, struct timespec *now) {
    long result = call(NR_CLOCK_GETTIME, clock, (long)now, 0, 0);
    if (result >= 0 && is_wall(clock)) now->tv_sec += shift;
    return ended(result);
}

int __clock_gettime(int clock, struct timespec *now) { return clock_gettime(clock, now); }

int gettimeofday(struct timeval *now, void *zone) {
    struct timespec wall;
    if (zone) ((int *)zone)[0] = ((int *)zone)[1] = 0;
    if (!now) return 0;
    int result = clock_gettime(REALTIME, &wall);
    now->tv_sec = wall.tv_sec;
    now->tv_usec = wall.tv_nsec / 1000;
    return result;
}

long time(long *now) {
    struct timespec wall;
    clock_gettime(REALTIME, &wall);
    if (now) *now = wall.tv_sec;
    return wall.tv_sec;
}

int timespec_get(struct timespec *now, int base) { return base == 1 && clock_gettime(REALTIME, now) == 0 ? base : 0; }

/* An absolute wait was computed from the moved clock: move it back, or it lasts as long as the shift. */
int clock_nanosleep(int clock, int flags, const struct timespec *wanted, struct timespec *left) {
    struct timespec until = *wanted;
    if (is_wall(clock) && (flags & ABSOLUTE)) until.tv_sec -= shift;
    return (int)-call(NR_CLOCK_NANOSLEEP, clock, flags, (long)&until, (long)left);
}
