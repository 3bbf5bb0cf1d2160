/* Preloaded, it makes each read of the file that SLOW_FILE names take a minute. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

typedef ssize_t reading(int, void *, size_t, off64_t);

ssize_t pread64(int file, void *buffer, size_t length, off64_t offset) {
    const char *name = getenv("SLOW_FILE");
    struct stat slow, read;
    if (name && stat(name, &slow) == 0 && fstat(file, &read) == 0 && slow.st_ino == read.st_ino && slow.st_dev == read.st_dev)
        sleep(60);
    return ((reading *)dlsym(RTLD_NEXT, "pread64"))(file, buffer, length, offset);
}
