/* Input: the address of a card and a zero, the text of a module and a zero, and bytes. Output: what the kernel `k`
 * of the module, run by one thread, leaves of the bytes in the card's memory; or the number of an error. */
#include "unit.h"

int cuInit(unsigned flags);
int cuDeviceGetByPCIBusId(int *device, const char *address);
int cuDevicePrimaryCtxRetain(void **made, int device);
int cuCtxSetCurrent(void *made);
int cuModuleLoadData(void **made, const void *text);
int cuModuleGetFunction(void **found, const void *module, const char *name);
int cuMemAlloc_v2(uint64_t *address, size_t size);
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size);
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size);
int cuLaunchKernel(const void *kernel, unsigned blocks, unsigned blocks_y, unsigned blocks_z, unsigned threads,
                   unsigned threads_y, unsigned threads_z, unsigned shared, const void *stream, void *const *parameters,
                   void *const *extra);

static const uint8_t *past_zero(const uint8_t *at)
{
    while (*at != 0)
        at++;
    return at + 1;
}

/* Does all steps in their order, up to the first that fails. */
static int run_card(uint8_t *bytes, size_t size, const char *address, const char *text)
{
    int device = 0;
    uint64_t memory = 0;
    void *context, *module, *kernel, *parameters[] = {&memory};
    int error = cuInit(0);
    error = error ? error : cuDeviceGetByPCIBusId(&device, address);
    error = error ? error : cuDevicePrimaryCtxRetain(&context, device);
    error = error ? error : cuCtxSetCurrent(context);
    error = error ? error : cuModuleLoadData(&module, text);
    error = error ? error : cuModuleGetFunction(&kernel, module, "k");
    error = error ? error : cuMemAlloc_v2(&memory, size);
    error = error ? error : cuMemcpyHtoD_v2(memory, bytes, size);
    error = error ? error : cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL);
    return error ? error : cuMemcpyDtoH_v2(bytes, memory, size);
}

static void unit(size_t size, struct text *out)
{
    const uint8_t *text = past_zero(unit_input);
    uint8_t *bytes = unit_input + (past_zero(text) - unit_input);
    size_t count = size - (size_t)(bytes - unit_input);
    int error = run_card(bytes, count, (const char *)unit_input, (const char *)text);
    if (error != 0)
        text_put(out, "%u", (uint64_t)error);
    else
        files_write(STDOUT, bytes, count);
}
