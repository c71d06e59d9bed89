// A network file system's attribute cache, at its worst, for one process: loaded by LD_PRELOAD, it answers
// stat() and access() below $TALLY_FAKE_CACHE from what it saw first, "there is no such file" included,
// until the file is opened or its folder is listed, which is when real ones look again.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct entry {
  char path[512];
  int error;  // 0: `info` holds
  struct stat info;
};
static struct entry entries[4096];
static int count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int cached(const char* path) {
  const char* below = getenv("TALLY_FAKE_CACHE");
  return below && path && strncmp(path, below, strlen(below)) == 0 && strlen(path) < sizeof entries[0].path;
}

static struct entry* find(const char* path) {
  for (int i = 0; i < count; ++i) {
    if (strcmp(entries[i].path, path) == 0) return &entries[i];
  }
  return NULL;
}

static void forget(const char* path, int below) {
  const size_t length = strlen(path);
  pthread_mutex_lock(&lock);
  for (int i = 0; i < count; ++i) {
    const int same = strncmp(entries[i].path, path, length) == 0;
    if (same && (entries[i].path[length] == '\0' || (below && entries[i].path[length] == '/'))) {
      entries[i--] = entries[--count];
    }
  }
  pthread_mutex_unlock(&lock);
}

static int look(const char* path, struct stat* info) {
  static int (*real)(const char*, struct stat*);
  if (!real) real = (int (*)(const char*, struct stat*))dlsym(RTLD_NEXT, "stat");
  if (!cached(path)) return real(path, info);
  pthread_mutex_lock(&lock);
  struct entry* known = find(path);
  if (!known && count < (int)(sizeof entries / sizeof entries[0])) {
    known = &entries[count++];
    strcpy(known->path, path);
    known->error = real(path, &known->info) == 0 ? 0 : errno;
  }
  const int error = known ? known->error : real(path, info) == 0 ? 0 : errno;
  if (known && !error) *info = known->info;
  pthread_mutex_unlock(&lock);
  errno = error;
  return error ? -1 : 0;
}

int stat(const char* path, struct stat* info) { return look(path, info); }

int access(const char* path, int mode) {
  static int (*real)(const char*, int);
  struct stat info;
  if (!real) real = (int (*)(const char*, int))dlsym(RTLD_NEXT, "access");
  if (!cached(path)) return real(path, mode);
  if (look(path, &info) != 0) return -1;
  return real(path, mode);
}

DIR* opendir(const char* path) {
  static DIR* (*real)(const char*);
  if (!real) real = (DIR * (*)(const char*)) dlsym(RTLD_NEXT, "opendir");
  if (path) forget(path, 1);
  return real(path);
}

int open(const char* path, int flags, ...) {
  static int (*real)(const char*, int, ...);
  if (!real) real = (int (*)(const char*, int, ...))dlsym(RTLD_NEXT, "open");
  mode_t mode = 0;
  if (flags & O_CREAT) {
    va_list rest;
    va_start(rest, flags);
    mode = (mode_t)va_arg(rest, int);
    va_end(rest);
  }
  if (cached(path)) {
    // Known not to be there: not asked again.
    pthread_mutex_lock(&lock);
    const struct entry* known = find(path);
    const int error = known && !(flags & O_CREAT) ? known->error : 0;
    pthread_mutex_unlock(&lock);
    if (error) {
      errno = error;
      return -1;
    }
    forget(path, 0);
  }
  return real(path, flags, mode);
}
