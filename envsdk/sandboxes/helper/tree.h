/* Which processes belong to a command, and how they die.
 *
 * A process may leave its session, its group and its parent, but without CAP_SYS_RESOURCE it can never raise a hard
 * limit. Linux ignores RLIMIT_RSS and RLIMIT_LOCKS, so the two carry the command's number, one rising and one falling:
 * lowering either shows, and no process can take on another command's mark. */
#ifndef ENVSDK_TREE_H
#define ENVSDK_TREE_H
#include "sys.h"

#define MARK_BASE (1UL << 50)
#define MARK_SPAN (1UL << 32)

static void mark_self(u32 id) {
  u64 rss[2] = {MARK_BASE + id, MARK_BASE + id}, locks[2] = {MARK_BASE + MARK_SPAN - id, MARK_BASE + MARK_SPAN - id};
  SYS(prlimit64, 0, RLIMIT_RSS, rss, 0);
  SYS(prlimit64, 0, RLIMIT_LOCKS, locks, 0);
}
static i64 read_proc(int pid, const char *name, char *text, u64 size) {
  char path[64] = "/proc/", digits[12];
  int n = 6, k = 0;
  for (int v = pid; v; v /= 10) digits[k++] = (char)('0' + v % 10);
  while (k) path[n++] = digits[--k];
  path[n++] = '/';
  memcpy(path + n, name, str_len(name) + 1);
  i64 fd = sys_open(path, O_RDONLY, 0);
  if (fd < 0) return fd;
  i64 r = sys_read((int)fd, text, size - 1);
  sys_close((int)fd);
  if (r >= 0) text[r] = 0;
  return r;
}
/* Hard limit on the line that starts with `title`; 0 where it is unlimited or missing. */
static u64 hard_limit(const char *text, const char *title) {
  for (const char *line = text; *line;) {
    u64 i = 0;
    while (title[i] && line[i] == title[i]) i++;
    if (!title[i]) {
      const char *p = line + 26;
      while (*p == ' ') p++;
      while (*p && *p != ' ') p++;
      while (*p == ' ') p++;
      return number(&p);
    }
    while (*line && *line++ != '\n') {
    }
  }
  return 0;
}
static int belongs(int pid, u32 id) {
  char text[2048];
  if (read_proc(pid, "limits", text, sizeof text) <= 0) return 0;
  u64 rss = hard_limit(text, "Max resident set"), locks = hard_limit(text, "Max file locks");
  if (!rss && !locks) return 0;
  /* Untouched marks leave one possible number; lowered ones leave a range, and every command in it may be the owner. */
  u64 least = rss > MARK_BASE ? rss - MARK_BASE : 0;
  u64 most = locks > MARK_BASE ? MARK_BASE + MARK_SPAN - locks : MARK_SPAN;
  return id >= least && id <= most;
}
static int is_running(int pid) {
  char text[512];
  if (read_proc(pid, "stat", text, sizeof text) <= 0) return 0;
  char *p = text, *last = 0;
  for (; *p; p++)
    if (*p == ')') last = p;
  return last && last[1] && last[2] != 'T' && last[2] != 'Z' && last[2] != 'X';
}
/* Send `sig` to every process but this one that `id` owns (0: to all); counts those it reached in a running state. */
static int signal_all(u32 id, int sig) {
  char buf[4096];
  int self = (int)SYS(getpid, 0, 0, 0, 0), hits = 0;
  i64 fd = sys_open("/proc", O_RDONLY | O_DIRECTORY, 0), n;
  if (fd < 0) return 0;
  while ((n = SYS(getdents64, fd, buf, sizeof buf, 0)) > 0)
    for (i64 at = 0; at < n;) {
      char *entry = buf + at;
      const char *name = entry + 19;
      at += *(unsigned short *)(entry + 16);
      int pid = (int)number(&name);
      if (pid <= 0 || *name || pid == self || (id && !belongs(pid, id))) continue;
      hits += is_running(pid);
      if (sig) sys_kill(pid, sig);
    }
  sys_close((int)fd);
  return hits;
}
/* Stop until nothing of the command runs, so that a fork bomb cannot outrun the kill; then kill. */
static int kill_tree(u32 id) {
  int count = 0;
  for (int pass = 0; pass < 100; pass++) {
    int hits = signal_all(id, SIGSTOP);
    count += hits;
    if (!hits) break;
  }
  signal_all(id, SIGKILL);
  return count;
}
#endif
