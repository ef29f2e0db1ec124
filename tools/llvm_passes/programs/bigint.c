/* Numbers of many limbs: factorials, Fibonacci numbers, long products, short division, decimal digits. */
#include "common.h"

enum { LIMBS = 48, BITS = 8 * sizeof(T) };

typedef struct {
    T limb[LIMBS];
    int used;
} Big;

static Big from(uint32_t value) {
    Big b = {{0}, 0};
    for (uint64_t rest = value; rest > 0; rest >>= BITS) b.limb[b.used++] = (T)rest;
    return b;
}

static void add(Big *a, const Big *b) {
    uint64_t carry = 0;
    int n = a->used > b->used ? a->used : b->used;
    for (int i = 0; i < n; i++) {
        carry += (uint64_t)a->limb[i] + b->limb[i];
        a->limb[i] = (T)carry;
        carry >>= BITS;
    }
    a->used = n;
    if (carry != 0 && n < LIMBS) a->limb[a->used++] = (T)carry;
}

static void scale(Big *a, uint32_t factor) {
    uint64_t carry = 0;
    for (int i = 0; i < a->used; i++) {
        carry += (uint64_t)a->limb[i] * factor;
        a->limb[i] = (T)carry;
        carry >>= BITS;
    }
    for (; carry != 0 && a->used < LIMBS; carry >>= BITS) a->limb[a->used++] = (T)carry;
}

static uint32_t divide(Big *a, uint32_t by) {
    uint64_t rest = 0;
    for (int i = a->used; i-- > 0;) {
        rest = rest << BITS | a->limb[i];
        a->limb[i] = (T)(rest / by);
        rest %= by;
    }
    while (a->used > 0 && a->limb[a->used - 1] == 0) a->used--;
    return (uint32_t)rest;
}

static Big product(const Big *a, const Big *b) {
    Big out = {{0}, 0};
    for (int i = 0; i < a->used; i++) {
        uint64_t carry = 0;
        for (int j = 0; j < b->used && i + j < LIMBS; j++) {
            carry += (uint64_t)a->limb[i] * b->limb[j] + out.limb[i + j];
            out.limb[i + j] = (T)carry;
            carry >>= BITS;
        }
        if (i + b->used < LIMBS) out.limb[i + b->used] = (T)carry;
    }
    out.used = a->used + b->used < LIMBS ? a->used + b->used : LIMBS;
    while (out.used > 0 && out.limb[out.used - 1] == 0) out.used--;
    return out;
}

static int compare(const Big *a, const Big *b) {
    if (a->used != b->used) return a->used < b->used ? -1 : 1;
    for (int i = a->used; i-- > 0;)
        if (a->limb[i] != b->limb[i]) return a->limb[i] < b->limb[i] ? -1 : 1;
    return 0;
}

static uint64_t digits(Big a, uint64_t sum) {
    while (a.used > 0) sum = mix(sum, divide(&a, 100));
    return sum;
}

uint64_t RUN(uint64_t seed) {
    uint64_t sum = seed;
    for (int round = 0; round < N; round++) {
        Big factorial = from(1), a = from(1), b = from((uint32_t)round + 1), largest = a;
        for (uint32_t i = 2; i < 36; i++) {
            scale(&factorial, i);
            add(&a, &b);
            Big kept = a;
            a = b;
            b = kept;
            if (compare(&largest, &a) < 0) largest = a;
        }
        Big square = product(&factorial, &a);
        square = product(&square, &largest);
        sum = digits(square, digits(factorial, sum));
    }
    return sum;
}
