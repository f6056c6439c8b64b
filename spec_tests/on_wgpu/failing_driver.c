/* A Vulkan driver that is another one, DRIVER, until the file LOST is there: then its device is lost. */

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEVICE_LOST -4

typedef void (*Function)(void);
typedef Function (*Get)(void *, const char *);
typedef int (*Submit)(void *, unsigned, const void *, void *);

static void *driver;
static Get get_of_their_device;
static Submit submit;

static Get theirs(const char *name) {
    if (!driver) driver = dlopen(getenv("DRIVER"), RTLD_NOW);
    return (Get)dlsym(driver, name);
}

static int submit_or_fail(void *queue, unsigned count, const void *infos, void *fence) {
    /* The file is taken away: the next process has a device again. */
    return unlink(getenv("LOST")) == 0 ? DEVICE_LOST : submit(queue, count, infos, fence);
}

static Function get_of_device(void *device, const char *name) {
    Function function = get_of_their_device(device, name);
    if (strcmp(name, "vkQueueSubmit")) return function;
    submit = (Submit)function;
    return (Function)submit_or_fail;
}

Function vk_icdGetInstanceProcAddr(void *instance, const char *name) {
    Function function = theirs("vk_icdGetInstanceProcAddr")(instance, name);
    if (strcmp(name, "vkGetDeviceProcAddr")) return function;
    get_of_their_device = (Get)function;
    return (Function)get_of_device;
}

Function vk_icdGetPhysicalDeviceProcAddr(void *instance, const char *name) {
    Get get = theirs("vk_icdGetPhysicalDeviceProcAddr");
    return get ? get(instance, name) : 0;
}

int vk_icdNegotiateLoaderICDInterfaceVersion(unsigned *version) {
    return ((int (*)(unsigned *))theirs("vk_icdNegotiateLoaderICDInterfaceVersion"))(version);
}
