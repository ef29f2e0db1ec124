/* The rounds of SHA-256, CRC, Adler and FNV sums of the same bytes, taken in blocks of T. */
#include "common.h"

typedef struct {
    uint32_t h[8];
    uint8_t block[64];
    uint64_t length;
} Sha;

static uint32_t roots[64];

static uint32_t rotate(uint32_t x, int n) { return x >> n | x << (32 - n); }
static uint32_t choose(uint32_t x, uint32_t y, uint32_t z) { return (x & y) ^ (~x & z); }
static uint32_t majority(uint32_t x, uint32_t y, uint32_t z) { return (x & y) ^ (x & z) ^ (y & z); }
static uint32_t big(uint32_t x, int a, int b, int c) { return rotate(x, a) ^ rotate(x, b) ^ rotate(x, c); }
static uint32_t small(uint32_t x, int a, int b, int c) { return rotate(x, a) ^ rotate(x, b) ^ x >> c; }

/* The constants are the fractions of cube and square roots of primes: found by bisection, so that none is typed in. */
static uint32_t fraction(uint64_t prime, int cube) {
    uint64_t low = 0, high = (uint64_t)1 << 37;
    while (high - low > 1) {
        uint64_t middle = (low + high) / 2;
        unsigned __int128 square = (unsigned __int128)middle * middle;
        int above = cube ? (square >> 32) * middle >= (unsigned __int128)prime << 64 : square >= (unsigned __int128)prime << 64;
        if (above)
            high = middle;
        else
            low = middle;
    }
    return (uint32_t)low;
}

static void prepare(Sha *s) {
    uint64_t prime = 2;
    for (int i = 0; i < 64; prime++) {
        int composite = 0;
        for (uint64_t d = 2; d * d <= prime; d++) composite |= prime % d == 0;
        if (composite) continue;
        if (i < 8) s->h[i] = fraction(prime, 0);
        roots[i++] = fraction(prime, 1);
    }
    s->length = 0;
}

static void compress(Sha *s) {
    uint32_t w[64], v[8];
    for (int i = 0; i < 16; i++) {
        const uint8_t *p = s->block + 4 * i;
        w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    }
    for (int i = 16; i < 64; i++) w[i] = small(w[i - 2], 17, 19, 10) + w[i - 7] + small(w[i - 15], 7, 18, 3) + w[i - 16];
    for (int i = 0; i < 8; i++) v[i] = s->h[i];
    for (int i = 0; i < 64; i++) {
        uint32_t first = v[7] + big(v[4], 6, 11, 25) + choose(v[4], v[5], v[6]) + roots[i] + w[i];
        uint32_t second = big(v[0], 2, 13, 22) + majority(v[0], v[1], v[2]);
        for (int k = 7; k > 0; k--) v[k] = v[k - 1];
        v[4] += first;
        v[0] = first + second;
    }
    for (int i = 0; i < 8; i++) s->h[i] += v[i];
}

static void take(Sha *s, T value) {
    for (size_t i = 0; i < sizeof(T); i++) {
        s->block[s->length++ % 64] = (uint8_t)(value >> (8 * i));
        if (s->length % 64 == 0) compress(s);
    }
}

static uint32_t crc(uint32_t sum, uint8_t byte) {
    sum ^= byte;
    for (int i = 0; i < 8; i++) sum = sum >> 1 ^ (sum & 1 ? 0xEDB88320u : 0);
    return sum;
}

uint64_t RUN(uint64_t seed) {
    Random r = {seed};
    Sha s;
    prepare(&s);
    uint32_t check = ~0u, low = 1, high = 0;
    uint64_t fnv = 0xCBF29CE484222325u;
    for (int i = 0; i < N; i++) {
        T value = (T)next_random(&r);
        take(&s, value);
        check = crc(check, (uint8_t)value);
        low = (low + (uint8_t)value) % 65521;
        high = (high + low) % 65521;
        fnv = (fnv ^ (uint8_t)value) * 0x100000001B3u;
    }
    uint64_t sum = mix(mix(fnv, check), (uint64_t)high << 16 | low);
    for (int i = 0; i < 8; i++) sum = mix(sum, s.h[i]);
    return sum;
}
