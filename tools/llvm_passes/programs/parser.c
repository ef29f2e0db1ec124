/* Writes random arithmetic as text, splits it into tokens, parses it by descent and evaluates the tree. */
#include "common.h"

typedef enum { NUMBER, PLUS, MINUS, TIMES, OPEN, CLOSE, LESS, END } Kind;

typedef struct {
    Kind kind;
    T value;
} Token;

typedef struct {
    Kind kind;
    int left, right;
    T value;
} Node;

typedef struct {
    const char *text;
    Token now;
    Node *nodes;
    int used, deepest;
} Parser;

static int write(char *out, Random *r, int depth) {
    int n = 0;
    if (depth == 0 || random_below(r, 5) == 0) {
        for (uint32_t digits = 1 + random_below(r, 3); digits > 0; digits--) out[n++] = (char)('0' + random_below(r, 10));
        return n;
    }
    out[n++] = '(';
    n += write(out + n, r, depth - 1);
    out[n++] = ' ';
    out[n++] = "+-*<"[random_below(r, 4)];
    out[n++] = ' ';
    n += write(out + n, r, depth - 1);
    out[n++] = ')';
    return n;
}

static void advance(Parser *p) {
    while (*p->text == ' ') p->text++;
    char c = *p->text;
    p->now.value = 0;
    if (c >= '0' && c <= '9') {
        p->now.kind = NUMBER;
        for (; *p->text >= '0' && *p->text <= '9'; p->text++) p->now.value = (T)(p->now.value * 10 + (T)(*p->text - '0'));
        return;
    }
    switch (c) {
    case '+': p->now.kind = PLUS; break;
    case '-': p->now.kind = MINUS; break;
    case '*': p->now.kind = TIMES; break;
    case '<': p->now.kind = LESS; break;
    case '(': p->now.kind = OPEN; break;
    case ')': p->now.kind = CLOSE; break;
    default: p->now.kind = END; return;
    }
    p->text++;
}

static int node(Parser *p, Kind kind, int left, int right, T value) {
    p->nodes[p->used] = (Node){kind, left, right, value};
    return p->used++;
}

static int expression(Parser *p, int lowest, int depth) {
    int left;
    if (depth > p->deepest) p->deepest = depth;
    if (p->now.kind == OPEN) {
        advance(p);
        left = expression(p, 0, depth + 1);
        if (p->now.kind != CLOSE) abort();
    } else {
        left = node(p, NUMBER, -1, -1, p->now.value);
    }
    advance(p);
    for (;;) {
        Kind kind = p->now.kind;
        int level = kind == TIMES ? 3 : kind == PLUS || kind == MINUS ? 2 : kind == LESS ? 1 : 0;
        if (level <= lowest) return left;
        advance(p);
        int right = expression(p, level, depth + 1);
        left = node(p, kind, left, right, 0);
    }
}

static T evaluate(const Node *nodes, int at) {
    const Node *n = &nodes[at];
    if (n->kind == NUMBER) return n->value;
    T a = evaluate(nodes, n->left), b = evaluate(nodes, n->right);
    switch (n->kind) {
    case PLUS: return a + b;
    case MINUS: return a - b;
    case TIMES: return a * b;
    default: return (T)(a < b);
    }
}

uint64_t RUN(uint64_t seed) {
    Random r = {seed};
    char *text = room(1 << 14, 1);
    Parser p = {text, {END, 0}, room(1 << 13, sizeof(Node)), 0, 0};
    uint64_t sum = seed;
    for (int i = 0; i < N; i++) {
        text[write(text, &r, 7)] = 0;
        p.text = text;
        p.used = 0;
        advance(&p);
        int top = expression(&p, 0, 0);
        if (p.now.kind != END) abort();
        sum = mix(sum, (uint64_t)(evaluate(p.nodes, top) != 0) + (uint64_t)p.used * 2 + (uint64_t)p.deepest);
    }
    free(text), free(p.nodes);
    return sum;
}
