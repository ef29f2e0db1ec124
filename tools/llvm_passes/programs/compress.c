/* An LZ77 compressor with a hash of recent positions, its expander, and run-length coding. */
#include "common.h"

enum { HASHES = 1024, SHORTEST = 4, LONGEST = 66 };

typedef struct {
    uint8_t *bytes;
    int length;
} Buffer;

static void put(Buffer *b, int byte) { b->bytes[b->length++] = (uint8_t)byte; }

static void put_number(Buffer *b, unsigned value) {
    for (; value >= 128; value >>= 7) put(b, (int)(value & 127) | 128);
    put(b, (int)value);
}

static unsigned get_number(const Buffer *b, int *at) {
    unsigned value = 0, shift = 0, byte;
    do {
        byte = b->bytes[(*at)++];
        value |= (byte & 127) << shift;
        shift += 7;
    } while (byte & 128);
    return value;
}

static unsigned hash(const uint8_t *p) {
    unsigned h = 0;
    for (int i = 0; i < SHORTEST; i++) h = h * 31 + p[i];
    return (h ^ (h >> 9)) % HASHES;
}

static int common_length(const uint8_t *a, const uint8_t *b, int limit) {
    int n = 0;
    while (n < limit && a[n] == b[n]) n++;
    return n;
}

static void pack(const Buffer *in, Buffer *out) {
    T recent[HASHES];
    for (int i = 0; i < HASHES; i++) recent[i] = (T)-1;
    out->length = 0;
    for (int at = 0; at < in->length;) {
        int limit = in->length - at < LONGEST ? in->length - at : LONGEST, best = 0, from = 0;
        if (limit >= SHORTEST) {
            T *entry = &recent[hash(in->bytes + at)];
            if (*entry != (T)-1) {
                from = (int)*entry;
                best = common_length(in->bytes + from, in->bytes + at, limit);
            }
            *entry = (T)at;
        }
        if (best >= SHORTEST) {
            put_number(out, (unsigned)best);
            put_number(out, (unsigned)(at - from));
            at += best;
        } else {
            put(out, 0);
            put(out, in->bytes[at++]);
        }
    }
}

static void unpack(const Buffer *in, Buffer *out) {
    out->length = 0;
    for (int at = 0; at < in->length;) {
        unsigned length = get_number(in, &at);
        if (length == 0) {
            put(out, in->bytes[at++]);
        } else {
            unsigned back = get_number(in, &at);
            while (length-- > 0) put(out, out->bytes[out->length - (int)back]);
        }
    }
}

static void runs(const Buffer *in, Buffer *out) {
    out->length = 0;
    for (int at = 0; at < in->length;) {
        int n = 1;
        while (at + n < in->length && n < 255 && in->bytes[at + n] == in->bytes[at]) n++;
        put(out, n);
        put(out, in->bytes[at]);
        at += n;
    }
}

uint64_t RUN(uint64_t seed) {
    static const char words[8][8] = {"front", "arm", "mean", "bound", "sample", "gap", "width", "delta"};
    Random r = {seed};
    Buffer text = {room(N + 16, 1), 0}, packed = {room(3 * N + 64, 1), 0}, back = {room(N + 16, 1), 0};
    while (text.length < N) {
        const char *word = words[random_below(&r, 8)];
        for (int i = 0; word[i] != 0; i++) put(&text, word[i]);
        put(&text, random_below(&r, 9) == 0 ? '\n' : ' ');
    }
    pack(&text, &packed);
    unpack(&packed, &back);
    if (back.length != text.length || memcmp(back.bytes, text.bytes, (size_t)text.length) != 0) abort();
    uint64_t sum = mix(seed, (uint64_t)packed.length);
    runs(&text, &packed);
    sum = mix(sum, (uint64_t)packed.length);
    free(text.bytes), free(packed.bytes), free(back.bytes);
    return sum;
}
