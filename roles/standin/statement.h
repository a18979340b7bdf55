/* What stands between a kernel's braces: declarations of registers, labels, instructions. */
#ifndef STATEMENT_H
#define STATEMENT_H

#include "loader.h"

/* One statement, with its semicolon or colon. Branches have no place yet. */
void statement_take(struct loader *loader, struct kernel *kernel);

#endif
