/* Edit distance, longest common subsequence, a knapsack and the longest rising run: tables filled row by row. */
#include "common.h"

static T smaller(T a, T b) { return a < b ? a : b; }
static T larger(T a, T b) { return a > b ? a : b; }

static T distance(const uint8_t *a, const uint8_t *b, int n, T *row, T insert, T change) {
    for (int j = 0; j <= n; j++) row[j] = (T)j * insert;
    for (int i = 1; i <= n; i++) {
        T corner = row[0];
        row[0] = (T)i * insert;
        for (int j = 1; j <= n; j++) {
            T above = row[j];
            T cost = a[i - 1] == b[j - 1] ? 0 : change;
            row[j] = smaller(smaller(above, row[j - 1]) + insert, corner + cost);
            corner = above;
        }
    }
    return row[n];
}

static T shared(const uint8_t *a, const uint8_t *b, int n, T *rows) {
    memset(rows, 0, sizeof(T) * 2 * (size_t)(n + 1));
    for (int i = 1; i <= n; i++) {
        T *now = rows + (i & 1) * (n + 1), *last = rows + (~i & 1) * (n + 1);
        for (int j = 1; j <= n; j++) now[j] = a[i - 1] == b[j - 1] ? last[j - 1] + 1 : larger(last[j], now[j - 1]);
    }
    return rows[(n & 1) * (n + 1) + n];
}

static T knapsack(const uint8_t *weight, const uint8_t *worth, int items, T *best, int room_left) {
    for (int w = 0; w <= room_left; w++) best[w] = 0;
    for (int i = 0; i < items; i++)
        for (int w = room_left; w >= weight[i]; w--) best[w] = larger(best[w], best[w - weight[i]] + (T)worth[i]);
    return best[room_left];
}

static int rising(const uint8_t *a, int n) {
    uint8_t tails[64];
    int length = 0;
    for (int i = 0; i < n; i++) {
        int low = 0, high = length;
        while (low < high) {
            int middle = (low + high) / 2;
            if (tails[middle] < a[i])
                low = middle + 1;
            else
                high = middle;
        }
        tails[low] = a[i];
        if (low == length) length++;
    }
    return length;
}

uint64_t RUN(uint64_t seed) {
    Random r = {seed};
    uint8_t a[N], b[N];
    T *table = room(2 * (N + 1), sizeof(T));
    for (int i = 0; i < N; i++) {
        a[i] = (uint8_t)(1 + random_below(&r, 40));
        b[i] = random_below(&r, 3) == 0 ? (uint8_t)(1 + random_below(&r, 40)) : a[i];
    }
    uint64_t sum = mix(seed, (uint64_t)distance(a, b, N, table, 1, 1));
    sum = mix(sum, (uint64_t)distance(b, a, N, table, 2, 3));
    sum = mix(sum, (uint64_t)shared(a, b, N, table));
    sum = mix(sum, (uint64_t)knapsack(a, b, N, table, N));
    sum = mix(sum, (uint64_t)rising(a, N) * 64 + (uint64_t)rising(b, N));
    free(table);
    return sum;
}
