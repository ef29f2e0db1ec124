/* Heat spreads over a plate, and the game of life is played on a torus: stencils on two grids in turn. */
#include "common.h"

typedef struct {
    int width, height;
    T *now, *next;
    T conductivity, loss;
} Plate;

static T at(const Plate *p, int x, int y) { return p->now[y * p->width + x]; }

static void spread(Plate *p) {
    for (int y = 1; y + 1 < p->height; y++)
        for (int x = 1; x + 1 < p->width; x++) {
            int here = y * p->width + x;
            T around = p->now[here - 1] + p->now[here + 1] + p->now[here - p->width] + p->now[here + p->width];
            p->next[here] = p->now[here] + p->conductivity * (around - 4 * p->now[here]) / p->loss;
        }
    T *kept = p->now;
    p->now = p->next;
    p->next = kept;
}

static T warmest(const Plate *p) {
    T most = at(p, 0, 0);
    for (int i = 0; i < p->height * p->width; i++)
        if (p->now[i] > most) most = p->now[i];
    return most;
}

static int alive(const uint8_t *cells, int x, int y) { return cells[(y + N) % N * N + (x + N) % N]; }

static void live(const uint8_t *cells, uint8_t *next) {
    for (int y = 0; y < N; y++)
        for (int x = 0; x < N; x++) {
            int neighbours = -alive(cells, x, y);
            for (int dy = -1; dy <= 1; dy++)
                for (int dx = -1; dx <= 1; dx++) neighbours += alive(cells, x + dx, y + dy);
            next[y * N + x] = neighbours == 3 || (neighbours == 2 && alive(cells, x, y));
        }
}

uint64_t RUN(uint64_t seed) {
    Random r = {seed};
    Plate p = {N, N, room(N * N, sizeof(T)), room(N * N, sizeof(T)), 1, 8};
    uint8_t *cells = room(N * N, 1), *next = room(N * N, 1);
    for (int i = 0; i < N * N; i++) {
        p.now[i] = p.next[i] = (T)random_below(&r, 100);
        cells[i] = (uint8_t)random_below(&r, 2);
    }
    uint64_t sum = seed;
    for (int step = 0; step < 24; step++) {
        spread(&p);
        sum = mix(sum, (uint64_t)warmest(&p));
    }
    live(cells, next);
    live(next, cells);
    for (int i = 0; i < N * N; i += 3) sum = mix(sum, (uint64_t)(at(&p, i % N, i / N) * 16) * 2 + cells[i]);
    free(p.now), free(p.next), free(cells), free(next);
    return sum;
}
