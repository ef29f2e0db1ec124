/* What the programs share. Each is compiled several times: -DRUN names the entry, -DT the element type, -DN the size. */
#ifndef COMMON_H
#define COMMON_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    uint64_t state;
} Random;

static uint64_t next_random(Random *r) {
    r->state ^= r->state << 13;
    r->state ^= r->state >> 7;
    r->state ^= r->state << 17;
    return r->state;
}

static uint32_t random_below(Random *r, uint32_t bound) {
    return (uint32_t)(((next_random(r) >> 32) * bound) >> 32);
}

static uint64_t mix(uint64_t sum, uint64_t value) {
    return (sum ^ value) * 0x9E3779B97F4A7C15u + (sum >> 29);
}

static void *room(size_t count, size_t size) {
    void *memory = calloc(count, size);
    if (memory == NULL) abort();
    return memory;
}

/* Not inlined: the caller of all would become one huge function, and its cost would drown all else. */
__attribute__((noinline)) uint64_t RUN(uint64_t seed);

#endif
