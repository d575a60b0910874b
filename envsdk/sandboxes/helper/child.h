/* One child: what a start request asks for, and the way from fork to exec. */
#ifndef ENVSDK_CHILD_H
#define ENVSDK_CHILD_H
#include "ops.h"
#include "sys.h"
#include "tree.h"
#include "users.h"

#define SCRIPT_BYTES (100 * 1024) /* the kernel takes at most 128 KiB in one argument */
enum { OP_ARGV, OP_SHELL, OP_READ, OP_WRITE, OP_UNPACK, OP_PACK, OP_NOOP };
enum { NO_USER = 1, NO_DIR = 2, NO_START = 3 };

struct job {
  u32 id, used, op, timed_out, stdin_left, spec_size, held_n, held_at, input_ends;
  int pid, out, err, in, feed;
  u8 *spec, *held;
  u64 cap, sent, total, deadline_us, started_us, timeout_us;
};

/* A request's payload, read front to back. */
struct cursor {
  u8 *p, *end;
};
static u64 take(struct cursor *c, int n) {
  u64 v = 0;
  if (c->end - c->p < n) return 0;
  memcpy(&v, c->p, (u64)n);
  c->p += n;
  return v;
}
/* Strings arrive with a closing zero, so they can be used in place. */
static char *take_text(struct cursor *c) {
  u64 n = take(c, 4);
  char *s = (char *)c->p;
  if (!n || n > (u64)(c->end - c->p) || s[n - 1]) return "";
  c->p += n;
  return s;
}
static void __attribute__((noreturn)) fail_start(u32 *fault, u32 stage, int code) {
  *fault = stage << 16 | (u32)code;
  sys_exit(127);
}
static void say(const char *a, const char *b) {
  write_all(2, "envsdk: ", 8);
  write_all(2, a, str_len(a));
  write_all(2, b, str_len(b));
  write_all(2, "\n", 1);
}
static i64 exec_path(char **argv, char **env) {
  char path[PATH_MAX];
  const char *list = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  i64 bad = -ENOENT, r;
  for (const char *p = argv[0]; *p; p++)
    if (*p == '/') return SYS(execve, argv[0], argv, env, 0);
  for (char **e = env; *e; e++)
    if ((*e)[0] == 'P' && (*e)[1] == 'A' && (*e)[2] == 'T' && (*e)[3] == 'H' && (*e)[4] == '=') list = *e + 5;
  while (*list) {
    u64 n = 0;
    while (list[n] && list[n] != ':') n++;
    if (n && n + str_len(argv[0]) + 2 < PATH_MAX) {
      memcpy(path, list, n);
      path[n] = '/';
      memcpy(path + n + 1, argv[0], str_len(argv[0]) + 1);
      r = SYS(execve, path, argv, env, 0);
      if (r != -ENOENT && r != -ENOTDIR) bad = r;
    }
    list += n + (list[n] == ':');
  }
  return bad;
}
/* A script too long for an argument is handed over as an unnamed file. */
static void hand_over_script(char **argv, const char *text) {
  static char name[] = "/proc/self/fd/9";
  i64 fd = SYS(memfd_create, "script", 0, 0, 0);
  if (fd < 0 || write_all((int)fd, text, str_len(text))) return;
  SYS(dup3, fd, 9, 0, 0);
  argv[1] = name, argv[2] = 0;
}
/* The child's life from fork to exec, or through a file operation; `fault` is shared with the helper until the exec. */
static void __attribute__((noreturn)) run_child(const struct job *j, int out, int err, u32 *fault) {
  struct cursor c = {j->spec, j->spec + j->spec_size};
  struct account who;
  u64 none = 0;
  c.p += 1 + 8 + 8 + 4;
  char *user = take_text(&c), *cwd = take_text(&c);
  u64 n_argv = take(&c, 4);
  char **argv = sys_map((n_argv + 5) * 8, 2);
  for (u64 i = 0; i < n_argv; i++) argv[i] = take_text(&c);
  u64 n_env = take(&c, 4), k = 0;
  char **env = sys_map((n_env + 2) * 8, 2), home[300] = "HOME=";
  int has_home = 0;
  for (u64 i = 0; i < n_env; i++) {
    env[k++] = take_text(&c);
    has_home |= env[k - 1][0] == 'H' && env[k - 1][1] == 'O' && env[k - 1][2] == 'M' && env[k - 1][3] == 'E' && env[k - 1][4] == '=';
  }
  int in = j->in >= 0 ? j->in : (int)sys_open("/dev/null", O_RDONLY, 0);
  if (j->in >= 0) SYS(lseek, in, 0, 0, 0);
  SYS(dup3, in, 0, 0, 0), SYS(dup3, out, 1, 0, 0), SYS(dup3, err, 2, 0, 0);
  SYS(setsid, 0, 0, 0, 0);
  if (find_account(user, &who)) fail_start(fault, NO_USER, ENOENT);
  if (j->op >= OP_READ) {
    const char *at = argv[1] ? argv[1] : "";
    u64 value = number(&at);
    if (j->op == OP_READ) sys_exit(op_read(argv[0], value));
    if (j->op == OP_WRITE) sys_exit(op_write(argv[0], (u32)value, &who));
    if (j->op == OP_UNPACK) sys_exit(op_unpack(argv[0], &who));
    if (j->op == OP_PACK) sys_exit(op_pack(argv[0]));
    sys_exit(0);
  }
  mark_self(j->id);
  i64 fd = sys_open("/proc/self/oom_score_adj", O_WRONLY, 0);
  if (fd >= 0) write_all((int)fd, "500", 3); /* a command dies before the helper does */
  SYS(rt_sigprocmask, 2, &none, 0, 8);
  int bad = become(&who);
  if (bad) fail_start(fault, NO_USER, bad);
  if (*cwd) {
    i64 r = SYS(chdir, cwd, 0, 0, 0);
    if (r < 0) {
      say("no such working folder: ", cwd);
      sys_exit(126);
    }
  }
  if (!has_home) {
    memcpy(home + 5, who.home, str_len(who.home) + 1);
    env[k++] = home;
  }
  char *text = argv[0];
  if (j->op == OP_SHELL) {
    argv[0] = "/bin/sh", argv[1] = "-c", argv[2] = text, argv[3] = 0;
    if (str_len(text) > SCRIPT_BYTES) hand_over_script(argv, text);
  }
  i64 r = exec_path(argv, env);
  if (j->op == OP_SHELL && r == -ENOENT) {
    char *with[] = {"sh", argv[1], argv[2], 0};
    r = SYS(execve, "/run/envsdk/busybox", with, env, 0);
  }
  say(r == -E2BIG ? "argument list too long: " : r == -ENOENT ? "no such program: " : "cannot run: ", argv[0]);
  sys_exit(r == -ENOENT ? 127 : 126);
}
#endif
