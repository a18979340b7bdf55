#include "streams.h"

#include "peers.h"

word streams_windows[(CHILD_COUNT + 1) * WINDOW_WORDS];

static struct {
    uint32_t kind;
    uint64_t round;
    uint64_t left;  /* words beyond the window */
    uint64_t count; /* words of the window */
    uint64_t at;    /* of which the next one is this */
} streams[CHILD_COUNT + 1];

uint64_t streams_piece(uint64_t words)
{
    return words < WINDOW_WORDS ? words : WINDOW_WORDS;
}

void streams_deliver(uint32_t kind, uint64_t round, word *words, uint64_t count)
{
    uint64_t piece;
    for (uint64_t at = 0; at < count; at += piece) {
        piece = streams_piece(count - at);
        if (!IS_ROOT)
            peers_receive_down(kind, round, words + at, piece * sizeof(word));
        if (HAS_CHILDREN)
            peers_send_down(kind, round, words + at, piece * sizeof(word));
    }
}

/* The next window, of as many words as are left. */
static void begin_window(uint32_t stream)
{
    streams[stream].count = streams_piece(streams[stream].left);
    streams[stream].left -= streams[stream].count;
    streams[stream].at = 0;
}

void streams_begin(uint32_t stream, uint32_t kind, uint64_t round, uint64_t words)
{
    streams[stream].kind = kind;
    streams[stream].round = round;
    streams[stream].left = words;
    streams[stream].count = 0;
    streams[stream].at = 0;
}

word streams_take(uint32_t stream)
{
    word *window = streams_windows + stream * WINDOW_WORDS;
    if (streams[stream].at == streams[stream].count) {
        begin_window(stream);
        uint64_t bytes = streams[stream].count * sizeof(word);
        if (stream == STREAM_UP)
            peers_receive_down(streams[stream].kind, streams[stream].round, window, bytes);
        else
            peers_receive_from(stream, streams[stream].kind, streams[stream].round, window, bytes);
    }
    return window[streams[stream].at++];
}

void streams_put(uint32_t stream, word value)
{
    word *window = streams_windows + stream * WINDOW_WORDS;
    if (streams[stream].at == streams[stream].count)
        begin_window(stream);
    window[streams[stream].at++] = value;
    if (streams[stream].at < streams[stream].count)
        return;
    uint64_t bytes = streams[stream].count * sizeof(word);
    if (stream == STREAM_UP)
        peers_send_up(streams[stream].kind, streams[stream].round, window, bytes);
    else
        peers_send_to(stream, streams[stream].kind, streams[stream].round, window, bytes);
}
