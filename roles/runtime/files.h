/* Files in the work folder: read without following links, written so that a name means a whole file. */
#ifndef FILES_H
#define FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A regular file for reading, or -1: absent, a link, or something else than a regular file. */
int files_open(const char *name, uint64_t *size);

/* Exactly `size` bytes; false at an early end or an error. */
bool files_read(int file, void *bytes, size_t size);
/* The same from `at` on, wherever reading has come to. */
bool files_read_at(int file, void *bytes, size_t size, uint64_t at);

/* The calls below refuse `write-failed` on any error; what is there already and no regular file is one. */
int files_create(const char *name);
int files_append_to(const char *name);
void files_write(int file, const void *bytes, size_t size);
void files_make_folder(const char *name);
/* Ends the writing of `temporary` and gives it its name: fsync, rename, fsync of the folder. */
void files_publish(int file, const char *temporary, const char *name, const char *folder);

void files_remove(const char *name);

#endif
