/* Who a command runs as, looked up in the sandbox's own /etc/passwd and /etc/group.
 *
 * A name, a number or "number:number". The name `agent` is 1000:1000 in an image that does not define it. */
#ifndef ENVSDK_USERS_H
#define ENVSDK_USERS_H
#include "sys.h"

#define MAX_GROUPS 32
struct account {
  u32 uid, gid, groups[MAX_GROUPS], n_groups;
  char home[256];
};
static char users_text[256 * 1024];

static i64 load_text(const char *path) {
  i64 fd = sys_open(path, O_RDONLY, 0), n = 0, r;
  if (fd < 0) return 0;
  while ((r = sys_read((int)fd, users_text + n, sizeof users_text - 1 - (u64)n)) > 0) n += r;
  sys_close((int)fd);
  users_text[n] = 0;
  return n;
}
/* The next line's fields, split at ':' in place; returns the number of fields, 0 at the end. */
static int next_line(char **at, char **field, int max) {
  char *p = *at;
  int n = 0;
  if (!*p) return 0;
  field[n++] = p;
  for (; *p && *p != '\n'; p++)
    if (*p == ':' && n < max) {
      *p = 0;
      field[n++] = p + 1;
    }
  if (*p) *p++ = 0;
  *at = p;
  return n;
}
static int in_list(const char *list, const char *name) {
  u64 n = str_len(name);
  while (*list) {
    u64 i = 0;
    while (list[i] && list[i] != ',') i++;
    if (i == n) {
      u64 k = 0;
      while (k < n && list[k] == name[k]) k++;
      if (k == n) return 1;
    }
    list += i;
    if (*list) list++;
  }
  return 0;
}
/* Fill `a` for `who`; 0 or ENOENT. */
static int find_account(const char *who, struct account *a) {
  char *at = users_text, *f[7], name[64] = "";
  const char *rest = who;
  int found = 0, numeric = *who >= '0' && *who <= '9';
  u64 uid = numeric ? number(&rest) : 0;
  memset(a, 0, sizeof *a);
  memcpy(a->home, "/", 2);
  if (!*who || str_eq(who, "root")) memcpy(a->home, "/root", 6), found = 1;
  load_text("/etc/passwd");
  for (int n; (n = next_line(&at, f, 7));) {
    if (n < 6) continue;
    const char *u = f[2], *g = f[3];
    u64 line_uid = number(&u);
    if (numeric ? line_uid != uid : !str_eq(f[0], *who ? who : "root")) continue;
    a->uid = (u32)line_uid, a->gid = (u32)number(&g), found = 1;
    if (str_len(f[5]) < sizeof a->home) memcpy(a->home, f[5], str_len(f[5]) + 1);
    if (str_len(f[0]) < sizeof name) memcpy(name, f[0], str_len(f[0]) + 1);
    break;
  }
  if (!found) memcpy(a->home, "/tmp", 5);
  if (!found && str_eq(who, "agent")) a->uid = a->gid = 1000, found = 1;
  if (!found && numeric) a->uid = a->gid = (u32)uid, found = 1;
  if (!found) return ENOENT;
  if (numeric && *rest == ':') rest++, a->gid = (u32)number(&rest);
  a->groups[a->n_groups++] = a->gid;
  load_text("/etc/group");
  at = users_text;
  for (int n; *name && (n = next_line(&at, f, 4));) {
    const char *g = n == 4 ? f[2] : "";
    if (n == 4 && a->n_groups < MAX_GROUPS && in_list(f[3], name)) a->groups[a->n_groups++] = (u32)number(&g);
  }
  return 0;
}
/* A user namespace that maps a single id has no other user to become: everyone inside is the same one. */
static int single_user(void) {
  i64 n = load_text("/proc/self/uid_map");
  const char *p = users_text;
  for (int field = 0; field < 2; field++) {
    while (*p == ' ') p++;
    while (*p && *p != ' ') p++;
  }
  while (*p == ' ') p++;
  return n > 0 && number(&p) == 1;
}
static int become(const struct account *a) {
  if (single_user()) return 0;
  i64 r = SYS(setgroups, a->n_groups, a->groups, 0, 0);
  if (r < 0 && r != -EPERM) return (int)-r;
  if ((r = SYS(setresgid, a->gid, a->gid, a->gid, 0)) < 0) return (int)-r;
  if ((r = SYS(setresuid, a->uid, a->uid, a->uid, 0)) < 0) return (int)-r;
  return 0;
}
#endif
