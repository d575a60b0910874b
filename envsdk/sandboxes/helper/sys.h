/* The kernel's interface, without a C library: the helper must run in any image, even an empty one.
 *
 * Every call returns the kernel's value: negative errno on failure. Only x86_64 and aarch64 are known. */
#ifndef ENVSDK_SYS_H
#define ENVSDK_SYS_H
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/poll.h>
#include <linux/resource.h>
#include <linux/signal.h>
#include <linux/stat.h>
#include <linux/wait.h>

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
typedef long i64;

static inline i64 sys6(i64 n, i64 a, i64 b, i64 c, i64 d, i64 e, i64 f) {
#if defined(__x86_64__)
  i64 r;
  register i64 r10 __asm__("r10") = d;
  register i64 r8 __asm__("r8") = e;
  register i64 r9 __asm__("r9") = f;
  __asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
  return r;
#elif defined(__aarch64__)
  register i64 x8 __asm__("x8") = n;
  register i64 x0 __asm__("x0") = a;
  register i64 x1 __asm__("x1") = b;
  register i64 x2 __asm__("x2") = c;
  register i64 x3 __asm__("x3") = d;
  register i64 x4 __asm__("x4") = e;
  register i64 x5 __asm__("x5") = f;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
#else
#error "the helper knows x86_64 and aarch64 only"
#endif
}
#define SYS(n, a, b, c, d) sys6(__NR_##n, (i64)(a), (i64)(b), (i64)(c), (i64)(d), 0, 0)

static inline i64 sys_open(const char *path, int flags, int mode) { return SYS(openat, AT_FDCWD, path, flags | O_CLOEXEC, mode); }
static inline i64 sys_read(int fd, void *p, u64 n) { return SYS(read, fd, p, n, 0); }
static inline i64 sys_close(int fd) { return SYS(close, fd, 0, 0, 0); }
static inline i64 sys_kill(int pid, int sig) { return SYS(kill, pid, sig, 0, 0); }
static inline i64 sys_fork(void) { return sys6(__NR_clone, SIGCHLD, 0, 0, 0, 0, 0); }
static inline void __attribute__((noreturn)) sys_exit(int code) {
  for (;;) SYS(exit_group, code, 0, 0, 0);
}
static inline void *sys_map(u64 n, int flags) { return (void *)sys6(__NR_mmap, 0, (i64)n, 3, flags | 0x20, -1, 0); }

/* gcc emits calls to these by itself. */
void *memcpy(void *to, const void *from, u64 n) {
  u8 *d = to;
  const u8 *s = from;
  while (n--) *d++ = *s++;
  return to;
}
void *memset(void *to, int value, u64 n) {
  u8 *d = to;
  while (n--) *d++ = (u8)value;
  return to;
}
static inline u64 str_len(const char *s) {
  u64 n = 0;
  while (s[n]) n++;
  return n;
}
static inline int str_eq(const char *a, const char *b) {
  while (*a && *a == *b) a++, b++;
  return *a == *b;
}
static inline int write_all(int fd, const void *data, u64 n) {
  const u8 *p = data;
  while (n) {
    i64 r = SYS(write, fd, p, n, 0);
    if (r == -EINTR) continue;
    if (r <= 0) return r ? (int)-r : EIO;
    p += r;
    n -= (u64)r;
  }
  return 0;
}
/* Exactly n bytes; 0 on success, EPIPE at an early end. */
static inline int read_all(int fd, void *data, u64 n) {
  u8 *p = data;
  while (n) {
    i64 r = sys_read(fd, p, n);
    if (r == -EINTR) continue;
    if (r <= 0) return r ? (int)-r : EPIPE;
    p += r;
    n -= (u64)r;
  }
  return 0;
}
/* Decimal number at *s; moves *s behind it. */
static inline u64 number(const char **s) {
  u64 v = 0;
  while (**s >= '0' && **s <= '9') v = v * 10 + (u64)(*(*s)++ - '0');
  return v;
}
static inline u64 now_us(void) {
  i64 t[2];
  SYS(clock_gettime, 1, t, 0, 0);
  return (u64)t[0] * 1000000 + (u64)t[1] / 1000;
}
#endif
