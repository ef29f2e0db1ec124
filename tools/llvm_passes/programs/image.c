/* An image is blurred, its edges found, its histogram spread, and it is halved. */
#include "common.h"

typedef struct {
    int width, height;
    T *pixels;
} Image;

static Image blank(int width, int height) { return (Image){width, height, room((size_t)width * height, sizeof(T))}; }

static int clamp(int value, int low, int high) { return value < low ? low : value > high ? high : value; }

static T pixel(const Image *image, int x, int y) {
    return image->pixels[clamp(y, 0, image->height - 1) * image->width + clamp(x, 0, image->width - 1)];
}

static void convolve(const Image *in, Image *out, const T kernel[3][3], T divisor) {
    for (int y = 0; y < in->height; y++)
        for (int x = 0; x < in->width; x++) {
            T sum = 0;
            for (int j = 0; j < 3; j++)
                for (int i = 0; i < 3; i++) sum += kernel[j][i] * pixel(in, x + i - 1, y + j - 1);
            out->pixels[y * out->width + x] = sum / divisor;
        }
}

static void edges(const Image *in, Image *out) {
    for (int y = 1; y + 1 < in->height; y++)
        for (int x = 1; x + 1 < in->width; x++) {
            const T *p = in->pixels + y * in->width + x;
            T across = p[1] - p[-1], down = p[in->width] - p[-in->width];
            out->pixels[y * out->width + x] = (across < 0 ? -across : across) + (down < 0 ? -down : down);
        }
}

static void spread(Image *image) {
    int histogram[256] = {0}, total = image->width * image->height, so_far = 0;
    uint8_t level[256];
    for (int i = 0; i < total; i++) histogram[clamp((int)image->pixels[i], 0, 255)]++;
    for (int i = 0; i < 256; i++) {
        so_far += histogram[i];
        level[i] = (uint8_t)((uint64_t)so_far * 255 / (uint64_t)total);
    }
    for (int i = 0; i < total; i++) image->pixels[i] = (T)level[clamp((int)image->pixels[i], 0, 255)];
}

static void halve(const Image *in, Image *out) {
    for (int y = 0; y < out->height; y++)
        for (int x = 0; x < out->width; x++)
            out->pixels[y * out->width + x] = (pixel(in, 2 * x, 2 * y) + pixel(in, 2 * x + 1, 2 * y) +
                                               pixel(in, 2 * x, 2 * y + 1) + pixel(in, 2 * x + 1, 2 * y + 1)) / 4;
}

static uint64_t digest(const Image *image, uint64_t sum) {
    for (int i = 0; i < image->width * image->height; i += 3) sum = mix(sum, (uint64_t)(int64_t)(image->pixels[i] * 8));
    return sum;
}

uint64_t RUN(uint64_t seed) {
    static const T blur[3][3] = {{1, 2, 1}, {2, 4, 2}, {1, 2, 1}}, sharp[3][3] = {{0, -1, 0}, {-1, 8, -1}, {0, -1, 0}};
    Random r = {seed};
    Image a = blank(N, N), b = blank(N, N), c = blank(N / 2, N / 2);
    for (int i = 0; i < N * N; i++) a.pixels[i] = (T)random_below(&r, 256);
    convolve(&a, &b, blur, 16);
    convolve(&b, &a, sharp, 4);
    edges(&a, &b);
    spread(&b);
    halve(&b, &c);
    uint64_t sum = digest(&c, digest(&a, seed));
    free(a.pixels), free(b.pixels), free(c.pixels);
    return sum;
}
