/* The kept channel's far end: first process of every sandbox.
 *
 * Reads requests on stdin and writes frames on stdout; both ends know a nonce that no process inside can read. Starts
 * each command in a session of its own as the user asked for, streams its output up to a cap and counts the rest, ends
 * it and its whole process tree at the deadline, adopts and reaps orphans, and kills everything when stdin closes, so
 * that a sandbox never outlives its owner.
 *
 * Frame, both ways:  nonce[16]  u8 type  u32 id  u32 length  payload[length], integers little-endian.
 *   in   H hello: workdir, user      S start (see `start`)   D stdin bytes   K kill the tree   A kill all but the helper
 *        P peek: paths of kernel files, read without a fork
 *   out  R ready   O stdout   E stderr   F room for another D   X end: u8 how (0 exit, 1 signal, 2 failed), u32 code, u8 timed out,
 *        u64 bytes written, u64 wall us, u64 cpu us   V peeked: (u32 length, bytes) a path   N killed: u32 count */
#include "child.h"
#include "launch.h"
#include "sys.h"
#include "tree.h"
#include "users.h"

#define MAX_JOBS 512
#define FRAME_HEAD 25
#define CHUNK (64 * 1024)
#define OPEN_INPUT 0xffffffffu
static u32 *faults; /* one a job, shared with its child until it execs: stage << 16 | errno */
static struct job jobs[MAX_JOBS];
static u8 nonce[16], out_buf[FRAME_HEAD + CHUNK];

static void kill_everyone(void) {
  if (SYS(getpid, 0, 0, 0, 0) == 1) SYS(kill, -1, SIGKILL, 0, 0);
}
static void send(u8 type, u32 id, const void *data, u32 n) {
  u8 *p = out_buf;
  memcpy(p, nonce, 16);
  p[16] = type;
  memcpy(p + 17, &id, 4), memcpy(p + 21, &n, 4);
  if ((const u8 *)data != p + FRAME_HEAD) memcpy(p + FRAME_HEAD, data, n);
  if (write_all(1, p, FRAME_HEAD + n)) {
    kill_everyone();
    sys_exit(1);
  }
}
static void send_end(struct job *j, u8 how, u32 code, u64 cpu_us) {
  u8 end[30];
  u64 wall = j->started_us ? now_us() - j->started_us : 0;
  end[0] = how;
  memcpy(end + 1, &code, 4);
  end[5] = (u8)j->timed_out;
  memcpy(end + 6, &j->total, 8), memcpy(end + 14, &wall, 8), memcpy(end + 22, &cpu_us, 8);
  send('X', j->id, end, sizeof end);
}
static void shut(int *fd) {
  if (*fd >= 0) sys_close(*fd);
  *fd = -1;
}
static void end_input(struct job *j) {
  if (j->held) SYS(munmap, j->held, j->held_n, 0, 0);
  j->held = 0;
  shut(&j->feed);
}
static void release(struct job *j) {
  shut(&j->out), shut(&j->err), shut(&j->in), end_input(j);
  if (j->spec) SYS(munmap, j->spec, j->spec_size, 0, 0);
  j->spec = 0, j->used = 0, j->pid = 0;
}
/* A slot; where all are taken, the longest-silent stream of a finished command's background child is let go. */
static struct job *take_slot(u32 id) {
  struct job *oldest = 0;
  for (struct job *j = jobs; j < jobs + MAX_JOBS; j++) {
    if (!j->used) {
      oldest = j;
      break;
    }
    if (!j->pid && !j->spec && (!oldest || j->started_us < oldest->started_us)) oldest = j;
  }
  if (!oldest) return 0;
  if (oldest->used) release(oldest);
  memset(oldest, 0, sizeof *oldest);
  oldest->id = id, oldest->used = 1, oldest->out = oldest->err = oldest->in = oldest->feed = -1;
  return oldest;
}
static struct job *find_job(u32 id) {
  for (struct job *j = jobs; j < jobs + MAX_JOBS; j++)
    if (j->used && j->id == id && (j->pid || j->spec)) return j;
  return 0;
}

static int pipe_pair(int fds[2]) { return (int)SYS(pipe2, fds, O_CLOEXEC, 0, 0); }

static void spawn(struct job *j) {
  int out[2] = {-1, -1}, err[2] = {-1, -1};
  i64 pid = -EMFILE;
  faults[j - jobs] = 0;
  if (pipe_pair(out) >= 0 && pipe_pair(err) >= 0) {
    j->started_us = now_us();
    if ((pid = sys_fork()) == 0) {
      /* A file operation execs nothing: a writing end in its hands would keep an input, its own say, from ending. */
      for (struct job *other = jobs; other < jobs + MAX_JOBS; other++)
        if (other->used && other->feed >= 0) sys_close(other->feed);
      run_child(j, out[1], err[1], &faults[j - jobs]);
    }
  }
  shut(&out[1]), shut(&err[1]), shut(&j->in);
  SYS(munmap, j->spec, j->spec_size, 0, 0);
  j->spec = 0;
  j->out = out[0], j->err = err[0];
  if (pid < 0) {
    send_end(j, 2, NO_START << 16 | (u32)-pid, 0);
    release(j);
    return;
  }
  SYS(fcntl, j->out, F_SETFL, O_NONBLOCK, 0), SYS(fcntl, j->err, F_SETFL, O_NONBLOCK, 0);
  j->pid = (int)pid;
  j->deadline_us = j->timeout_us ? j->started_us + j->timeout_us : 0;
}
/* Input that goes on while the command runs, a piece at a time: what the pipe cannot take yet is held, and the next piece
 * is asked for when nothing is. So no input, however long, takes more of the sandbox's memory than a piece. */
static i64 open_input(struct job *j) {
  int ends[2];
  i64 r = pipe_pair(ends);
  if (r < 0) return r;
  j->in = ends[0], j->feed = ends[1];
  SYS(fcntl, j->feed, F_SETFL, O_NONBLOCK, 0);
  return 0;
}
/* Bytes that the pipe took: all of them where nobody reads it any more. */
static u32 pour(struct job *j, const u8 *data, u32 n) {
  u32 done = 0;
  i64 r = 0;
  while (done < n && ((r = SYS(write, j->feed, data + done, n - done, 0)) > 0 || r == -EINTR)) done += r > 0 ? (u32)r : 0;
  if (done == n || r == -EAGAIN) return done;
  shut(&j->feed);
  return n;
}
static void took_piece(struct job *j) {
  if (j->input_ends) end_input(j);
  else send('F', j->id, 0, 0);
}
static void pour_held(struct job *j) {
  j->held_at += pour(j, j->held + j->held_at, j->held_n - j->held_at);
  if (j->held_at < j->held_n) return;
  SYS(munmap, j->held, j->held_n, 0, 0);
  j->held = 0;
  took_piece(j);
}
static void take_piece(struct job *j, u8 *data, u32 n) {
  if (!n) {
    j->input_ends = 1;
    if (!j->held) end_input(j);
    return;
  }
  u32 done = j->held || j->feed < 0 ? n : pour(j, data, n);
  if (done < n) {
    u8 *held = sys_map(n - done, 2);
    if ((i64)held > 0) {
      memcpy(held, data + done, n - done);
      j->held = held, j->held_n = n - done, j->held_at = 0;
      return;
    }
    shut(&j->feed); /* no memory: it sees its input end */
  }
  if (!j->held) took_piece(j);
}
/* S: u8 op, u64 timeout us, u64 output cap, u32 stdin bytes to come (OPEN_INPUT: until an empty D), user, folder, argv, env. */
static void start(u32 id, u8 *payload, u32 n) {
  struct job *j = take_slot(id), lost = {.id = id};
  struct cursor c = {payload, payload + n};
  void *spec = j ? sys_map(n + 1, 2) : 0;
  if (!j || (i64)spec < 0) {
    if (j) release(j);
    send_end(&lost, 2, NO_START << 16 | ENOMEM, 0);
    return;
  }
  memcpy(spec, payload, n);
  j->spec = spec, j->spec_size = n;
  j->op = (u32)take(&c, 1), j->timeout_us = take(&c, 8), j->cap = take(&c, 8), j->stdin_left = (u32)take(&c, 4);
  i64 r = 0;
  if (j->stdin_left == OPEN_INPUT) r = open_input(j);
  else if (j->stdin_left) r = j->in = (int)SYS(memfd_create, "stdin", 1, 0, 0);
  if (r < 0) {
    send_end(j, 2, NO_START << 16 | (u32)-r, 0);
    release(j);
  } else if (!j->stdin_left || j->feed >= 0) {
    spawn(j);
  }
}
static void feed(u32 id, u8 *data, u32 n) {
  struct job *j = find_job(id);
  if (j && j->stdin_left == OPEN_INPUT) take_piece(j, data, n);
  if (!j || !j->spec) return;
  int bad = n > j->stdin_left ? EINVAL : write_all(j->in, data, n);
  j->stdin_left -= n;
  if (bad) {
    send_end(j, 2, NO_START << 16 | (u32)bad, 0);
    release(j);
  } else if (!j->stdin_left) {
    spawn(j);
  }
}
/* One read of a stream; what lies over the cap is counted and dropped. Returns the bytes read. */
static i64 forward(struct job *j, int *fd, u8 type) {
  if (*fd < 0) return 0;
  i64 n = sys_read(*fd, out_buf + FRAME_HEAD, CHUNK);
  if (n == -EAGAIN || n == -EINTR) return 0;
  if (n <= 0) {
    shut(fd);
    return 0;
  }
  if (!j->pid) return n; /* a background child of a finished command */
  j->total += (u64)n;
  u64 room = j->cap - j->sent, part = (u64)n < room ? (u64)n : room;
  if (part) send(type, j->id, out_buf + FRAME_HEAD, (u32)part);
  j->sent += part;
  return n;
}
static void finish(struct job *j, int status, u64 cpu_us) {
  u32 bad = faults[j - jobs];
  /* What the command itself wrote lies in the pipes; a child that goes on writing must not hold up the end. */
  for (int pass = 0; pass < 32 && forward(j, &j->out, 'O') > 0; pass++) {
  }
  for (int pass = 0; pass < 32 && forward(j, &j->err, 'E') > 0; pass++) {
  }
  if (bad) send_end(j, 2, bad, cpu_us);
  else if (status & 127) send_end(j, 1, (u32)(status & 127), cpu_us);
  else send_end(j, 0, (u32)(status >> 8 & 255), cpu_us);
  j->pid = 0;
  end_input(j);
  if (j->out < 0 && j->err < 0) release(j);
}
static void reap(void) {
  int status;
  u64 usage[18];
  for (i64 pid; (pid = SYS(wait4, -1, &status, WNOHANG, usage)) > 0;)
    for (struct job *j = jobs; j < jobs + MAX_JOBS; j++)
      if (j->used && j->pid == (int)pid) finish(j, status, (usage[0] + usage[2]) * 1000000 + usage[1] + usage[3]);
}
static void peek(u32 id, u8 *payload, u32 n) {
  static u8 answer[32 * 1024];
  struct cursor c = {payload, payload + n};
  u32 used = 0;
  while (c.p < c.end && used + 8192 < sizeof answer) {
    i64 fd = sys_open(take_text(&c), O_RDONLY | O_NONBLOCK, 0), got = -1;
    if (fd >= 0) {
      got = sys_read((int)fd, answer + used + 4, 8000);
      sys_close((int)fd);
    }
    u32 size = got < 0 ? 0xffffffff : (u32)got;
    memcpy(answer + used, &size, 4);
    used += 4 + (got < 0 ? 0 : (u32)got);
  }
  send('V', id, answer, used);
}
/* An engine that gives a sandbox no network gives it no names either: an empty file. One that says something stays. */
static void name_loopback(void) {
  static const char names[] = "127.0.0.1\tlocalhost sandbox\n::1\tlocalhost\n";
  u8 byte;
  i64 fd = sys_open("/etc/hosts", O_RDWR | O_CREAT | O_NOFOLLOW, 0644);
  if (fd < 0) return;
  if (!sys_read((int)fd, &byte, 1) && !write_all((int)fd, names, sizeof names - 1)) SYS(fchmod, fd, 0644, 0, 0);
  sys_close((int)fd);
}
/* H: the folder commands start in, and its owner if it has to be made. The answer: 0 no such user, 2 no such folder and none
 * can be made, else 1; then whether /bin/sh is there. */
static void hello(u32 id, u8 *payload, u32 n) {
  struct cursor c = {payload, payload + n};
  char *workdir = take_text(&c), *user = take_text(&c);
  struct account who;
  u8 answer[2] = {1, 0};
  i64 fd = -1;
  if (find_account(user, &who)) answer[0] = 0;
  else if (*workdir && (make_dirs(workdir, &who) || (fd = sys_open(workdir, O_RDONLY | O_DIRECTORY, 0)) < 0)) answer[0] = 2;
  if (fd >= 0) sys_close((int)fd);
  name_loopback();
  fd = sys_open("/bin/sh", O_RDONLY, 0);
  answer[1] = fd >= 0;
  if (fd >= 0) sys_close((int)fd);
  send('R', id, answer, 2);
}
static void kill_all(u32 id) {
  u32 count = 0;
  for (int pass = 0; pass < 50; pass++) {
    int hits = signal_all(0, 0);
    if (!hits) break;
    if (!pass) count = (u32)hits;
    kill_everyone();
    i64 nap[2] = {0, 1000000};
    SYS(nanosleep, nap, 0, 0, 0);
    reap();
  }
  send('N', id, &count, 4);
}
static void request(u8 type, u32 id, u8 *payload, u32 n) {
  struct job *j;
  if (type == 'S') start(id, payload, n);
  else if (type == 'D') feed(id, payload, n);
  else if (type == 'P') peek(id, payload, n);
  else if (type == 'A') kill_all(id);
  else if (type == 'H') hello(id, payload, n);
  else if (type == 'K' && (j = find_job(id))) {
    if (j->pid) {
      kill_tree(id);
      sys_kill(j->pid, SIGKILL);
    } else {
      release(j);
    }
  }
}
/* Whole frames out of what arrived so far; the buffer grows to the largest frame and keeps its size. */
static void receive(void) {
  static u8 *buf, seen_nonce;
  static u64 size, used;
  if (!buf) buf = sys_map(size = 2 * CHUNK, 2);
  i64 got = sys_read(0, buf + used, size - used);
  if (got == -EINTR || got == -EAGAIN) return;
  if (got <= 0) {
    kill_everyone();
    sys_exit(0);
  }
  used += (u64)got;
  u64 at = 0;
  while (used - at >= FRAME_HEAD) {
    u32 id, n;
    memcpy(&id, buf + at + 17, 4), memcpy(&n, buf + at + 21, 4);
    if (!seen_nonce) memcpy(nonce, buf + at, 16), seen_nonce = 1;
    if (used - at < FRAME_HEAD + (u64)n) {
      if (FRAME_HEAD + (u64)n <= size) break;
      u64 wanted = (FRAME_HEAD + (u64)n + CHUNK - 1) / CHUNK * CHUNK;
      u8 *larger = sys_map(wanted, 2);
      if ((i64)larger < 0) sys_exit(1);
      memcpy(larger, buf + at, used - at);
      SYS(munmap, buf, size, 0, 0);
      buf = larger, size = wanted, used -= at, at = 0;
      break;
    }
    request(buf[at + 16], id, buf + at + FRAME_HEAD, n);
    at += FRAME_HEAD + n;
  }
  for (u64 i = at; at && i < used; i++) buf[i - at] = buf[i];
  used -= at;
}
/* Milliseconds until the next deadline, -1 for none; a passed one ends its command's tree. */
static int enforce_deadlines(void) {
  u64 now = now_us(), next = 0;
  for (struct job *j = jobs; j < jobs + MAX_JOBS; j++) {
    if (!j->used || !j->pid || !j->deadline_us) continue;
    if (now >= j->deadline_us) {
      j->timed_out = 1, j->deadline_us = 0;
      kill_tree(j->id);
      sys_kill(j->pid, SIGKILL);
    } else if (!next || j->deadline_us < next) {
      next = j->deadline_us;
    }
  }
  return next ? (int)((next - now) / 1000 + 1) : -1;
}
static void __attribute__((noreturn)) main_loop(void) {
  static struct pollfd fds[2 + 3 * MAX_JOBS];
  static struct job *owner[2 + 3 * MAX_JOBS];
  u64 child = 1UL << (SIGCHLD - 1), pipe_sig = child | 1UL << (SIGPIPE - 1), info[16];
  SYS(rt_sigprocmask, 0, &pipe_sig, 0, 8);
  SYS(prctl, 4, 0, 0, 0); /* not dumpable: /proc/1/fd and /proc/1/mem are closed to the sandbox's own root, too */
  int signals = (int)SYS(signalfd4, -1, &child, 8, O_CLOEXEC | O_NONBLOCK);
  faults = sys_map(MAX_JOBS * 4, 1);
  for (;;) {
    int wait_ms = enforce_deadlines(), n = 2;
    fds[0].fd = 0, fds[1].fd = signals;
    fds[0].events = fds[1].events = POLLIN;
    for (struct job *j = jobs; j < jobs + MAX_JOBS; j++) {
      if (!j->used || j->spec) continue;
      if (j->out >= 0) owner[n] = j, fds[n].events = POLLIN, fds[n++].fd = j->out;
      if (j->err >= 0) owner[n] = j, fds[n].events = POLLIN, fds[n++].fd = j->err;
      if (j->held) owner[n] = j, fds[n].events = POLLOUT, fds[n++].fd = j->feed;
      if (!j->pid && j->out < 0 && j->err < 0) release(j);
    }
    for (int i = 0; i < n; i++) fds[i].revents = 0;
    i64 span[2] = {wait_ms / 1000, (i64)(wait_ms % 1000) * 1000000};
    sys6(__NR_ppoll, (i64)fds, n, (i64)(wait_ms < 0 ? 0 : span), 0, 8, 0);
    for (int i = 2; i < n; i++)
      if (fds[i].revents) {
        struct job *j = owner[i];
        if (j->out == fds[i].fd) forward(j, &j->out, 'O');
        else if (j->err == fds[i].fd) forward(j, &j->err, 'E');
        else if (j->feed == fds[i].fd) pour_held(j);
      }
    if (fds[1].revents) {
      while (sys_read(signals, info, sizeof info) > 0) {
      }
      reap();
    }
    if (fds[0].revents) receive();
  }
}
void __attribute__((noreturn)) begin(i64 *stack) {
  char **argv = (char **)(stack + 1), **env = argv + stack[0] + 1;
  if (stack[0] > 2 && str_eq(argv[1], "launch")) sys_exit(launch(argv + 2, env));
  /* kill(-1) spares nobody: it must never be sent from outside a sandbox's own process namespace. */
  if (SYS(getpid, 0, 0, 0, 0) != 1) {
    say("the helper runs only as the first process of a sandbox", "");
    sys_exit(2);
  }
  main_loop();
}
#if defined(__x86_64__)
__asm__(".globl _start\n_start:\nxor %ebp,%ebp\nmov %rsp,%rdi\nand $-16,%rsp\ncall begin\n");
#else
__asm__(".globl _start\n_start:\nmov x29,#0\nmov x0,sp\nbl begin\n");
#endif
