/* Four ways to sort the same numbers: quick, heap, merge and shell sort. */
#include "common.h"

static int before(T a, T b) { return a < b; }

static void swap(T *a, T *b) {
    T kept = *a;
    *a = *b;
    *b = kept;
}

static void insertion(T *x, int n) {
    for (int i = 1; i < n; i++) {
        T kept = x[i];
        int j = i;
        for (; j > 0 && before(kept, x[j - 1]); j--) x[j] = x[j - 1];
        x[j] = kept;
    }
}

static T median(T a, T b, T c) {
    if (before(b, a)) swap(&a, &b);
    if (before(c, b)) b = before(c, a) ? a : c;
    return b;
}

static void quick(T *x, int n) {
    while (n > 12) {
        T pivot = median(x[0], x[n / 2], x[n - 1]);
        int i = -1, j = n;
        for (;;) {
            do i++;
            while (before(x[i], pivot));
            do j--;
            while (before(pivot, x[j]));
            if (i >= j) break;
            swap(&x[i], &x[j]);
        }
        quick(x, j + 1);
        x += j + 1;
        n -= j + 1;
    }
    insertion(x, n);
}

static void sift(T *x, int root, int n) {
    for (int child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && before(x[child], x[child + 1])) child++;
        if (!before(x[root], x[child])) return;
        swap(&x[root], &x[child]);
    }
}

static void heap(T *x, int n) {
    for (int i = n / 2; i-- > 0;) sift(x, i, n);
    while (n-- > 1) {
        swap(&x[0], &x[n]);
        sift(x, 0, n);
    }
}

static void merge(T *x, T *spare, int n) {
    for (int width = 1; width < n; width *= 2) {
        for (int low = 0; low < n; low += 2 * width) {
            int middle = low + width < n ? low + width : n, high = low + 2 * width < n ? low + 2 * width : n;
            int i = low, j = middle;
            for (int k = low; k < high; k++)
                spare[k] = i < middle && (j >= high || !before(x[j], x[i])) ? x[i++] : x[j++];
        }
        for (int k = 0; k < n; k++) x[k] = spare[k];
    }
}

static void shell(T *x, int n) {
    for (int gap = n / 2; gap > 0; gap = gap == 2 ? 1 : gap * 5 / 11)
        for (int i = gap; i < n; i++)
            for (int j = i; j >= gap && before(x[j], x[j - gap]); j -= gap) swap(&x[j], &x[j - gap]);
}

uint64_t RUN(uint64_t seed) {
    Random r = {seed};
    T *x = room(N, sizeof(T)), *spare = room(N, sizeof(T));
    uint64_t sum = seed;
    for (int kind = 0; kind < 4; kind++) {
        for (int i = 0; i < N; i++) x[i] = (T)random_below(&r, 1 << 20);
        switch (kind) {
        case 0: quick(x, N); break;
        case 1: heap(x, N); break;
        case 2: merge(x, spare, N); break;
        default: shell(x, N); break;
        }
        for (int i = 1; i < N; i++)
            if (before(x[i], x[i - 1])) abort();
        for (int i = 0; i < N; i += 7) sum = mix(sum, (uint64_t)x[i]);
    }
    free(x), free(spare);
    return sum;
}
