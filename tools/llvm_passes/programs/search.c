/* Finds words in a text: naively, by Horspool's rule, by Knuth-Morris-Pratt and by a rolling hash. */
#include "common.h"

typedef struct {
    const T *letters;
    int length;
} Text;

static int equal(const T *a, const T *b, int n) {
    for (int i = 0; i < n; i++)
        if (a[i] != b[i]) return 0;
    return 1;
}

static int naive(Text text, Text word) {
    int found = 0;
    for (int i = 0; i + word.length <= text.length; i++) found += equal(text.letters + i, word.letters, word.length);
    return found;
}

static int horspool(Text text, Text word) {
    int skip[64], found = 0;
    for (int i = 0; i < 64; i++) skip[i] = word.length;
    for (int i = 0; i + 1 < word.length; i++) skip[word.letters[i] & 63] = word.length - 1 - i;
    for (int i = 0; i + word.length <= text.length; i += skip[text.letters[i + word.length - 1] & 63])
        found += equal(text.letters + i, word.letters, word.length);
    return found;
}

static int knuth(Text text, Text word) {
    int fall[32] = {0}, found = 0;
    for (int i = 1, k = 0; i < word.length; i++) {
        while (k > 0 && word.letters[i] != word.letters[k]) k = fall[k - 1];
        if (word.letters[i] == word.letters[k]) k++;
        fall[i] = k;
    }
    for (int i = 0, k = 0; i < text.length; i++) {
        while (k > 0 && text.letters[i] != word.letters[k]) k = fall[k - 1];
        if (text.letters[i] == word.letters[k]) k++;
        if (k == word.length) {
            found++;
            k = fall[k - 1];
        }
    }
    return found;
}

static uint32_t extend(uint32_t hash, T letter) { return hash * 257u + (uint32_t)letter; }

static int rolling(Text text, Text word) {
    uint32_t wanted = 0, window = 0, power = 1;
    int found = 0;
    for (int i = 0; i < word.length; i++) {
        wanted = extend(wanted, word.letters[i]);
        window = extend(window, text.letters[i]);
        power *= 257u;
    }
    for (int i = 0;; i++) {
        if (window == wanted) found += equal(text.letters + i, word.letters, word.length);
        if (i + word.length >= text.length) return found;
        window = extend(window, text.letters[i + word.length]) - power * (uint32_t)text.letters[i];
    }
}

static int count_letters(Text text, T low, T high) {
    int n = 0;
    for (int i = 0; i < text.length; i++) n += text.letters[i] >= low && text.letters[i] <= high;
    return n;
}

uint64_t RUN(uint64_t seed) {
    Random r = {seed};
    T *letters = room(N, sizeof(T));
    for (int i = 0; i < N; i++) letters[i] = (T)('a' + random_below(&r, 3));
    Text text = {letters, N};
    uint64_t sum = mix(seed, (uint64_t)count_letters(text, 'b', 'c'));
    for (int length = 2; length <= 10; length += 2) {
        Text word = {letters + random_below(&r, N - 16), length};
        int found = naive(text, word);
        if (found != horspool(text, word) || found != knuth(text, word) || found != rolling(text, word)) abort();
        sum = mix(sum, (uint64_t)found);
    }
    free(letters);
    return sum;
}
