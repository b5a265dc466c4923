/* One step of a decoder-only language model on a CPU: token ids in, logits out. A step of a few rows reads every weight
 * once and computes little, so memory sets its speed: weights, in float32 or as 8-bit integers, are read as a few
 * long streams, and nothing between two layers returns to Python.
 *
 * What a row becomes does not depend on the other rows. heed/kernels/native_text.py makes the structures.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX__)
#define LANES 8
#else
#define LANES 4
#endif
#define STREAMS 4  /* of weights that are read at the same time */
#define TOGETHER 4 /* rows for which a weight is read once */
#define AHEAD 2048 /* bytes of a stream that are fetched before they are needed */
#define INLINE static inline __attribute__((always_inline))

#if defined(__FP_FAST_FMAF)
#define MULTIPLY_ADD fmaf /* written out, since a compiler might round once for some rows and twice for others */
#else
#define MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))
#endif

typedef float lanes __attribute__((vector_size(4 * LANES), aligned(4)));
typedef int8_t bytes __attribute__((vector_size(LANES), aligned(1)));

typedef struct { /* a linear layer: float32, or 8-bit integers where there are scales */
    const void *weight;
    const float *scale, *bias;
    int64_t out, in;
} linear;

typedef struct {
    const float *weight, *bias;
    double eps;
} norm;

typedef struct {
    norm first, second;
    linear q, k, v, out, up, down;
} layer;

typedef struct { /* keys and values so far, (rows, heads, room, width) */
    float *keys, *values;
    int64_t key_row, key_head, value_row, value_head; /* strides in numbers */
} past;

typedef struct {
    const layer *layers;
    int64_t count, dim, heads, width, hidden;
    int64_t post_norm, relu;
    const float *tokens, *positions;
    int64_t vocabulary, length; /* their rows */
    double scale; /* of embeddings */
    norm last;    /* after the last layer, if it has weights */
    linear output;
} model;

/* exp by Cephes' polynomial: relative error 1e-7, in steps that compilers make vectors of */
INLINE float exp_of(float x) {
    x = x < -87.0f ? -87.0f : x;
    x = x > 88.0f ? 88.0f : x;
    float n = rintf(x * 1.44269504088896341f), r = x - n * 0.693359375f + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    union { int32_t bits; float power; } two = {((int32_t)n + 127) << 23};
    return (p * r * r + r + 1.0f) * two.power;
}

/* 0.5 x (1 + tanh(u)) = x / (1 + exp(-2u)) with u = sqrt(2/pi) (x + 0.044715 x^3) */
INLINE float gelu_tanh(float x) { return x / (1.0f + exp_of(-1.59576912160573f * (x + 0.044715f * x * x * x))); }

INLINE float sum_of(lanes x) {
#if defined(__AVX512F__)
    return _mm512_reduce_add_ps((__m512)x);
#else
    float sum = 0;
    for (int i = 0; i < LANES; i++) sum += x[i];
    return sum;
#endif
}

INLINE lanes read_floats(const float *at) { return *(const lanes *)at; }

INLINE lanes read_bytes(const int8_t *at) { /* compilers convert vectors of bytes one by one */
#if defined(__AVX512F__)
    return (lanes)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)at)));
#elif defined(__AVX2__)
    return (lanes)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)at)));
#else
    return __builtin_convertvector(*(const bytes *)at, lanes);
#endif
}

INLINE lanes read_weights(const char *at, int is_bytes) {
    return is_bytes ? read_bytes((const int8_t *)at) : read_floats((const float *)at);
}

/* The outputs o, o + apart, ... of n rows of x. Rows of weights that are far apart are streams of their own, which memory
 * delivers faster than one. */
INLINE void products(const linear *l, int is_bytes, const float *x, int64_t o, int64_t apart, int n, float *y, int64_t stride) {
    const int64_t dim = l->in, size = is_bytes ? 1 : 4, line = 64 / size;
    const char *weights[STREAMS];
    for (int s = 0; s < STREAMS; s++) weights[s] = (const char *)l->weight + (o + s * apart < l->out ? o + s * apart : o) * dim * size;
    lanes sums[STREAMS][TOGETHER] = {{{0}}}, own[TOGETHER];
    int64_t i = 0;
    for (; i + line <= dim; i += line) {
#pragma GCC unroll 4
        for (int s = 0; s < STREAMS; s++) __builtin_prefetch(weights[s] + i * size + AHEAD);
#pragma GCC unroll 16
        for (int64_t j = i; j < i + line; j += LANES) {
#pragma GCC unroll 4
            for (int r = 0; r < n; r++) own[r] = read_floats(x + r * dim + j);
#pragma GCC unroll 4
            for (int s = 0; s < STREAMS; s++) {
                const lanes w = read_weights(weights[s] + j * size, is_bytes);
#pragma GCC unroll 4
                for (int r = 0; r < n; r++) sums[s][r] += w * own[r];
            }
        }
    }
    for (; i + LANES <= dim; i += LANES)
#pragma GCC unroll 4
        for (int s = 0; s < STREAMS; s++)
#pragma GCC unroll 4
            for (int r = 0; r < n; r++) sums[s][r] += read_weights(weights[s] + i * size, is_bytes) * read_floats(x + r * dim + i);
#pragma GCC unroll 4
    for (int s = 0; s < STREAMS; s++) {
        const int64_t at = o + s * apart;
        if (at >= l->out) break;
        const float scale = is_bytes ? l->scale[at] : 1.0f, bias = l->bias ? l->bias[at] : 0.0f;
#pragma GCC unroll 4
        for (int r = 0; r < n; r++) {
            float sum = sum_of(sums[s][r]);
            for (int64_t j = i; j < dim; j++) {
                const char *w = weights[s] + j * size;
                sum = MULTIPLY_ADD(is_bytes ? (float)*(const int8_t *)w : *(const float *)w, x[r * dim + j], sum);
            }
            y[r * stride + at] = MULTIPLY_ADD(sum, scale, bias);
        }
    }
}

INLINE void outputs(const linear *l, int is_bytes, const float *x, int64_t rows, float *y, int64_t stride) {
    const int64_t apart = (l->out + STREAMS - 1) / STREAMS;
#pragma omp for schedule(static) nowait
    for (int64_t o = 0; o < apart; o++) {
        int64_t r = 0;
        for (; r + TOGETHER <= rows; r += TOGETHER) products(l, is_bytes, x + r * l->in, o, apart, TOGETHER, y + r * stride, stride);
        const float *rest = x + r * l->in;
        if (rows - r == 1) products(l, is_bytes, rest, o, apart, 1, y + r * stride, stride);
        if (rows - r == 2) products(l, is_bytes, rest, o, apart, 2, y + r * stride, stride);
        if (rows - r == 3) products(l, is_bytes, rest, o, apart, 3, y + r * stride, stride);
    }
}

/* y = W x + b, by all threads; they do not wait for each other after it */
static void apply(const linear *l, const float *x, int64_t rows, float *y, int64_t stride) {
    if (l->scale) outputs(l, 1, x, rows, y, stride);
    else outputs(l, 0, x, rows, y, stride);
}

/* x + added (if any) into `sum`, and its norm into y, by all threads, row by row */
static void normalize(const norm *n, const float *x, const float *added, int64_t rows, int64_t dim, float *sum, float *y) {
#pragma omp for schedule(static)
    for (int64_t r = 0; r < rows; r++) {
        const float *own = x + r * dim;
        float mean = 0, square = 0;
        if (added) {
            for (int64_t i = 0; i < dim; i++) sum[r * dim + i] = own[i] + added[r * dim + i];
            own = sum + r * dim;
        }
        if (!n->weight) continue;
#pragma omp simd reduction(+ : mean)
        for (int64_t i = 0; i < dim; i++) mean += own[i];
        mean /= dim;
#pragma omp simd reduction(+ : square)
        for (int64_t i = 0; i < dim; i++) square += (own[i] - mean) * (own[i] - mean);
        const float scale = (float)(1.0 / sqrt(square / dim + n->eps));
        for (int64_t i = 0; i < dim; i++) y[r * dim + i] = (own[i] - mean) * scale * n->weight[i] + n->bias[i];
    }
}

/* One head of one row: its own key and value are kept, and its query attends to all from `first` on. */
static void attend(const model *m, const past *p, const float *qkv, int64_t row, int64_t head, int64_t first, int64_t length, float *scores, float *y) {
    const int64_t width = m->width, dim = m->heads * width;
    const float *q = qkv + row * 3 * dim + head * width, scale = 1.0f / sqrtf((float)width);
    float *keys = p->keys + row * p->key_row + head * p->key_head;
    float *values = p->values + row * p->value_row + head * p->value_head;
    memcpy(keys + length * width, q + dim, width * sizeof(float));
    memcpy(values + length * width, q + 2 * dim, width * sizeof(float));
    float most = -INFINITY, total = 0;
    for (int64_t t = first; t <= length; t++) {
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < width; i++) sum += q[i] * keys[t * width + i];
        scores[t] = sum * scale;
        most = scores[t] > most ? scores[t] : most;
    }
    for (int64_t t = first; t <= length; t++) scores[t] = exp_of(scores[t] - most);
#pragma omp simd reduction(+ : total)
    for (int64_t t = first; t <= length; t++) total += scores[t];
    for (int64_t i = 0; i < width; i++) y[i] = 0;
    for (int64_t t = first; t <= length; t++)
        for (int64_t i = 0; i < width; i++) y[i] += scores[t] * values[t * width + i];
    for (int64_t i = 0; i < width; i++) y[i] /= total;
}

static void run(const model *m, const past *pasts, int64_t rows, int64_t length, const int64_t *tokens, const int64_t *places, const int64_t *first, float *x, float *scores, float *logits) {
    const int64_t dim = m->dim, inner = m->heads * m->width;
    const float scale = (float)m->scale;
    float *h = x + rows * dim, *y = h + rows * dim, *qkv = y + rows * dim, *mixed = qkv + rows * 3 * inner, *up = mixed + rows * inner;
#pragma omp for schedule(static)
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < dim; i++)
            x[r * dim + i] = m->tokens[tokens[r] * dim + i] * scale + m->positions[places[r] * dim + i];
    const float *input = x; /* of the attention */
    if (!m->post_norm) normalize(&m->layers[0].first, x, 0, rows, dim, 0, h), input = h;
    for (int64_t n = 0; n < m->count; n++) {
        const layer *l = m->layers + n;
        const norm *next = n + 1 < m->count ? &m->layers[n + 1].first : &m->last;
        apply(&l->q, input, rows, qkv, 3 * inner);
        apply(&l->k, input, rows, qkv + inner, 3 * inner);
        apply(&l->v, input, rows, qkv + 2 * inner, 3 * inner);
#pragma omp barrier
#pragma omp for schedule(static)
        for (int64_t i = 0; i < rows * m->heads; i++) {
            const int64_t r = i / m->heads, head = i % m->heads;
            attend(m, pasts + n, qkv, r, head, first ? first[r] : 0, length, scores + i * (length + 1), mixed + r * inner + head * m->width);
        }
        apply(&l->out, mixed, rows, y, dim);
#pragma omp barrier
        if (m->post_norm) normalize(&l->first, x, y, rows, dim, x, x);
        else normalize(&l->second, x, y, rows, dim, x, h);
        apply(&l->up, m->post_norm ? x : h, rows, up, m->hidden);
#pragma omp barrier
#pragma omp for schedule(static)
        for (int64_t r = 0; r < rows; r++) {
            float *own = up + r * m->hidden;
            if (m->relu) for (int64_t i = 0; i < m->hidden; i++) own[i] = own[i] > 0 ? own[i] : 0;
            else for (int64_t i = 0; i < m->hidden; i++) own[i] = gelu_tanh(own[i]);
        }
        apply(&l->down, up, rows, y, dim);
#pragma omp barrier
        if (m->post_norm) normalize(&l->second, x, y, rows, dim, x, x);
        else normalize(next, x, y, rows, dim, x, h);
    }
    const float *states = m->post_norm || !m->last.weight ? x : h;
    if (m->post_norm && m->last.weight) {
        normalize(&m->last, x, 0, rows, dim, 0, h);
        states = h;
    }
    apply(&m->output, states, rows, logits, m->output.out);
}

/* The logits after one more token in each row, which `length` tokens precede. `places` are the positions of the tokens,
 * `first` (or NULL) the first of the keys that belong to a row. 0: done; otherwise nothing is changed: 1: there is not
 * enough memory; 2: the model has no such token or position. */
int heed_step(const model *m, const past *pasts, int64_t rows, int64_t length, const int64_t *tokens, const int64_t *places, const int64_t *first, float *logits, int threads) {
    for (int64_t r = 0; r < rows; r++)
        if (tokens[r] < 0 || tokens[r] >= m->vocabulary || places[r] < 0 || places[r] >= m->length) return 2;
    const int64_t inner = m->heads * m->width;
    const int64_t states = rows * (3 * m->dim + 4 * inner + m->hidden), scores = rows * m->heads * (length + 1);
    void *room;
    if (posix_memalign(&room, 64, (states + scores) * sizeof(float))) return 1;
    float *work = room;
#pragma omp parallel num_threads(threads)
    run(m, pasts, rows, length, tokens, places, first, work, work + states, logits);
    free(room);
    return 0;
}

/* Rows of x as two 8-bit integers for each number, 128 more than their value: the upper ones in units of the row's scale,
 * the lower ones in 1/254 of it. `values` has all upper rows first. */
void heed_split(const float *x, int64_t rows, int64_t dim, uint8_t *values, float *scale, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t r = 0; r < rows; r++) {
        const float *own = x + r * dim;
        uint8_t *high = values + r * dim, *low = values + (rows + r) * dim;
        float most = 1e-30f, broken = 0; /* NaN if a number is NaN or infinite */
#pragma omp simd reduction(max : most) reduction(+ : broken)
        for (int64_t i = 0; i < dim; i++) {
            most = fabsf(own[i]) > most ? fabsf(own[i]) : most;
            broken += own[i] * 0;
        }
        scale[r] = most / 127 + broken;
        const float inverse = 127 / most;
        for (int64_t i = 0; i < dim; i++) {
            const float exact = own[i] * inverse, upper = rintf(exact);
            high[i] = (uint8_t)((int32_t)upper + 128);
            low[i] = (uint8_t)((int32_t)rintf((exact - upper) * 254) + 128);
        }
    }
}

/* y = (high + low / 254) * the row's scale + bias, from the products of the upper and of the lower integers */
void heed_join(const float *products, int64_t rows, int64_t out, const float *scale, const float *bias, float *y, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t r = 0; r < rows; r++) {
        const float *high = products + r * out, *low = products + (rows + r) * out;
        const float own = scale[r];
        for (int64_t i = 0; i < out; i++) y[r * out + i] = (high[i] + low[i] * (1.0f / 254)) * own + bias[i];
    }
}
