/* mine.h: a user's CRT_CONFIG_FILE. */
#define CRT_NO_HOOK
#define CRT_NO_STRING_H
#define CRT_NO_RPC
