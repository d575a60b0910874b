/* `helper launch WORD... -- PROGRAM ARG...`: what must be done before bubblewrap starts, in one process and no shell.
 *
 *   user          a user namespace that maps this user to root (for callers that are not root)
 *   userns=PATH   or join the one at PATH, which this user owns
 *   net=PATH      join the network namespace at PATH
 *   group=PATH    be in the control group of this file, cgroup.procs or tasks
 *   cd=DIR        work from here: relative lower folders keep the mount options under one page
 *   at=DIR        where the root file system goes, in a mount namespace of its own
 *   overlay=OPTS  mount an overlay there with these options
 *   limit=N:V     resource limit number N, soft and hard
 *   listen=PORT   a TCP socket that listens on 127.0.0.1, sent over stdout, which is a Unix socket; then it is done
 *   dial=PORT     the same for one that is connected to 127.0.0.1 */
#ifndef ENVSDK_LAUNCH_H
#define ENVSDK_LAUNCH_H
#include "ops.h"
#include "sys.h"

static const char *value_of(const char *word, const char *key) {
  while (*key && *word == *key) word++, key++;
  return *key ? 0 : word;
}
static int put_text(const char *path, const char *text) {
  i64 fd = sys_open(path, O_WRONLY, 0);
  if (fd < 0) return (int)-fd;
  int bad = write_all((int)fd, text, str_len(text));
  sys_close((int)fd);
  return bad;
}
static char *digits_of(u64 v, char *end) {
  *--end = 0;
  do *--end = (char)('0' + v % 10);
  while (v /= 10);
  return end;
}
/* "0 ID 1": this user or group, and nobody else, is 0 inside. */
static int put_map(const char *path, u64 id) {
  char text[40] = "0 ", buf[24], *number = digits_of(id, buf + sizeof buf);
  u64 n = str_len(number);
  memcpy(text + 2, number, n);
  memcpy(text + 2 + n, " 1", 3);
  return put_text(path, text);
}
static int new_user(void) {
  u64 uid = (u64)SYS(geteuid, 0, 0, 0, 0), gid = (u64)SYS(getegid, 0, 0, 0, 0);
  i64 r = SYS(unshare, 0x10000000, 0, 0, 0);
  if (r < 0) return (int)-r;
  int bad = put_map("/proc/self/uid_map", uid);
  if (!bad) bad = put_text("/proc/self/setgroups", "deny");
  return bad ? bad : put_map("/proc/self/gid_map", gid);
}
static int join_space(const char *path, u64 kind) {
  i64 fd = sys_open(path, O_RDONLY, 0);
  return fd < 0 ? (int)-fd : (int)-SYS(setns, fd, kind, 0, 0);
}
static int new_mounts(const char *at, const char *overlay) {
  i64 r = SYS(unshare, 0x00020000, 0, 0, 0);
  if (!r) r = sys6(__NR_mount, (i64) "none", (i64) "/", 0, 0x44000 /* private, recursive */, 0, 0);
  if (!r && overlay) r = sys6(__NR_mount, (i64) "overlay", (i64)at, (i64) "overlay", 0, (i64)overlay, 0);
  return (int)-r;
}
/* Sockets stay in the network namespace they were made in, whoever holds them. */
static int send_socket(u64 port, int listens) {
  struct { u16 family, port; u8 address[4], zero[8]; } where = {2, (u16)(port >> 8 | port << 8), {127, 0, 0, 1}, {0}};
  struct { u64 length; int level, kind, fd, pad; } control = {20, 1, 1, -1, 0};
  u8 byte = 1;
  struct { void *data; u64 n; } part = {&byte, 1};
  struct { void *name; u64 name_n; void *parts; u64 parts_n; void *control; u64 control_n; int flags; } message = {
      0, 0, &part, 1, &control, sizeof control, 0};
  int one = 1;
  i64 fd = SYS(socket, 2, 1, 0, 0), r = fd;
  if (fd < 0) return (int)-fd;
  sys6(__NR_setsockopt, fd, 1, 2, (i64)&one, sizeof one, 0);
  if (listens) {
    r = SYS(bind, fd, &where, sizeof where, 0);
    if (r >= 0) r = SYS(listen, fd, 128, 0, 0);
  } else {
    r = SYS(connect, fd, &where, sizeof where, 0);
  }
  control.fd = (int)fd;
  if (r >= 0) r = SYS(sendmsg, 1, &message, 0, 0);
  return r < 0 ? (int)-r : 0;
}
static int launch(char **word, char **env) {
  static char *mounting[] = {"overlay", 0};
  const char *at = 0, *overlay = 0, *v;
  int bad = 0;
  for (; *word && !str_eq(*word, "--") && !bad; word++) {
    if (str_eq(*word, "user")) bad = new_user();
    else if ((v = value_of(*word, "userns="))) bad = join_space(v, 0x10000000);
    else if ((v = value_of(*word, "net="))) bad = join_space(v, 0x40000000);
    else if ((v = value_of(*word, "group="))) bad = put_text(v, "0");
    else if ((v = value_of(*word, "cd="))) bad = (int)-SYS(chdir, v, 0, 0, 0);
    else if ((v = value_of(*word, "listen=")) || (v = value_of(*word, "dial="))) {
      if (!(bad = send_socket(number(&v), **word == 'l'))) return 0;
    } else if ((v = value_of(*word, "at="))) at = v;
    else if ((v = value_of(*word, "overlay="))) overlay = v;
    else if ((v = value_of(*word, "limit="))) {
      u64 which = number(&v), bounds[2];
      bounds[0] = bounds[1] = *v == ':' ? (v++, number(&v)) : 0;
      bad = (int)-SYS(prlimit64, 0, which, bounds, 0);
    } else bad = EINVAL;
    if (bad) break;
  }
  if (!bad && at && (bad = new_mounts(at, overlay))) word = mounting;
  if (!bad && *word && word[1]) bad = (int)-SYS(execve, word[1], word + 1, env, 0);
  char buf[24], *errno_text = digits_of((u64)bad, buf + sizeof buf);
  write_all(2, "envsdk: launch failed at ", 25);
  write_all(2, *word ? *word : "--", str_len(*word ? *word : "--"));
  write_all(2, ": errno ", 8);
  write_all(2, errno_text, str_len(errno_text));
  write_all(2, "\n", 1);
  return 1;
}
#endif
