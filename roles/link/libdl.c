/* Stands for the node's libdl while a device role is linked: what the role takes from it, and nothing else. */
void *dlopen(const char *name, int how);
void *dlsym(void *library, const char *name);

__attribute__((visibility("default"))) void *dlopen(const char *name, int how)
{
    (void)name, (void)how;
    return 0;
}

__attribute__((visibility("default"))) void *dlsym(void *library, const char *name)
{
    (void)library, (void)name;
    return 0;
}
