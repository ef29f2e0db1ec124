/* Bodies that attract each other, in a box that throws them back. */
#include "common.h"

typedef struct {
    T x, y, z;
} Vector;

typedef struct {
    Vector at, speed;
    T mass;
} Body;

static Vector add(Vector a, Vector b) { return (Vector){a.x + b.x, a.y + b.y, a.z + b.z}; }
static Vector subtract(Vector a, Vector b) { return (Vector){a.x - b.x, a.y - b.y, a.z - b.z}; }
static Vector scale(Vector a, T s) { return (Vector){a.x * s, a.y * s, a.z * s}; }
static T dot(Vector a, Vector b) { return a.x * b.x + a.y * b.y + a.z * b.z; }

static T root(T value) {
    T guess = value < 1 ? 1 : value;
    for (int i = 0; i < 6; i++) guess = (guess + value / guess) * (T)0.5;
    return guess;
}

static void attract(Body *bodies, int n, T step) {
    for (int i = 0; i < n; i++)
        for (int j = i + 1; j < n; j++) {
            Vector apart = subtract(bodies[i].at, bodies[j].at);
            T square = dot(apart, apart) + (T)0.01;
            T force = step / (square * root(square));
            bodies[i].speed = subtract(bodies[i].speed, scale(apart, bodies[j].mass * force));
            bodies[j].speed = add(bodies[j].speed, scale(apart, bodies[i].mass * force));
        }
}

static void bounce(T *at, T *speed, T wall) {
    if (*at > wall) {
        *at = wall;
        *speed = -*speed;
    } else if (*at < -wall) {
        *at = -wall;
        *speed = -*speed;
    }
}

static void move(Body *bodies, int n, T step) {
    for (int i = 0; i < n; i++) {
        Body *b = &bodies[i];
        b->at = add(b->at, scale(b->speed, step));
        bounce(&b->at.x, &b->speed.x, 4);
        bounce(&b->at.y, &b->speed.y, 4);
        bounce(&b->at.z, &b->speed.z, 4);
    }
}

static T energy(const Body *bodies, int n) {
    T total = 0;
    for (int i = 0; i < n; i++) {
        total += bodies[i].mass * dot(bodies[i].speed, bodies[i].speed) * (T)0.5;
        for (int j = i + 1; j < n; j++) {
            Vector apart = subtract(bodies[i].at, bodies[j].at);
            total -= bodies[i].mass * bodies[j].mass / root(dot(apart, apart) + (T)0.01);
        }
    }
    return total;
}

static T unit(Random *r) { return (T)random_below(r, 1 << 16) / (T)(1 << 15) - 1; }

uint64_t RUN(uint64_t seed) {
    enum { BODIES = 9 };
    Random r = {seed};
    Body bodies[BODIES];
    for (int i = 0; i < BODIES; i++) {
        bodies[i].at = (Vector){unit(&r), unit(&r), unit(&r)};
        bodies[i].speed = scale((Vector){unit(&r), unit(&r), unit(&r)}, (T)0.1);
        bodies[i].mass = (T)1.25 + unit(&r);
    }
    uint64_t sum = seed;
    for (int step = 0; step < N; step++) {
        attract(bodies, BODIES, (T)0.002);
        move(bodies, BODIES, (T)0.002);
        if (step % 16 == 0) sum = mix(sum, (uint64_t)(int64_t)(energy(bodies, BODIES) * 1000));
    }
    return sum;
}
