/* Numbers: a sieve, greatest common divisors, modular powers, Collatz paths and a Miller-Rabin test. */
#include "common.h"

static int sieve(uint8_t *composite, int n) {
    int primes = 0;
    memset(composite, 0, (size_t)n);
    for (int i = 2; i < n; i++) {
        if (composite[i]) continue;
        primes++;
        for (int64_t j = (int64_t)i * i; j < n; j += i) composite[j] = 1;
    }
    return primes;
}

static T divisor(T a, T b) {
    while (b != 0) {
        T rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static uint64_t times(uint64_t a, uint64_t b, uint64_t modulus) { return a * b % modulus; }

static uint64_t power(uint64_t base, uint64_t exponent, uint64_t modulus) {
    uint64_t result = 1;
    for (base %= modulus; exponent > 0; exponent >>= 1) {
        if (exponent & 1) result = times(result, base, modulus);
        base = times(base, base, modulus);
    }
    return result;
}

static int passes(uint64_t n, uint64_t witness) {
    uint64_t odd = n - 1;
    int twos = 0;
    for (; odd % 2 == 0; odd /= 2) twos++;
    uint64_t x = power(witness, odd, n);
    if (x == 1 || x == n - 1) return 1;
    for (int i = 1; i < twos; i++) {
        x = times(x, x, n);
        if (x == n - 1) return 1;
    }
    return 0;
}

static int is_prime(uint64_t n) {
    static const uint8_t small[] = {2, 3, 5, 7};
    if (n < 2) return 0;
    for (int i = 0; i < 4; i++)
        if (n % small[i] == 0) return n == small[i];
    for (int i = 0; i < 4; i++)
        if (!passes(n, small[i])) return 0;
    return 1;
}

static int path(uint64_t n) {
    int steps = 0;
    while (n != 1) {
        n = n % 2 == 0 ? n / 2 : 3 * n + 1;
        steps++;
    }
    return steps;
}

static int bits(T value) {
    int n = 0;
    for (; value != 0; value &= value - 1) n++;
    return n;
}

uint64_t RUN(uint64_t seed) {
    Random r = {seed};
    uint8_t *composite = room(N, 1);
    uint64_t sum = mix(seed, (uint64_t)sieve(composite, N));
    for (int i = 1; i < N / 32; i++) {
        T a = (T)(1 + random_below(&r, 30000)), b = (T)(1 + random_below(&r, 30000));
        sum = mix(sum, (uint64_t)divisor(a, b));
        sum = mix(sum, (uint64_t)(bits(a) * 8 + bits(b)));
        if (i % 4 == 0) sum = mix(sum, (uint64_t)path((uint64_t)i));
        if (i % 8 == 7 && is_prime((uint64_t)i) == composite[i]) abort();
    }
    free(composite);
    return sum;
}
