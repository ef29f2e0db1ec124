/* Huffman coding: counts, a tree, canonical codes, bits out and bits in again. */
#include "common.h"

enum { SYMBOLS = 64 };

typedef struct {
    uint32_t weight;
    int left, right;
} Node;

typedef struct {
    uint8_t *bytes;
    size_t position;
} Bits;

static void put_bit(Bits *b, int bit) {
    b->bytes[b->position / 8] |= (uint8_t)(bit << (b->position % 8));
    b->position++;
}

static int get_bit(Bits *b) {
    int bit = b->bytes[b->position / 8] >> (b->position % 8) & 1;
    b->position++;
    return bit;
}

static int lightest(const Node *nodes, const uint8_t *taken, int n) {
    int best = -1;
    for (int i = 0; i < n; i++)
        if (!taken[i] && nodes[i].weight > 0 && (best < 0 || nodes[i].weight < nodes[best].weight)) best = i;
    return best;
}

static int build(Node *nodes) {
    uint8_t taken[2 * SYMBOLS] = {0};
    int n = SYMBOLS;
    for (;;) {
        int a = lightest(nodes, taken, n);
        taken[a] = 1;
        int b = lightest(nodes, taken, n);
        if (b < 0) return a;
        taken[b] = 1;
        nodes[n] = (Node){nodes[a].weight + nodes[b].weight, a, b};
        n++;
    }
}

static void lengths(const Node *nodes, int at, int depth, uint8_t *out) {
    if (nodes[at].left < 0) {
        out[at] = (uint8_t)depth;
        return;
    }
    lengths(nodes, nodes[at].left, depth + 1, out);
    lengths(nodes, nodes[at].right, depth + 1, out);
}

static void codes(const uint8_t *length, uint32_t *out) {
    uint32_t code = 0;
    for (int l = 1; l < 32; l++, code <<= 1)
        for (int s = 0; s < SYMBOLS; s++)
            if (length[s] == l) out[s] = code++;
}

static void encode(const T *text, int n, const uint8_t *length, const uint32_t *code, Bits *out) {
    for (int i = 0; i < n; i++)
        for (int bit = length[text[i]] - 1; bit >= 0; bit--) put_bit(out, code[text[i]] >> bit & 1);
}

static int decode(Bits *in, const uint8_t *length, const uint32_t *code) {
    uint32_t so_far = 0;
    for (int l = 1; l < 32; l++) {
        so_far = so_far << 1 | (uint32_t)get_bit(in);
        for (int s = 0; s < SYMBOLS; s++)
            if (length[s] == l && code[s] == so_far) return s;
    }
    abort();
}

uint64_t RUN(uint64_t seed) {
    Random r = {seed};
    Node nodes[2 * SYMBOLS];
    uint8_t length[SYMBOLS] = {0};
    uint32_t code[SYMBOLS] = {0};
    T *text = room(N, sizeof(T));
    Bits bits = {room(N * 4, 1), 0};
    for (int s = 0; s < SYMBOLS; s++) nodes[s] = (Node){0, -1, -1};
    for (int i = 0; i < N; i++) {
        text[i] = (T)(random_below(&r, 8) * random_below(&r, 8));
        nodes[text[i]].weight++;
    }
    int top = build(nodes);
    lengths(nodes, top, 0, length);
    codes(length, code);
    encode(text, N, length, code, &bits);
    uint64_t sum = mix(seed, bits.position);
    bits.position = 0;
    for (int i = 0; i < N / 8; i++)
        if (decode(&bits, length, code) != (int)text[i]) abort();
    for (int i = 0; i < N; i++) sum = mix(sum, bits.bytes[i / 4]);
    free(text), free(bits.bytes);
    return sum;
}
