/* What a device role calls of the driver's library, as its documented interface has it. */
#ifndef CUDA_H
#define CUDA_H

#include <stddef.h>
#include <stdint.h>

enum { CUDA_FINE = 0, CUDA_OUT_OF_MEMORY = 2, CUDA_UNAVAILABLE = 46, CUDA_NO_DEVICE = 100 };

enum { CUDA_CAPABILITY_MAJOR = 75, CUDA_CAPABILITY_MINOR = 76 };

enum { CUDA_NAME_BYTES = 256, CUDA_UUID_BYTES = 16 };

typedef int cuda_device;
typedef uint64_t cuda_address; /* of video memory: no host pointer */

/* Pointers in the order of CUDA_NAMES. Results are CUDA_FINE or an error's number. */
struct cuda {
    int (*init)(unsigned flags);
    int (*device_at)(cuda_device *device, const char *bus);
    int (*name)(char *name, int size, cuda_device device);
    int (*attribute)(int *value, int attribute, cuda_device device);
    int (*retain_context)(void **context, cuda_device device);
    int (*set_context)(void *context);
    int (*load_module)(void **module, const void *image);
    int (*function)(void **function, void *module, const char *name);
    int (*allocate)(cuda_address *address, size_t size);
    int (*copy_up)(cuda_address to, const void *from, size_t size);
    int (*copy_down)(void *to, cuda_address from, size_t size);
    int (*launch)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                  unsigned block_y, unsigned block_z, unsigned shared, void *stream, void **parameters, void **extra);
    int (*synchronize)(void);
};

#define CUDA_NAMES                                                                                         \
    {                                                                                                      \
        "cuInit", "cuDeviceGetByPCIBusId", "cuDeviceGetName", "cuDeviceGetAttribute",                      \
            "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuModuleLoadData", "cuModuleGetFunction",      \
            "cuMemAlloc_v2", "cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2", "cuLaunchKernel", "cuCtxSynchronize",   \
    }

/* Newer drivers have the second form, which of a part of a card says the part's; the first is everywhere. */
#define CUDA_UUID_NAMES {"cuDeviceGetUuid_v2", "cuDeviceGetUuid"}
typedef int (*cuda_uuid)(uint8_t uuid[CUDA_UUID_BYTES], cuda_device device);

#endif
