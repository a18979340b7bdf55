#include "refuse.h"

#include "memory.h"
#include "system.h"

void (*refuse_undo)(void);

void refuse(const char *label)
{
    char line[40];
    size_t size = 0;
    void (*undo)(void) = refuse_undo;
    refuse_undo = NULL; /* undoing that fails must not begin again */
    if (undo)
        undo();
    while (label[size] != 0 && size < sizeof line - 1) {
        line[size] = label[size];
        size++;
    }
    line[size++] = '\n';
    (void)system_write(2, line, size);
    system_exit(1);
}
