/* Text written into a fixed buffer, and text read back by a strict scanner.
 *
 * The scanner knows canonical JSON of a known shape only: the caller says the very bytes that must come next.
 * A document has one canonical form, so nothing that another program of ours wrote is refused by it. */
#ifndef TEXT_H
#define TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
    char *bytes;
    size_t size;
    size_t used;
};

/* Each refuses `write-failed` where the buffer is full: buffers are sized by the plan, so none ever is. */
void text_put(struct text *text, const char *string);
void text_put_number(struct text *text, uint64_t number);
void text_put_hex(struct text *text, const uint8_t *bytes, size_t size);
void text_put_bits(struct text *text, double word); /* 16 digits, most significant first */
void text_put_zero(struct text *text);              /* the terminator of a C string, not counted in used */

struct scan {
    const char *at;
    const char *end;
    bool failed;
};

/* Each leaves the scan failed, for good, if what stands there is something else. */
void scan_literal(struct scan *scan, const char *literal);
bool scan_has(struct scan *scan, char next); /* takes it if it stands there */
uint64_t scan_number(struct scan *scan);     /* decimal, no leading zero, below 2^53 */
void scan_hex(struct scan *scan, uint8_t *bytes, size_t size);
/* A quoted name of [A-Za-z0-9_.-], not beginning with a dot; terminated; 1 to size - 1 characters. */
void scan_name(struct scan *scan, char *name, size_t size);

#endif
