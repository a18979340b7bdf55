/* The one way out of a run that must not go on. */
#ifndef REFUSE_H
#define REFUSE_H

/* Runs the undoing, says exactly `label` and a newline on stderr, and ends with exit code 1. The kernel closes
 * the sockets, so that peers see it at once. */
__attribute__((noreturn)) void refuse(const char *label);

/* What is to be undone if the run is refused; NULL for nothing. */
extern void (*refuse_undo)(void);

#endif
