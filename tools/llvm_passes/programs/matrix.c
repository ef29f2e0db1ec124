/* Dense matrix product, transposition and Gaussian elimination. */
#include "common.h"

typedef struct {
    int rows, columns;
    T *cells;
} Matrix;

static Matrix make(int rows, int columns) {
    Matrix m = {rows, columns, room((size_t)rows * columns, sizeof(T))};
    return m;
}

static T get(const Matrix *m, int i, int j) { return m->cells[i * m->columns + j]; }
static void set(Matrix *m, int i, int j, T value) { m->cells[i * m->columns + j] = value; }

/* A heavy diagonal keeps the elimination tame. */
static void fill(Matrix *m, Random *r) {
    for (int i = 0; i < m->rows; i++)
        for (int j = 0; j < m->columns; j++) set(m, i, j, (T)(random_below(r, 16) + (i == j ? 16u * N : 0u)));
}

static void multiply(const Matrix *a, const Matrix *b, Matrix *out) {
    for (int i = 0; i < a->rows; i++)
        for (int j = 0; j < b->columns; j++) {
            T sum = 0;
            for (int k = 0; k < a->columns; k++) sum += a->cells[i * a->columns + k] * b->cells[k * b->columns + j];
            set(out, i, j, sum);
        }
}

static void multiply_by_rows(const Matrix *a, const Matrix *b, Matrix *out) {
    memset(out->cells, 0, sizeof(T) * out->rows * out->columns);
    for (int i = 0; i < a->rows; i++)
        for (int k = 0; k < a->columns; k++) {
            T factor = get(a, i, k);
            const T *from = b->cells + k * b->columns;
            T *to = out->cells + i * out->columns;
            for (int j = 0; j < b->columns; j++) to[j] += factor * from[j];
        }
}

static void transpose(const Matrix *a, Matrix *out) {
    for (int i = 0; i < a->rows; i++)
        for (int j = 0; j < a->columns; j++) set(out, j, i, get(a, i, j));
}

static void eliminate(Matrix *m) {
    for (int k = 0; k + 1 < m->rows; k++)
        for (int i = k + 1; i < m->rows; i++) {
            const T *from = m->cells + k * m->columns;
            T *to = m->cells + i * m->columns, factor = to[k] / from[k];
            for (int j = k; j < m->columns; j++) to[j] -= factor * from[j];
        }
}

static uint64_t digest(const Matrix *m, uint64_t sum) {
    for (int i = 0; i < m->rows; i++)
        for (int j = 0; j < m->columns; j++) sum = mix(sum, (uint64_t)(int64_t)get(m, i, j));
    return sum;
}

uint64_t RUN(uint64_t seed) {
    Random r = {seed};
    Matrix a = make(N, N + 3), b = make(N + 3, N), c = make(N, N), d = make(N, N);
    fill(&a, &r);
    fill(&b, &r);
    multiply(&a, &b, &c);
    transpose(&c, &d);
    uint64_t sum = digest(&d, seed);
    for (int i = 0; i < 3; i++) {
        multiply_by_rows(&a, &b, &d);
        a.cells[i] += d.cells[N + i] / 16;
    }
    eliminate(&d);
    sum = digest(&d, sum);
    free(a.cells), free(b.cells), free(c.cells), free(d.cells);
    return sum;
}
