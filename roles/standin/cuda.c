/* libcuda.so.1: the entry points of the driver that device roles use, over cards that are lines of text.
 *
 * One process, one thread. A launch is done before it returns, but what goes wrong in it is said by the calls
 * after it, all of them, as a card says it. Only a card that is asked something has a count other than zero. */
#include "calls.h"
#include "cards.h"
#include "launch.h"
#include "library.h"
#include "memory.h"
#include "module.h"
#include "space.h"

enum {
    SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, DEVICE_UNAVAILABLE = 46, NO_DEVICE = 100,
    INVALID_DEVICE = 101, INVALID_CONTEXT = 201, NO_BINARY_FOR_GPU = 209, INVALID_PTX = 218,
    UNSUPPORTED_PTX_VERSION = 222, OPERATING_SYSTEM = 304, INVALID_HANDLE = 400, NOT_FOUND = 500,
    ILLEGAL_ADDRESS = 700, LAUNCH_TIMEOUT = 702, MISALIGNED_ADDRESS = 716, LAUNCH_FAILED = 719, UNKNOWN = 999,
};

enum { ATTRIBUTE_MAJOR = 75, ATTRIBUTE_MINOR = 76, BLOCK_THREADS = 1024 };

#define MIB ((uint64_t)1 << 20)

const int orch_stand_in = 1;

static struct cards cards;
static struct calls calls[CARDS];
static bool is_retained[CARDS];
static int current = -1; /* the card of the current context */
static uint32_t launches;
static bool is_begun;

/* Ends a call that asked something of a card. */
static int asked(int card, int result)
{
    calls[card].calls++;
    return calls_write((size_t)card, cards.card[card].minor, &calls[card]) ? result : OPERATING_SYSTEM;
}

static bool is_card(int card)
{
    return is_begun && card >= 0 && (size_t)card < cards.count;
}

/* Whether there is a context to do anything in; else leaves in `result` what is to be said. */
static bool is_entered(int *result)
{
    *result = !is_begun ? NOT_INITIALIZED : current < 0 ? INVALID_CONTEXT : (int)calls[current].error;
    if (current >= 0 && *result != SUCCESS)
        *result = asked(current, *result);
    return *result == SUCCESS;
}

EXPORTED int cuInit(unsigned flags)
{
    if (flags != 0)
        return INVALID_VALUE;
    if (is_begun)
        return SUCCESS;
    if (!cards_read(CARDS_FILE, &cards))
        return UNKNOWN;
    if (!calls_begin("standin-calls", &cards))
        return OPERATING_SYSTEM;
    if (cards.count == 0)
        return NO_DEVICE;
    is_begun = true;
    return SUCCESS;
}

EXPORTED int cuDeviceGetByPCIBusId(int *device, const char *address)
{
    if (!is_begun)
        return NOT_INITIALIZED;
    int card = cards_at(&cards, address);
    if (card < 0)
        return INVALID_DEVICE;
    *device = card;
    return asked(card, SUCCESS);
}

EXPORTED int cuDeviceGetUuid_v2(uint8_t *uuid, int device)
{
    if (!is_card(device))
        return INVALID_DEVICE;
    memcpy(uuid, cards.card[device].uuid, UUID_BYTES);
    return asked(device, SUCCESS);
}

EXPORTED int cuDeviceGetUuid(uint8_t *uuid, int device)
{
    return cuDeviceGetUuid_v2(uuid, device);
}

EXPORTED int cuDeviceGetName(char *name, int size, int device)
{
    if (!is_card(device))
        return INVALID_DEVICE;
    if (size <= 0)
        return INVALID_VALUE;
    int used = 0;
    for (; used < size - 1 && cards.card[device].product[used] != 0; used++)
        name[used] = cards.card[device].product[used];
    name[used] = 0;
    return asked(device, SUCCESS);
}

EXPORTED int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    if (!is_card(device))
        return INVALID_DEVICE;
    if (attribute != ATTRIBUTE_MAJOR && attribute != ATTRIBUTE_MINOR)
        return asked(device, INVALID_VALUE);
    *value = (int)(attribute == ATTRIBUTE_MAJOR ? cards.card[device].major : cards.card[device].lesser);
    return asked(device, SUCCESS);
}

EXPORTED int cuDevicePrimaryCtxRetain(void **made, int device)
{
    if (!is_card(device))
        return INVALID_DEVICE;
    if (cards.card[device].fault == FAULT_BUSY)
        return asked(device, DEVICE_UNAVAILABLE);
    is_retained[device] = true;
    *made = &cards.card[device];
    return asked(device, SUCCESS);
}

EXPORTED int cuCtxSetCurrent(void *made)
{
    if (!is_begun)
        return NOT_INITIALIZED;
    for (int card = 0; (size_t)card < cards.count; card++)
        if (made == &cards.card[card] && is_retained[card]) {
            current = card;
            return asked(card, SUCCESS);
        }
    return INVALID_CONTEXT;
}

static int load(const char *text, struct module **made)
{
    struct module *loaded = space_pages(sizeof *loaded);
    if (!loaded)
        return OUT_OF_MEMORY;
    enum loaded result = module_load(text, loaded);
    if (result != LOADED)
        return result == LOAD_REFUSED ? INVALID_PTX : OUT_OF_MEMORY;
    const struct card *card = &cards.card[current];
    if (loaded->version > cards_release(card).language)
        return UNSUPPORTED_PTX_VERSION;
    if (loaded->target > 10 * card->major + card->lesser)
        return NO_BINARY_FOR_GPU;
    *made = loaded;
    return SUCCESS;
}

EXPORTED int cuModuleLoadData(struct module **made, const char *text)
{
    int result;
    return is_entered(&result) ? asked(current, load(text, made)) : result;
}

static int find(const struct kernel **found, const struct module *loaded, const char *name)
{
    for (size_t i = 0; i < loaded->kernel_count; i++)
        if (word_is(loaded->kernels[i].name, name)) {
            *found = &loaded->kernels[i];
            return SUCCESS;
        }
    return NOT_FOUND;
}

EXPORTED int cuModuleGetFunction(const struct kernel **found, const struct module *loaded, const char *name)
{
    int result;
    return is_entered(&result) ? asked(current, find(found, loaded, name)) : result;
}

static int allocate(uint64_t *address, size_t size)
{
    const struct card *card = &cards.card[current];
    uint64_t rounded = (size + SPACE_ALIGNMENT - 1) / SPACE_ALIGNMENT * SPACE_ALIGNMENT;
    uint64_t taken = (card->reserved_mib + card->used_mib) * MIB + calls[current].bytes_allocated;
    if (size == 0)
        return INVALID_VALUE;
    if (card->fault == FAULT_MEMORY || rounded < size || taken > card->memory_mib * MIB ||
        rounded > card->memory_mib * MIB - taken)
        return OUT_OF_MEMORY;
    *address = space_allocate((size_t)current, size);
    if (*address == 0)
        return OUT_OF_MEMORY;
    calls[current].allocations++;
    calls[current].bytes_allocated += rounded;
    return SUCCESS;
}

EXPORTED int cuMemAlloc_v2(uint64_t *address, size_t size)
{
    int result;
    return is_entered(&result) ? asked(current, allocate(address, size)) : result;
}

EXPORTED int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size)
{
    int result;
    if (!is_entered(&result))
        return result;
    uint8_t *found = space_find((size_t)current, to, size);
    if (!found && size > 0)
        return asked(current, INVALID_VALUE);
    if (size > 0)
        memcpy(found, from, size);
    calls[current].to_device += size;
    return asked(current, SUCCESS);
}

EXPORTED int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size)
{
    int result;
    if (!is_entered(&result))
        return result;
    const uint8_t *found = space_find((size_t)current, from, size);
    if (!found && size > 0)
        return asked(current, INVALID_VALUE);
    if (size > 0)
        memcpy(to, found, size);
    calls[current].from_device += size;
    return asked(current, SUCCESS);
}

static int error_of(enum launched launched)
{
    static const int errors[] = {
        [LAUNCH_DONE] = SUCCESS, [LAUNCH_ADDRESS] = ILLEGAL_ADDRESS, [LAUNCH_ALIGNMENT] = MISALIGNED_ADDRESS,
        [LAUNCH_ENDLESS] = LAUNCH_TIMEOUT, [LAUNCH_RACE] = LAUNCH_FAILED, [LAUNCH_NO_MEMORY] = OUT_OF_MEMORY,
    };
    return errors[launched];
}

/* Does the launch; what goes wrong in it is the card's error from then on. */
static void run(const struct kernel *kernel, unsigned blocks, unsigned threads, void *const *parameters)
{
    const struct card *card = &cards.card[current];
    struct launch launch = {.card = (size_t)current, .number = ++launches, .blocks = blocks, .threads = threads};
    uint64_t number = ++calls[current].launches;
    if (card->fault == FAULT_LOST && number >= card->fault_at) {
        calls[current].error = LAUNCH_FAILED;
        return;
    }
    launch.spoil = card->fault == FAULT_COMPUTE && number == card->fault_at;
    for (size_t i = 0; i < kernel->parameters; i++)
        memcpy(&launch.parameters[i], parameters[i], sizeof *launch.parameters);
    enum launched launched = launch_run(kernel, &launch);
    calls[current].races += launched == LAUNCH_RACE;
    calls[current].error = (uint64_t)error_of(launched);
}

/* Grids of one dimension on the one stream that there is, without shared memory. */
EXPORTED int cuLaunchKernel(const struct kernel *kernel, unsigned blocks, unsigned blocks_y, unsigned blocks_z,
                            unsigned threads, unsigned threads_y, unsigned threads_z, unsigned shared,
                            const void *stream, void *const *parameters, void *const *extra)
{
    int result;
    if (!is_entered(&result))
        return result;
    if (stream)
        return asked(current, INVALID_HANDLE);
    bool is_line = blocks_y == 1 && blocks_z == 1 && threads_y == 1 && threads_z == 1 && shared == 0 && !extra;
    bool is_grid = blocks > 0 && threads > 0 && threads <= BLOCK_THREADS && (uint64_t)blocks * threads < UINT32_MAX;
    if (!is_line || !is_grid || !kernel || !parameters)
        return asked(current, INVALID_VALUE);
    run(kernel, blocks, threads, parameters);
    return asked(current, SUCCESS);
}

EXPORTED int cuCtxSynchronize(void)
{
    int result;
    return is_entered(&result) ? asked(current, SUCCESS) : result;
}
