/* Input: for each of two sockets the size of its pieces, then what differs in the frames that come over them. */
#include <string.h>

#include "exchange.h"
#include "machine.h"

enum { PEERS = 2, PAYLOAD = 40, FRAME = FRAME_BYTES + PAYLOAD };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct transfer transfers[PEERS];
    static struct waiting waiting[PEERS];
    static uint8_t wire[PEERS][FRAME];
    static uint8_t payloads[PEERS][PAYLOAD];
    static const uint8_t plan[32] = {7};
    if (size < PEERS)
        return 0;
    machine = (struct machine){.socket_count = PEERS, .patience = 64};
    for (size_t peer = 0; peer < PEERS; peer++) {
        struct transfer *transfer = transfers + peer;
        memset(transfer, 0, sizeof *transfer);
        transfer->socket = 1 << 21 | (int)peer; /* the machine's first sockets */
        frame_begin(&transfer->frame, plan, 3);
        transfer->frame.length = PAYLOAD;
        transfer->frame.sender = (uint32_t)peer;
        transfer->payload = payloads[peer];
        memcpy(wire[peer], &transfer->frame, FRAME_BYTES);
        memset(wire[peer] + FRAME_BYTES, 0, PAYLOAD);
        machine.sockets[peer] = (struct fake_socket){wire[peer], FRAME, 0, 1u + data[peer]};
    }
    for (size_t i = PEERS; i < size && i < PEERS + sizeof wire; i++)
        ((uint8_t *)wire)[i - PEERS] ^= data[i];
    if (size > PEERS + sizeof wire) /* what is left says where the second peer hangs up */
        machine.sockets[1].size = data[PEERS + sizeof wire] % FRAME;
    const struct exchange exchange = {transfers, waiting, PEERS, 0, NULL};
    if (WAS_REFUSED(exchange_run(&exchange, (struct deadline){0, "round-deadline"})))
        return 0;
    for (size_t peer = 0; peer < PEERS; peer++) {
        DEMAND(memcmp(&transfers[peer].received, &transfers[peer].frame, FRAME_BYTES) == 0);
        DEMAND(memcmp(payloads[peer], wire[peer] + FRAME_BYTES, PAYLOAD) == 0);
    }
    return 0;
}
