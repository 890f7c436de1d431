/* hmac.c: HMAC-SHA-256, as small as it goes: FIPS 180-4 and RFC 2104.
 * Knows no frame. No branch and no address depends on a byte of key or data. */
#include "crt/hmac.h"

#ifndef CRT_NO_RPC

enum { BLOCK = 64, WORDS = 8, ROUNDS = 64, INNER = 0x36, OUTER = 0x5C };

struct sha {
    uint32_t hash[WORDS];
    uint8_t block[BLOCK];
    uint32_t bytes; /* that were given, in all */
};

/* First 32 bits of the fractions of the cube roots of the first 64 primes. */
static const uint32_t constants[ROUNDS] = {
    0x428a2f98u, 0x71374491u, 0xb5c0fbcfu, 0xe9b5dba5u, 0x3956c25bu,
    0x59f111f1u, 0x923f82a4u, 0xab1c5ed5u, 0xd807aa98u, 0x12835b01u,
    0x243185beu, 0x550c7dc3u, 0x72be5d74u, 0x80deb1feu, 0x9bdc06a7u,
    0xc19bf174u, 0xe49b69c1u, 0xefbe4786u, 0x0fc19dc6u, 0x240ca1ccu,
    0x2de92c6fu, 0x4a7484aau, 0x5cb0a9dcu, 0x76f988dau, 0x983e5152u,
    0xa831c66du, 0xb00327c8u, 0xbf597fc7u, 0xc6e00bf3u, 0xd5a79147u,
    0x06ca6351u, 0x14292967u, 0x27b70a85u, 0x2e1b2138u, 0x4d2c6dfcu,
    0x53380d13u, 0x650a7354u, 0x766a0abbu, 0x81c2c92eu, 0x92722c85u,
    0xa2bfe8a1u, 0xa81a664bu, 0xc24b8b70u, 0xc76c51a3u, 0xd192e819u,
    0xd6990624u, 0xf40e3585u, 0x106aa070u, 0x19a4c116u, 0x1e376c08u,
    0x2748774cu, 0x34b0bcb5u, 0x391c0cb3u, 0x4ed8aa4au, 0x5b9cca4fu,
    0x682e6ff3u, 0x748f82eeu, 0x78a5636fu, 0x84c87814u, 0x8cc70208u,
    0x90befffau, 0xa4506cebu, 0xbef9a3f7u, 0xc67178f2u,
};

/* ... of the square roots of the first 8. */
static const uint32_t first[WORDS] = {
    0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au,
    0x510e527fu, 0x9b05688cu, 0x1f83d9abu, 0x5be0cd19u,
};

static uint32_t turned(uint32_t x, uint32_t bits)
{
    return x >> bits | x << (32u - bits);
}

static uint32_t get32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 |
           (uint32_t)at[2] << 8 | (uint32_t)at[3];
}

static void put32(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 24);
    at[1] = (uint8_t)(value >> 16);
    at[2] = (uint8_t)(value >> 8);
    at[3] = (uint8_t)value;
}

/* The word of the schedule 16 behind `w[i]`, in its place. */
static void extend(uint32_t *w, uint32_t i)
{
    const uint32_t x = w[(i + 1u) % 16u];
    const uint32_t y = w[(i + 14u) % 16u];

    w[i % 16u] += (turned(x, 7) ^ turned(x, 18) ^ (x >> 3)) +
                  w[(i + 9u) % 16u] +
                  (turned(y, 17) ^ turned(y, 19) ^ (y >> 10));
}

static void compress(struct sha *s)
{
    uint32_t w[16];
    uint32_t h[WORDS];
    uint32_t i;

    for (i = 0; i < 16u; i++) {
        w[i] = get32(s->block + 4u * (size_t)i);
    }
    for (i = 0; i < (uint32_t)WORDS; i++) {
        h[i] = s->hash[i];
    }
    for (i = 0; i < (uint32_t)ROUNDS; i++) {
        const uint32_t e = h[4];
        const uint32_t a = h[0];
        const uint32_t one =
            h[7] + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) +
            ((e & h[5]) ^ (~e & h[6])) + constants[i] + w[i % 16u];
        const uint32_t two = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) +
                             ((a & h[1]) ^ (a & h[2]) ^ (h[1] & h[2]));

        extend(w, i);
        h[7] = h[6]; /* a loop of these would be a call of memmove */
        h[6] = h[5];
        h[5] = e;
        h[4] = h[3] + one;
        h[3] = h[2];
        h[2] = h[1];
        h[1] = a;
        h[0] = one + two;
    }
    for (i = 0; i < (uint32_t)WORDS; i++) {
        s->hash[i] += h[i];
    }
}

static void add(struct sha *s, const uint8_t *data, uint32_t bytes)
{
    uint32_t i;

    for (i = 0; i < bytes; i++) {
        s->block[s->bytes % (uint32_t)BLOCK] = data[i];
        s->bytes++;
        if (s->bytes % (uint32_t)BLOCK == 0u) {
            compress(s);
        }
    }
}

/* Begins with the key, every byte of its block turned by `pad`. */
static void begin(struct sha *s, const uint8_t *key, uint8_t pad)
{
    uint8_t block[BLOCK];
    uint32_t i;

    for (i = 0; i < (uint32_t)WORDS; i++) {
        s->hash[i] = first[i];
    }
    s->bytes = 0;
    for (i = 0; i < (uint32_t)BLOCK; i++) {
        block[i] = pad;
    }
    for (i = 0; i < CRT_HMAC_BYTES; i++) {
        block[i] ^= key[i];
    }
    add(s, block, BLOCK);
}

/* Ends with a bit, zeros and the count of bits. */
static void end(struct sha *s, uint8_t *result)
{
    static const uint8_t one = 0x80u;
    static const uint8_t zero = 0;
    const uint32_t bits = 8u * s->bytes;
    uint8_t count[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    uint32_t i;

    put32(count + 4, bits);
    add(s, &one, 1);
    while (s->bytes % (uint32_t)BLOCK != (uint32_t)BLOCK - sizeof count) {
        add(s, &zero, 1);
    }
    add(s, count, sizeof count);
    for (i = 0; i < (uint32_t)WORDS; i++) {
        put32(result + 4u * (size_t)i, s->hash[i]);
    }
}

void crt_hmac_sha256(const uint8_t *key, const uint8_t *head,
                     uint32_t head_bytes, const uint8_t *data, uint32_t bytes,
                     uint8_t *result)
{
    uint8_t inner[CRT_HMAC_BYTES];
    struct sha s;

    begin(&s, key, INNER);
    add(&s, head, head_bytes);
    add(&s, data, bytes);
    end(&s, inner);
    begin(&s, key, OUTER);
    add(&s, inner, CRT_HMAC_BYTES);
    end(&s, result);
}

#endif
