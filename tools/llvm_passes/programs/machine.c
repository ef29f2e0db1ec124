/* A small machine with a stack and registers runs three programs: a loop, a tree of calls and a sieve in its memory. */
#include "common.h"

typedef enum { PUSH, LOAD, STORE, ADD, SUB, MUL, LESS, JUMP, JUMP_IF, PEEK, POKE, CALL, RETURN, DUP, DROP, HALT } Code;

typedef struct {
    Code code;
    T operand;
} Instruction;

typedef struct {
    T stack[256], registers[8], memory[512];
    int returns[64];
    int top, calls, at;
    uint64_t steps;
} Machine;

static void push(Machine *m, T value) { m->stack[m->top++] = value; }
static T pop(Machine *m) { return m->stack[--m->top]; }

static int step(Machine *m, Instruction in) {
    T a, b;
    m->steps++;
    m->at++;
    switch (in.code) {
    case PUSH: push(m, in.operand); break;
    case LOAD: push(m, m->registers[(int)in.operand]); break;
    case STORE: m->registers[(int)in.operand] = pop(m); break;
    case ADD: b = pop(m), a = pop(m), push(m, (T)(a + b)); break;
    case SUB: b = pop(m), a = pop(m), push(m, (T)(a - b)); break;
    case MUL: b = pop(m), a = pop(m), push(m, (T)(a * b)); break;
    case LESS: b = pop(m), a = pop(m), push(m, (T)(a < b)); break;
    case JUMP: m->at = (int)in.operand; break;
    case JUMP_IF:
        if (pop(m) != 0) m->at = (int)in.operand;
        break;
    case PEEK: push(m, m->memory[(unsigned)pop(m) & 511]); break;
    case POKE: a = pop(m), m->memory[(unsigned)a & 511] = pop(m); break;
    case CALL: m->returns[m->calls++] = m->at, m->at = (int)in.operand; break;
    case RETURN: m->at = m->returns[--m->calls]; break;
    case DUP: a = pop(m), push(m, a), push(m, a); break;
    case DROP: pop(m); break;
    case HALT: return 0;
    }
    return 1;
}

static uint64_t execute(Machine *m, const Instruction *program, T input) {
    m->top = m->calls = m->at = 0;
    m->steps = 0;
    m->registers[0] = input;
    while (step(m, program[m->at])) {}
    return mix(m->steps, (uint64_t)(pop(m) != 0));
}

uint64_t RUN(uint64_t seed) {
    static const Instruction loop[] = {{PUSH, 0},  {STORE, 1}, {LOAD, 1}, {LOAD, 0}, {MUL, 0},     {PUSH, 3},
                                       {ADD, 0},   {STORE, 1}, {LOAD, 0}, {PUSH, 1}, {SUB, 0},     {DUP, 0},
                                       {STORE, 0}, {PUSH, 0},  {DUP, 0},  {DROP, 0}, {LOAD, 0},    {LESS, 0},
                                       {JUMP_IF, 2}, {LOAD, 1}, {HALT, 0}};
    static const Instruction tree[] = {{CALL, 3}, {LOAD, 1}, {HALT, 0}, {LOAD, 0}, {PUSH, 2},   {LESS, 0},
                                            {JUMP_IF, 18}, {LOAD, 0}, {PUSH, 1}, {SUB, 0}, {STORE, 0}, {CALL, 3},
                                            {LOAD, 0}, {PUSH, 1}, {SUB, 0},  {STORE, 0}, {CALL, 3},  {JUMP, 22},
                                            {LOAD, 1}, {PUSH, 1}, {ADD, 0},  {STORE, 1}, {LOAD, 0},  {PUSH, 1},
                                            {ADD, 0},  {STORE, 0}, {RETURN, 0}};
    static const Instruction strike[] = {{PUSH, 2}, {STORE, 1}, {LOAD, 1}, {DUP, 0}, {ADD, 0}, {STORE, 2}, {PUSH, 1},
                                         {LOAD, 2}, {POKE, 0}, {LOAD, 2}, {LOAD, 1}, {ADD, 0}, {DUP, 0}, {STORE, 2},
                                         {LOAD, 0}, {LESS, 0}, {JUMP_IF, 6}, {LOAD, 1}, {PUSH, 1}, {ADD, 0}, {DUP, 0},
                                         {STORE, 1}, {PUSH, 20}, {LESS, 0}, {JUMP_IF, 2}, {PUSH, 97}, {PEEK, 0},
                                         {HALT, 0}};
    Machine *m = room(1, sizeof(Machine));
    Random r = {seed};
    uint64_t sum = seed;
    for (int i = 0; i < N; i++) {
        sum = mix(sum, execute(m, loop, (T)(10 + random_below(&r, 50))));
        sum = mix(sum, execute(m, tree, (T)7));
        sum = mix(sum, execute(m, strike, (T)120));
    }
    free(m);
    return sum;
}
