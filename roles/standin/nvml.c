/* libnvidia-ml.so.1: what a machine without /proc/driver/nvidia is asked for its cards. A handle is a card. */
#include "cards.h"
#include "library.h"
#include "memory.h"
#include "words.h"

enum { NVML_SUCCESS = 0, NVML_UNINITIALIZED = 1, NVML_INVALID_ARGUMENT = 2, NVML_INSUFFICIENT_SIZE = 7,
       NVML_DRIVER_NOT_LOADED = 9 };

enum { LEGACY_BUS_BYTES = 16, BUS_BYTES = 32 };

/* As the library's callers have them. */
struct nvml_pci {
    char legacy[LEGACY_BUS_BYTES];
    uint32_t domain;
    uint32_t bus;
    uint32_t device;
    uint32_t device_id;
    uint32_t subsystem_id;
    char address[BUS_BYTES];
};

struct nvml_memory {
    uint32_t version;
    uint64_t total;
    uint64_t reserved;
    uint64_t free;
    uint64_t used; /* without the reserved part */
};

struct nvml_utilization {
    uint32_t gpu; /* percent */
    uint32_t memory;
};

struct nvml_process {
    uint32_t pid;
    uint64_t used; /* bytes */
    uint32_t gpu_instance;
    uint32_t compute_instance;
};

const int orch_stand_in = 1;

static struct cards cards;
static bool is_begun;

static bool is_card(const struct card *card)
{
    return is_begun && card >= cards.card && card < cards.card + cards.count;
}

static int give(char *to, unsigned size, const char *from)
{
    for (unsigned i = 0; i < size; i++) {
        to[i] = from[i];
        if (from[i] == 0)
            return NVML_SUCCESS;
    }
    return NVML_INSUFFICIENT_SIZE;
}

EXPORTED int nvmlInit_v2(void)
{
    is_begun = cards_read(CARDS_FILE, &cards);
    return is_begun ? NVML_SUCCESS : NVML_DRIVER_NOT_LOADED;
}

EXPORTED int nvmlInitWithFlags(unsigned flags)
{
    return flags == 0 ? nvmlInit_v2() : NVML_INVALID_ARGUMENT;
}

EXPORTED int nvmlShutdown(void)
{
    bool was_begun = is_begun;
    is_begun = false;
    return was_begun ? NVML_SUCCESS : NVML_UNINITIALIZED;
}

EXPORTED const char *nvmlErrorString(int result)
{
    return result == NVML_SUCCESS ? "Success" : "an error of orch's stand-in";
}

EXPORTED int nvmlSystemGetDriverVersion(char *version, unsigned size)
{
    if (!is_begun)
        return NVML_UNINITIALIZED;
    return give(version, size, cards.count > 0 ? cards.card[0].driver : "");
}

EXPORTED int nvmlDeviceGetCount_v2(unsigned *count)
{
    if (!is_begun)
        return NVML_UNINITIALIZED;
    *count = (unsigned)cards.count;
    return NVML_SUCCESS;
}

EXPORTED int nvmlDeviceGetHandleByIndex_v2(unsigned index, const struct card **handle)
{
    if (!is_begun)
        return NVML_UNINITIALIZED;
    if (index >= cards.count)
        return NVML_INVALID_ARGUMENT;
    *handle = &cards.card[index];
    return NVML_SUCCESS;
}

EXPORTED int nvmlDeviceGetMinorNumber(const struct card *card, unsigned *minor)
{
    if (!is_card(card))
        return NVML_INVALID_ARGUMENT;
    *minor = (unsigned)card->minor;
    return NVML_SUCCESS;
}

EXPORTED int nvmlDeviceGetPciInfo_v3(const struct card *card, struct nvml_pci *pci)
{
    if (!is_card(card))
        return NVML_INVALID_ARGUMENT;
    *pci = (struct nvml_pci){.domain = (uint32_t)card->domain, .bus = (uint32_t)card->bus,
                             .device = (uint32_t)card->device};
    cards_put_address(&(struct text){pci->legacy, sizeof pci->legacy, 0}, card, 4);
    cards_put_address(&(struct text){pci->address, sizeof pci->address, 0}, card, 8);
    return NVML_SUCCESS;
}

EXPORTED int nvmlDeviceGetUUID(const struct card *card, char *uuid, unsigned size)
{
    return is_card(card) ? give(uuid, size, card->uuid_text) : NVML_INVALID_ARGUMENT;
}

EXPORTED int nvmlDeviceGetName(const struct card *card, char *name, unsigned size)
{
    return is_card(card) ? give(name, size, card->product) : NVML_INVALID_ARGUMENT;
}

EXPORTED int nvmlDeviceGetMemoryInfo_v2(const struct card *card, struct nvml_memory *memory)
{
    if (!is_card(card))
        return NVML_INVALID_ARGUMENT;
    memory->total = card->memory_mib << 20;
    memory->reserved = card->reserved_mib << 20;
    memory->used = card->used_mib << 20;
    memory->free = memory->total - memory->reserved - memory->used;
    return NVML_SUCCESS;
}

EXPORTED int nvmlDeviceGetCudaComputeCapability(const struct card *card, int *major, int *minor)
{
    if (!is_card(card))
        return NVML_INVALID_ARGUMENT;
    *major = (int)card->major;
    *minor = (int)card->lesser;
    return NVML_SUCCESS;
}

EXPORTED int nvmlDeviceGetUtilizationRates(const struct card *card, struct nvml_utilization *utilization)
{
    if (!is_card(card))
        return NVML_INVALID_ARGUMENT;
    *utilization = (struct nvml_utilization){(uint32_t)card->utilization, 0};
    return NVML_SUCCESS;
}

EXPORTED int nvmlDeviceGetComputeRunningProcesses_v3(const struct card *card, unsigned *count, struct nvml_process *list)
{
    if (!is_card(card))
        return NVML_INVALID_ARGUMENT;
    unsigned room = *count;
    *count = card->process != 0;
    if (*count > room)
        return NVML_INSUFFICIENT_SIZE;
    if (*count > 0)
        *list = (struct nvml_process){(uint32_t)card->process, card->process_mib << 20, UINT32_MAX, UINT32_MAX};
    return NVML_SUCCESS;
}

EXPORTED int nvmlDeviceGetGraphicsRunningProcesses_v3(const struct card *card, unsigned *count)
{
    if (!is_card(card))
        return NVML_INVALID_ARGUMENT;
    *count = 0;
    return NVML_SUCCESS;
}
