/* Shortest paths on a grid of costs: Dijkstra with a binary heap, Bellman-Ford, Floyd-Warshall; and flood fill. */
#include "common.h"

enum { SIDE = N, CELLS = N * N, FEW = 24 };

typedef struct {
    T cost;
    int cell;
} Entry;

typedef struct {
    Entry entries[4 * CELLS];
    int size;
} Queue;

static const int steps[4][2] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};

static void push(Queue *q, T cost, int cell) {
    int at = q->size++;
    while (at > 0 && cost < q->entries[(at - 1) / 2].cost) {
        q->entries[at] = q->entries[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    q->entries[at] = (Entry){cost, cell};
}

static Entry pop(Queue *q) {
    Entry top = q->entries[0], last = q->entries[--q->size];
    int at = 0;
    for (int child; (child = 2 * at + 1) < q->size; at = child) {
        if (child + 1 < q->size && q->entries[child + 1].cost < q->entries[child].cost) child++;
        if (!(q->entries[child].cost < last.cost)) break;
        q->entries[at] = q->entries[child];
    }
    q->entries[at] = last;
    return top;
}

static int neighbour(int cell, int direction) {
    int x = cell % SIDE + steps[direction][0], y = cell / SIDE + steps[direction][1];
    return x < 0 || y < 0 || x >= SIDE || y >= SIDE ? -1 : y * SIDE + x;
}

static void dijkstra(const T *cost, T *far, Queue *q) {
    for (int i = 0; i < CELLS; i++) far[i] = (T)1e9;
    q->size = 0;
    far[0] = 0;
    push(q, 0, 0);
    while (q->size > 0) {
        Entry e = pop(q);
        if (e.cost > far[e.cell]) continue;
        for (int d = 0; d < 4; d++) {
            int to = neighbour(e.cell, d);
            if (to >= 0 && e.cost + cost[to] < far[to]) {
                far[to] = e.cost + cost[to];
                push(q, far[to], to);
            }
        }
    }
}

static void bellman(const T *cost, T *far) {
    for (int i = 0; i < CELLS; i++) far[i] = (T)1e9;
    far[0] = 0;
    for (int changed = 1; changed;) {
        changed = 0;
        for (int i = 0; i < CELLS; i++)
            for (int d = 0; d < 4; d++) {
                int from = neighbour(i, d);
                if (from >= 0 && far[from] + cost[i] < far[i]) {
                    far[i] = far[from] + cost[i];
                    changed = 1;
                }
            }
    }
}

static void floyd(T table[FEW][FEW]) {
    for (int k = 0; k < FEW; k++)
        for (int i = 0; i < FEW; i++)
            for (int j = 0; j < FEW; j++)
                if (table[i][k] + table[k][j] < table[i][j]) table[i][j] = table[i][k] + table[k][j];
}

static int flood(const T *cost, uint8_t *seen, int cell, T limit) {
    int n = 1;
    seen[cell] = 1;
    for (int d = 0; d < 4; d++) {
        int to = neighbour(cell, d);
        if (to >= 0 && !seen[to] && cost[to] < limit) n += flood(cost, seen, to, limit);
    }
    return n;
}

uint64_t RUN(uint64_t seed) {
    Random r = {seed};
    T *cost = room(CELLS, sizeof(T)), *far = room(CELLS, sizeof(T)), *check = room(CELLS, sizeof(T)), table[FEW][FEW];
    uint8_t *seen = room(CELLS, 1);
    Queue *q = room(1, sizeof(Queue));
    for (int i = 0; i < CELLS; i++) cost[i] = (T)(1 + random_below(&r, 9));
    dijkstra(cost, far, q);
    bellman(cost, check);
    uint64_t sum = seed;
    for (int i = 0; i < CELLS; i++) {
        if (far[i] != check[i]) abort();
        sum = mix(sum, (uint64_t)far[i]);
    }
    for (int i = 0; i < FEW; i++)
        for (int j = 0; j < FEW; j++) table[i][j] = (T)(1 + random_below(&r, 1000));
    floyd(table);
    for (int i = 0; i < FEW; i++) sum = mix(sum, (uint64_t)table[i][(i * 7) % FEW]);
    sum = mix(sum, (uint64_t)flood(cost, seen, 0, 7));
    free(cost), free(far), free(check), free(seen), free(q);
    return sum;
}
