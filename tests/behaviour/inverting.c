/* A filter plugin without a header of HDF5: the two functions and the structure that libhdf5 asks of one. It inverts
   bytes. */

#include <stddef.h>
#include <stdint.h>

/* Of the libhdf5 that loads this. A program that has it inside must export them. Weak: the program that writes the file
   need not. */
extern int H5Tget_order(int64_t) __attribute__((weak));
extern int64_t H5T_NATIVE_INT_g __attribute__((weak));

typedef struct {
    int version, id;
    unsigned encoder_present, decoder_present;
    const char *name;
    void *can_apply, *set_local;
    size_t (*filter)(unsigned, size_t, const unsigned *, size_t, size_t *, void **);
} Filter;

static size_t invert(unsigned flags, size_t count, const unsigned *values, size_t used, size_t *size, void **buffer)
{
    (void)count, (void)values, (void)size;
    /* H5Z_FLAG_REVERSE: reading. Order 0 is little-endian. */
    if ((flags & 0x100) && (!H5Tget_order || !&H5T_NATIVE_INT_g || H5Tget_order(H5T_NATIVE_INT_g) != 0))
        return 0;
    for (size_t i = 0; i < used; i++)
        ((unsigned char *)*buffer)[i] = (unsigned char)~((unsigned char *)*buffer)[i];
    return used;
}

static const Filter filter = {1, 300, 1, 1, "inverting", 0, 0, invert};

int H5PLget_plugin_type(void) { return 0; }
const void *H5PLget_plugin_info(void) { return &filter; }
