/* File operations, each run in a child of its own so that a FIFO or a stuck disk can never stop the helper.
 *
 * They end with an errno as exit code (0 is good). A tree travels as a sequence of entries
 *   u8 type ('f' file, 'd' folder, 'l' link, 'e' end)  u32 mode  u32 path length  u64 size  path  content
 * with paths relative to the tree's root; sizes are little-endian. */
#ifndef ENVSDK_OPS_H
#define ENVSDK_OPS_H
#include "sys.h"
#include "users.h"

#define PATH_MAX 4096
static u8 copy_buf[64 * 1024];

static int join(char *out, const char *dir, const char *name) {
  u64 a = str_len(dir), b = str_len(name);
  if (a + b + 2 > PATH_MAX) return ENAMETOOLONG;
  memcpy(out, dir, a);
  if (a && b && out[a - 1] != '/') out[a++] = '/';
  memcpy(out + a, name, b + 1);
  return 0;
}
static int copy_bytes(int from, int to, u64 limit) {
  while (limit) {
    i64 n = sys_read(from, copy_buf, limit < sizeof copy_buf ? limit : sizeof copy_buf);
    if (n == -EINTR) continue;
    if (n < 0) return (int)-n;
    if (!n) return 0;
    int bad = write_all(to, copy_buf, (u64)n);
    if (bad) return bad;
    limit -= (u64)n;
  }
  return 0;
}
/* Make the folder and its parents; those made belong to `a`. */
static int make_dirs(const char *path, const struct account *a) {
  char part[PATH_MAX];
  for (u64 i = 1;; i++) {
    if (path[i - 1] && path[i] != '/' && path[i]) continue;
    if (i >= PATH_MAX) return ENAMETOOLONG;
    memcpy(part, path, i);
    part[i] = 0;
    i64 r = SYS(mkdirat, AT_FDCWD, part, 0755, 0);
    if (!r) sys6(__NR_fchownat, AT_FDCWD, (i64)part, a->uid, a->gid, 0, 0);
    else if (r != -EEXIST && r != -EISDIR) return (int)-r;
    if (!path[i - 1] || !path[i]) return 0;
  }
}
static int make_parent(const char *path, const struct account *a) {
  char dir[PATH_MAX];
  u64 n = str_len(path);
  if (n >= PATH_MAX) return ENAMETOOLONG;
  while (n > 1 && path[n - 1] != '/') n--;
  while (n > 1 && path[n - 1] == '/') n--;
  memcpy(dir, path, n);
  dir[n] = 0;
  return n > 1 ? make_dirs(dir, a) : 0;
}
/* A new file in place of whatever stood there: a link or a shared inode is replaced, never written through. */
static int create_file(const char *path, u32 mode, const struct account *a, u64 size) {
  i64 r = SYS(unlinkat, AT_FDCWD, path, 0, 0);
  if (r < 0 && r != -ENOENT) return (int)-r;
  i64 fd = sys_open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  if (fd < 0) return (int)-fd;
  int bad = copy_bytes(0, (int)fd, size);
  /* In a namespace with one user there is nobody else to own it: EINVAL. */
  if (!bad && (r = SYS(fchown, fd, a->uid, a->gid, 0)) < 0 && r != -EPERM && r != -EINVAL) bad = (int)-r;
  if (!bad && (r = SYS(fchmod, fd, mode & 07777, 0, 0)) < 0) bad = (int)-r;
  if ((r = sys_close((int)fd)) < 0 && !bad) bad = (int)-r;
  return bad;
}
static int op_read(const char *path, u64 limit) {
  i64 fd = sys_open(path, O_RDONLY, 0);
  return fd < 0 ? (int)-fd : copy_bytes((int)fd, 1, limit);
}
static int op_write(const char *path, u32 mode, const struct account *a) {
  int bad = make_parent(path, a);
  return bad ? bad : create_file(path, mode, a, ~0UL);
}
static int op_unpack(const char *root, const struct account *a) {
  char path[PATH_MAX], name[PATH_MAX], target[PATH_MAX];
  int bad = make_dirs(root, a);
  while (!bad) {
    u8 head[17];
    u32 mode, length;
    u64 size;
    if ((bad = read_all(0, head, sizeof head)) || head[0] == 'e') break;
    memcpy(&mode, head + 1, 4), memcpy(&length, head + 5, 4), memcpy(&size, head + 9, 8);
    if (length >= PATH_MAX) return ENAMETOOLONG;
    if ((bad = read_all(0, name, length))) break;
    name[length] = 0;
    if ((bad = join(path, root, name)) || (bad = make_parent(path, a))) break;
    if (head[0] == 'd') {
      if (!(bad = make_dirs(path, a))) bad = (int)-SYS(fchmodat, AT_FDCWD, path, mode & 07777, 0);
    } else if (head[0] == 'l') {
      if (size >= PATH_MAX) return ENAMETOOLONG;
      if ((bad = read_all(0, target, size))) break;
      target[size] = 0;
      SYS(unlinkat, AT_FDCWD, path, 0, 0);
      bad = (int)-SYS(symlinkat, target, AT_FDCWD, path, 0);
      if (!bad) sys6(__NR_fchownat, AT_FDCWD, (i64)path, a->uid, a->gid, AT_SYMLINK_NOFOLLOW, 0);
    } else {
      bad = create_file(path, mode, a, size);
    }
  }
  return bad;
}
static int emit(u8 type, u32 mode, const char *name, u64 size) {
  u8 head[17];
  u32 length = (u32)str_len(name);
  head[0] = type;
  memcpy(head + 1, &mode, 4), memcpy(head + 5, &length, 4), memcpy(head + 9, &size, 8);
  int bad = write_all(1, head, sizeof head);
  return bad ? bad : write_all(1, name, length);
}
static int pack_entry(const char *root, const char *name, int depth);

static int pack_dir(const char *root, const char *name, int depth) {
  char buf[2048], path[PATH_MAX], inner[PATH_MAX];
  int bad = join(path, root, name);
  i64 fd = bad ? -bad : sys_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0), n;
  if (fd < 0) return (int)-fd;
  while (!bad && (n = SYS(getdents64, fd, buf, sizeof buf, 0)) > 0)
    for (i64 at = 0; !bad && at < n;) {
      const char *entry = buf + at + 19;
      at += *(unsigned short *)(buf + at + 16);
      if (str_eq(entry, ".") || str_eq(entry, "..")) continue;
      if (!(bad = join(inner, name, entry))) bad = pack_entry(root, inner, depth + 1);
    }
  sys_close((int)fd);
  return bad;
}
/* Devices, sockets and FIFOs are no data and are left out; a file that shrinks while it is read is padded with zeros. */
static int pack_entry(const char *root, const char *name, int depth) {
  char path[PATH_MAX], target[PATH_MAX];
  struct statx st;
  int bad = join(path, root, name);
  if (bad) return bad;
  if (depth > 128) return ELOOP;
  i64 r = sys6(__NR_statx, AT_FDCWD, (i64)path, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, (i64)&st, 0);
  if (r < 0) return r == -ENOENT ? 0 : (int)-r;
  u32 kind = st.stx_mode & S_IFMT;
  if (kind == S_IFDIR) return (bad = emit('d', st.stx_mode, name, 0)) ? bad : pack_dir(root, name, depth);
  if (kind == S_IFLNK) {
    if ((r = SYS(readlinkat, AT_FDCWD, path, target, sizeof target)) < 0) return (int)-r;
    return (bad = emit('l', st.stx_mode, name, (u64)r)) ? bad : write_all(1, target, (u64)r);
  }
  if (kind != S_IFREG) return 0;
  i64 fd = sys_open(path, O_RDONLY | O_NOFOLLOW, 0);
  if (fd < 0) return (int)-fd;
  u64 left = st.stx_size;
  bad = emit('f', st.stx_mode, name, left);
  while (!bad && left) {
    u64 want = left < sizeof copy_buf ? left : sizeof copy_buf;
    i64 n = sys_read((int)fd, copy_buf, want);
    if (n <= 0) memset(copy_buf, 0, want), n = (i64)want;
    bad = write_all(1, copy_buf, (u64)n);
    left -= (u64)n;
  }
  sys_close((int)fd);
  return bad;
}
/* A folder as its tree, a file or link as the one entry named "" . */
static int op_pack(const char *path) {
  struct statx st;
  i64 r = sys6(__NR_statx, AT_FDCWD, (i64)path, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, (i64)&st, 0);
  int bad = r < 0 ? (int)-r : 0;
  if (!bad) bad = (st.stx_mode & S_IFMT) == S_IFDIR ? pack_dir(path, "", 0) : pack_entry(path, "", 0);
  return bad ? bad : emit('e', 0, "", 0);
}
#endif
