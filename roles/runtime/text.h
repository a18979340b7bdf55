/* Text written into a fixed buffer by a form, and text read back by the same form.
 *
 * A form is what stands in the text, byte for byte, but for:
 *   %u a number (uint64_t; read: uint64_t *)            %h 32 bytes as hexadecimal (uint8_t *)
 *   %n a name (char *; read: char[NAME_BYTES])           %r 16 bytes as hexadecimal (uint8_t *)
 *   %b 64 bits as 16 hexadecimal digits, the highest first (uint64_t; written only)
 *
 * The reader knows canonical JSON of a known shape only. A document has one canonical form, so nothing that
 * another program of ours wrote is refused by it, and nothing else is accepted. */
#ifndef TEXT_H
#define TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Room for a name and its end: what a file system takes. */
enum { NAME_BYTES = 256 };

struct text {
    char *bytes;
    size_t size;
    size_t used;
};

/* Refuses `write-failed` where the buffer is full: buffers are sized by the plan, so none ever is. */
void text_put(struct text *text, const char *form, ...);

/* A C string of the form in a buffer of its own. */
#define text_name(buffer, ...) text_put(&(struct text){(buffer), sizeof(buffer), 0}, __VA_ARGS__)

/* What is read ends in a zero byte, and moves to an empty text once it has failed. */
struct scan {
    const char *at;
    bool failed;
};

/* Leaves the scan failed, for good, if what stands there is not of the form. Numbers are below 2^53 and have no
 * leading zero; names are of [A-Za-z0-9_.-] and do not begin with a dot. */
void scan_form(struct scan *scan, const char *form, ...);

/* Takes `next` if it stands there. */
bool scan_has(struct scan *scan, char next);

#endif
