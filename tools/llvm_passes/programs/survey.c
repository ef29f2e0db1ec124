/* Columns of records are summarised into accumulators held in memory: counts, sums, extremes, groups, a regression. */
#include "common.h"

enum { GROUPS = 8 };

typedef struct {
    uint32_t id, group;
    T width, weight;
} Record;

typedef struct {
    uint32_t count;
    T sum, squares, least, most;
} Summary;

typedef struct {
    Summary all, groups[GROUPS];
    T cross, slope;
    const Record *records;
    uint32_t size;
} Survey;

static void start(Summary *s) { *s = (Summary){0, 0, 0, (T)1e9, 0}; }

static void take(Summary *s, T value) {
    s->count += 1;
    s->sum += value;
    s->squares += value * value;
    if (value < s->least) s->least = value;
    if (value > s->most) s->most = value;
}

static T mean(const Summary *s) { return s->count == 0 ? 0 : s->sum / (T)s->count; }

static void widths(Survey *v) {
    for (uint32_t i = 0; i < v->size; i++) {
        v->all.count++;
        v->all.sum += v->records[i].width;
        v->all.squares += v->records[i].width * v->records[i].width;
        if (v->records[i].width < v->all.least) v->all.least = v->records[i].width;
        if (v->records[i].width > v->all.most) v->all.most = v->records[i].width;
    }
}

static void by_group(Survey *v) {
    for (uint32_t i = 0; i < v->size; i++) take(&v->groups[v->records[i].group % GROUPS], v->records[i].weight);
}

static void regression(Survey *v) {
    v->cross = 0;
    T below = 0;
    for (uint32_t i = 0; i < v->size; i++) {
        T away = v->records[i].width - mean(&v->all);
        v->cross += away * (v->records[i].weight - mean(&v->groups[0]));
        below += away * away;
    }
    v->slope = below == 0 ? 0 : v->cross / below;
}

static uint32_t outliers(const Survey *v, T factor) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->size; i++)
        if (v->records[i].width > mean(&v->all) * factor || v->records[i].weight * factor < mean(&v->all)) n++;
    return n;
}

static uint64_t digest(const Summary *s, uint64_t sum) {
    sum = mix(sum, s->count);
    sum = mix(sum, (uint64_t)s->sum);
    return mix(sum, (uint64_t)(s->squares + s->least + s->most));
}

uint64_t RUN(uint64_t seed) {
    Random r = {seed};
    Record *records = room(N, sizeof(Record));
    Survey v = {.records = records, .size = N};
    for (uint32_t i = 0; i < N; i++)
        records[i] = (Record){i, random_below(&r, 64), (T)random_below(&r, 1000), (T)random_below(&r, 500)};
    start(&v.all);
    for (int g = 0; g < GROUPS; g++) start(&v.groups[g]);
    for (int i = 0; i < 4; i++) {
        widths(&v);
        by_group(&v);
        regression(&v);
    }
    uint64_t sum = digest(&v.all, mix(seed, outliers(&v, 2)));
    for (int g = 0; g < GROUPS; g++) sum = digest(&v.groups[g], sum);
    sum = mix(sum, (uint64_t)(int64_t)(v.cross * 1e-3f) + (uint64_t)(int64_t)(v.slope * 1000));
    free(records);
    return sum;
}
