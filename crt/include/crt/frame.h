/* crt/frame.h: frames on a stream of bytes that may lose, change or invent
 * some: docs/rpc-protocol.md. A frame arrives as it was sent, or not at all.
 * Knows no call; allocates nothing. */
#ifndef CRT_FRAME_H
#define CRT_FRAME_H

#include "crt/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of a frame beside its data: header and checksum. */
#define CRT_FRAME_HEADER 12u
#define CRT_FRAME_EXTRA  16u

/* What a frame is. Values are for ever. */
enum crt_frame_kind {
    CRT_FRAME_HELLO = 1,   /* to the board: begins a session */
    CRT_FRAME_WELCOME = 2, /* from the board: the session, what is here */
    CRT_FRAME_CALL = 3,    /* to the board */
    CRT_FRAME_REPLY = 4,   /* from the board: of the call of this number */
    CRT_FRAME_WORKING = 5, /* from the board: this call is being done */
    CRT_FRAME_LOG = 6,     /* from the board: text for people */
    CRT_FRAME_LOST = 7     /* from the board: knows no such session */
};

/* Owner   data is in the memory that the frame was received in, until the next
 *         byte is taken; or the sender's */
struct crt_frame {
    uint8_t kind; /* enum crt_frame_kind */
    uint32_t session;
    uint32_t sequence;
    const uint8_t *data;
    uint32_t bytes; /* of data, at most 65535 */
};

/* A frame that is arriving. Read only `dropped`.
 *
 * Owner   the caller */
struct crt_frame_input {
    uint8_t *room;
    uint32_t room_bytes;
    uint32_t count;   /* bytes in room */
    uint32_t dropped; /* frames that were damaged, cut or too long */
    uint8_t escaped;  /* the byte before was an escape */
    uint8_t skipping; /* all up to the next flag is of no use */
};

/* Sends a byte; waits while the line is busy. */
typedef void crt_byte_put(void *context, uint8_t byte);

/* Begins to receive into `room`.
 *
 * Units   bytes: CRT_FRAME_EXTRA or more, the longest frame that is taken */
void crt_frame_begin(struct crt_frame_input *in, uint8_t *room, uint32_t bytes);

/* Takes the next byte of the stream. Whatever comes, nothing is written outside
 * of the room: the length that a frame says is checked before its data is read.
 *
 * Errors  1: `frame` is whole and undamaged; 0: not yet */
int crt_frame_take(struct crt_frame_input *in, uint8_t byte,
                   struct crt_frame *frame);

/* Sends a frame.
 *
 * Time    at most 2 bytes for each of the frame, and 2 */
void crt_frame_send(const struct crt_frame *frame, crt_byte_put *put,
                    void *context);

/* The same with `tail` behind the data, and counted as data.
 *
 * Units   tail_bytes: with those of data at most 65535 */
void crt_frame_send_with(const struct crt_frame *frame, const uint8_t *tail,
                         uint32_t tail_bytes, crt_byte_put *put, void *context);

/* The first CRT_FRAME_HEADER bytes of a frame, as they are sent with
 * tail_bytes behind its data. */
void crt_frame_header(const struct crt_frame *frame, uint32_t tail_bytes,
                      uint8_t *header);

#ifdef __cplusplus
}
#endif

#endif
