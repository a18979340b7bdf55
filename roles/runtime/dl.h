/* Libraries of the machine, loaded at run time: the one thing that a device role takes from outside of itself. */
#ifndef DL_H
#define DL_H

#include <stdbool.h>
#include <stddef.h>

/* The library of this name: the machine's, or the stand-in's in the work folder; NULL if there is none. A stand-in
 * says that it is one. Refuses `device-simulated` where one is found and not wanted, or the other way round. */
void *dl_open(const char *name, bool is_simulated);

/* Fills a table of function pointers from names in the same order, `count` of both; false if one is not there. */
bool dl_take(void *library, const char *const *names, size_t count, void *table);

#endif
