/* What the combine takes from a plan's header. */
#ifndef PLAN_H
#define PLAN_H

typedef double word;

#endif
