#include "device.h"

#include "cuda.h"
#include "inventory.h"
#include "dl.h"
#include "memory.h"
#include "refuse.h"

enum { ALLOCATED_TO = 256, MOST_MINOR = 247 };

static const char *const cuda_names[] = CUDA_NAMES;
static const char *const cuda_uuid_names[] = CUDA_UUID_NAMES;

enum { CUDA_COUNT = sizeof cuda_names / sizeof *cuda_names };

_Static_assert(sizeof(struct cuda) == sizeof cuda_names, "a name for every function");

static struct cuda cuda;

static struct {
    const struct binding *binding;
    uint64_t lease;
    struct inventory inventory;
    uint8_t uuid[CUDA_UUID_BYTES];
    cuda_device card;
    void *module;
    uint64_t allocated; /* and what was done since, each counted where it is */
    uint64_t launches;
    uint64_t to_device;
    uint64_t from_device;
} device;

static bool has_flag(enum device_flag flag)
{
    return (device.binding->device & flag) != 0;
}

static void check_binding(void)
{
    const uint32_t flags = DEVICE_BOUND | DEVICE_NODE_ONLY | DEVICE_SHADOWED | DEVICE_SIMULATED | DEVICE_ESTABLISHED_DRIVER;
    const struct binding *binding = device.binding;
    if (!has_flag(DEVICE_BOUND) || (binding->device & ~flags) != 0 || binding->minor > MOST_MINOR ||
        memory_is_zero(binding->uuid, sizeof binding->uuid) != has_flag(DEVICE_NODE_ONLY))
        refuse("binding");
}

static void *open_library(void)
{
    void *library = dl_open("libcuda.so.1", has_flag(DEVICE_SIMULATED));
    if (!library || !dl_take(library, cuda_names, CUDA_COUNT, &cuda))
        refuse("device-library");
    int result = cuda.init(0);
    if (result != CUDA_FINE)
        refuse(result == CUDA_NO_DEVICE ? "device-absent" : "device-library");
    return library;
}

static void check_uuid(void *library)
{
    cuda_uuid uuid;
    if (!dl_take(library, cuda_uuid_names, 1, &uuid) && !dl_take(library, cuda_uuid_names + 1, 1, &uuid))
        refuse("device-library");
    if (uuid(device.uuid, device.card) != CUDA_FINE)
        refuse("device-lost");
    if (!has_flag(DEVICE_NODE_ONLY) && memcmp(device.uuid, device.binding->uuid, sizeof device.uuid) != 0)
        refuse("device-uuid");
}

static bool is_same(const char *one, const char *other)
{
    while (*one != 0 && *one == *other)
        one++, other++;
    return *one == *other;
}

static void check_profile(const struct device_profile *profile)
{
    static char name[CUDA_NAME_BYTES];
    int major = 0;
    int minor = 0;
    if (cuda.name(name, CUDA_NAME_BYTES - 1, device.card) != CUDA_FINE ||
        cuda.attribute(&major, CUDA_CAPABILITY_MAJOR, device.card) != CUDA_FINE ||
        cuda.attribute(&minor, CUDA_CAPABILITY_MINOR, device.card) != CUDA_FINE)
        refuse("device-lost");
    if (!is_same(name, profile->product) || major != profile->capability[0] || minor != profile->capability[1])
        refuse("nvidia-plan-host");
}

/* Of `550.54` every `550.54.x` is one, and `550.541` is not. */
static bool is_release(const char *release, const char *established)
{
    while (*established != 0 && *release == *established)
        release++, established++;
    return *established == 0 && (*release == 0 || *release == '.');
}

static void check_release(const char *const *established)
{
    while (*established && !is_release(device.inventory.release, *established))
        established++;
    if (has_flag(DEVICE_ESTABLISHED_DRIVER) && !*established)
        refuse("device-driver");
}

static void take_context(void)
{
    void *context = NULL;
    int result = cuda.retain_context(&context, device.card);
    if (result == CUDA_FINE)
        result = cuda.set_context(context);
    if (result != CUDA_FINE)
        refuse(result == CUDA_OUT_OF_MEMORY ? "device-memory" : "device-busy");
}

void device_open(const struct binding *binding, const struct device_profile *profile)
{
    device.binding = binding;
    device.lease = profile->lease;
    check_binding();
    inventory_find(&device.inventory, binding->minor, has_flag(DEVICE_SIMULATED));
    void *library = open_library();
    if (cuda.device_at(&device.card, device.inventory.bus) != CUDA_FINE)
        refuse("device-minor");
    check_uuid(library);
    check_profile(profile);
    check_release(profile->established);
    take_context();
    if (cuda.load_module(&device.module, profile->module) != CUDA_FINE)
        refuse("device-kernel");
}

uint64_t device_allocate(uint64_t bytes)
{
    cuda_address address = 0;
    uint64_t charged = (bytes + ALLOCATED_TO - 1) / ALLOCATED_TO * ALLOCATED_TO;
    if (bytes == 0)
        return 0;
    if (charged > device.lease - device.allocated)
        refuse("device-lease");
    if (cuda.allocate(&address, bytes) != CUDA_FINE)
        refuse("device-memory");
    device.allocated += charged;
    return address;
}

static void check_call(int result)
{
    if (result != CUDA_FINE)
        refuse("device-lost");
}

void device_write(uint64_t to, const void *from, uint64_t bytes)
{
    if (bytes > 0)
        check_call(cuda.copy_up(to, from, bytes));
    device.to_device += bytes;
}

void device_read(void *into, uint64_t from, uint64_t bytes)
{
    if (bytes > 0)
        check_call(cuda.copy_down(into, from, bytes));
    device.from_device += bytes;
}

void *device_kernel(const char *name)
{
    void *kernel = NULL;
    if (cuda.function(&kernel, device.module, name) != CUDA_FINE)
        refuse("device-kernel");
    return kernel;
}

void device_launch(void *kernel, uint64_t threads, void **parameters)
{
    if (threads == 0)
        return;
    uint64_t blocks = (threads + DEVICE_BLOCK_THREADS - 1) / DEVICE_BLOCK_THREADS;
    check_call(cuda.launch(kernel, (unsigned)blocks, 1, 1, DEVICE_BLOCK_THREADS, 1, 1, 0, NULL, parameters, NULL));
    check_call(cuda.synchronize());
    device.launches++;
}

/* `GPU-` and the UUID in its five groups. */
static void put_uuid(struct text *text)
{
    static const uint8_t ends[] = {4, 6, 8, 10, CUDA_UUID_BYTES};
    static const char digits[] = "0123456789abcdef";
    const char *between = "GPU-";
    for (size_t group = 0, at = 0; group < sizeof ends; group++, between = "-") {
        text_put(text, "%n", between);
        for (; at < ends[group]; at++) {
            char pair[3] = {digits[device.uuid[at] >> 4], digits[device.uuid[at] & 15], 0};
            text_put(text, "%n", pair);
        }
    }
}

void device_say(struct text *text, const char *product)
{
    text_put(text, "{\"allocated\":%u,\"from_device\":%u,\"inventory\":\"%n\",\"launches\":%u,\"minor\":%u",
             device.allocated, device.from_device, device.inventory.source, device.launches,
             (uint64_t)device.binding->minor);
    text_put(text, ",\"product\":%n,\"shadowed\":%n,\"simulated\":%n,\"to_device\":%u,\"uuid\":\"", product,
             has_flag(DEVICE_SHADOWED) ? "true" : "false", has_flag(DEVICE_SIMULATED) ? "true" : "false",
             device.to_device);
    put_uuid(text);
    text_put(text, "\"}");
}
