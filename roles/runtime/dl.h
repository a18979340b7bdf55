/* A library of the machine's, loaded at run time: the one thing that a device role takes from outside of itself. */
#ifndef DL_H
#define DL_H

#include <stdbool.h>
#include <stddef.h>

/* From the node's libdl; see roles/link. */
void *dlopen(const char *name, int how);
void *dlsym(void *library, const char *name);

/* The library, or NULL. A name with a slash is a file, any other is looked for where the machine keeps libraries. */
void *dl_open(const char *name);

/* Fills a table of function pointers from names in the same order, `count` of both; false if one is not there. */
bool dl_take(void *library, const char *const *names, size_t count, void *table);

#endif
