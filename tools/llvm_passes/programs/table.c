/* A hash table with open addressing, a binary tree in an array and a ring buffer, all over the same keys. */
#include "common.h"

typedef struct {
    T key;
    uint32_t count;
} Slot;

typedef struct {
    Slot *slots;
    uint32_t mask, used;
} Table;

typedef struct {
    T key;
    int left, right;
} Node;

static uint32_t scatter(T key) {
    uint64_t h = (uint64_t)key * 0xD6E8FEB86659FD93u;
    return (uint32_t)(h >> 32) ^ (uint32_t)h;
}

static Slot *place(Table *t, T key) {
    uint32_t i = scatter(key) & t->mask;
    while (t->slots[i].count != 0 && t->slots[i].key != key) i = (i + 1) & t->mask;
    return &t->slots[i];
}

static void add(Table *t, T key, uint32_t count);

static void grow(Table *t) {
    Table bigger = {room((t->mask + 1) * 2, sizeof(Slot)), t->mask * 2 + 1, 0};
    for (uint32_t i = 0; i <= t->mask; i++)
        if (t->slots[i].count != 0) add(&bigger, t->slots[i].key, t->slots[i].count);
    free(t->slots);
    *t = bigger;
}

static void add(Table *t, T key, uint32_t count) {
    if (t->used * 4 > t->mask * 3) grow(t);
    Slot *s = place(t, key);
    if (s->count == 0) {
        s->key = key;
        t->used++;
    }
    s->count += count;
}

static int insert(Node *nodes, int used, T key) {
    nodes[used].key = key;
    nodes[used].left = nodes[used].right = -1;
    if (used == 0) return 1;
    for (int at = 0;;) {
        int *next = key < nodes[at].key ? &nodes[at].left : &nodes[at].right;
        if (nodes[at].key == key) return used;
        if (*next < 0) {
            *next = used;
            return used + 1;
        }
        at = *next;
    }
}

static int depth(const Node *nodes, int at) {
    if (at < 0) return 0;
    int left = depth(nodes, nodes[at].left), right = depth(nodes, nodes[at].right);
    return 1 + (left > right ? left : right);
}

uint64_t RUN(uint64_t seed) {
    Random r = {seed};
    Table t = {room(16, sizeof(Slot)), 15, 0};
    Node *nodes = room(N + 1, sizeof(Node));
    T ring[32] = {0};
    uint64_t sum = seed;
    int used = 0;
    for (int i = 0; i < N; i++) {
        T key = (T)(random_below(&r, N) + random_below(&r, N / 4));
        T old = ring[i & 31];
        ring[i & 31] = key;
        add(&t, key, 1);
        add(&t, (T)(old ^ key), 2);
        used = insert(nodes, used, key);
        sum = mix(sum, place(&t, old)->count);
    }
    sum = mix(sum, (uint64_t)depth(nodes, 0));
    for (uint32_t i = 0; i <= t.mask; i++) sum = mix(sum, t.slots[i].count * (uint64_t)t.slots[i].key);
    free(t.slots), free(nodes);
    return sum;
}
