/* Input: for each caller one byte with who it is and in how small pieces it speaks, and one with how much it says;
 * then what differs in the hellos from those that are right. */
#include "../../../roles/native/meeting.c"

#include <string.h>

#include "machine.h"

enum { MOST_CALLERS = MOST_SOCKETS, ABOUT = 2 };

static bool has_label(const char *label)
{
    static const char *const known[] = {"frame-identity", "frame-epoch",      "frame-round",
                                        "frame-bound",    "connect-deadline", "peer-lost"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(label, known[i]) == 0)
            return true;
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct binding binding = {.epoch = 3, .target = 5, .secret = "sixteen bytes of"};
    static struct hello said[MOST_CALLERS];
    static int sockets[CHILD_COUNT + 1];
    struct hello own;
    size_t callers_count = size > 0 ? 1 + data[0] % MOST_CALLERS : 0;
    if (size < 1 + ABOUT * callers_count)
        return 0;
    fault = NULL;
    memset(&own, 0, sizeof own);
    hello_begin(&own, &binding, 1);
    machine = (struct machine){.socket_count = callers_count, .patience = 200};
    for (size_t i = 0; i < callers_count; i++) {
        const uint8_t *about = data + 1 + ABOUT * i;
        said[i] = own;
        said[i].frame.sender = FIRST_CHILD + about[0] % (CHILD_COUNT + 1);
        size_t length = about[1] < HELLO_BYTES ? about[1] : HELLO_BYTES;
        machine.sockets[i] = (struct fake_socket){(uint8_t *)(said + i), length, 0, 1u + about[0] / 4};
    }
    for (size_t i = 1 + ABOUT * callers_count, at = 0; i < size && at < sizeof said; i++, at++)
        ((uint8_t *)said)[at] ^= data[i];
    meeting_listen(&binding.endpoint);
    for (size_t child = 0; child < CHILD_COUNT; child++)
        sockets[child] = -1;
    if (WAS_REFUSED(meeting_gather(sockets, FIRST_CHILD, CHILD_COUNT, -1, &own,
                                   (struct deadline){0, "connect-deadline"}))) {
        DEMAND(has_label(machine.label));
        return 0;
    }
    for (size_t child = 0; child < CHILD_COUNT; child++) {
        const struct fake_socket *socket = machine.sockets + (sockets[child] - (1 << 21));
        const struct hello *hello = (const struct hello *)socket->bytes;
        DEMAND(sockets[child] >= 1 << 21 && socket->at == HELLO_BYTES);
        DEMAND(hello->frame.sender == FIRST_CHILD + child);
        DEMAND(memcmp(hello->secret, own.secret, SECRET_BYTES) == 0 && memcmp(hello->run, own.run, RUN_ID_BYTES) == 0);
        DEMAND(hello->frame.epoch == own.frame.epoch && hello->target == own.target && hello->start == own.start);
    }
    return 0;
}
