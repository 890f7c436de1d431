"""Mutations of remote devices and their protocol, for mutate.py: its five fields."""

_FRAMES = "tests/crt/test_crt.py::test_calls[test_frame.c-gcc-]"
_SESSIONS = "tests/crt/test_crt.py::test_calls[test_rpc.c-gcc-]"
_CALLS = "tests/crt/test_crt.py::test_calls[test_calls.c-gcc-]"
_FAULTS = "tests/rpc/test_faults.py::test_ten_thousand_calls"
_MODULES = "tests/rpc/test_remote_modules.py"

REMOTE = (
    (
        "the room of a frame",
        "crt/src/frame.c",
        "get16(in->room + 2) > in->room_bytes - CRT_FRAME_EXTRA",
        "get16(in->room + 2) > in->room_bytes",
        _FRAMES,
    ),
    (
        "the checksum of a frame",
        "crt/src/frame.c",
        "crt_crc32(0, room, count - 4u) == get32(room + count - 4u)",
        "(get32(room + count - 4u) | 1u) != 0",
        _FRAMES,
    ),
    (
        "calls that are done twice",
        "crt/src/rpc.c",
        "if (frame->sequence == r->sequence + 1u) {\n        r->sequence++;",
        "if (frame->sequence >= r->sequence) {\n        r->sequence = frame->sequence;",
        _SESSIONS,
    ),
    (
        "a late hello",
        "crt/src/rpc.c",
        "    r->nonce = nonce;\n    crt_put32(to, CRT_RPC_VERSION);",
        "    r->nonce = nonce;\n    begin(r);\n    crt_put32(to, CRT_RPC_VERSION);",
        _SESSIONS,
    ),
    (
        "an input that is half there",
        "crt/src/calls.c",
        "if (words[3] == 0)",
        "if (0)",
        _CALLS,
    ),
    (
        "the end of an object",
        "crt/src/calls.c",
        "return at <= most && bytes <= most - at;",
        "return at + bytes <= most;",
        _SESSIONS,
    ),
    (
        "objects in one place",
        "crt/src/calls.c",
        "at < o->at + o->bytes &&",
        "at + 16u < o->at + o->bytes &&",
        _SESSIONS,
    ),
    (
        "answers of another session",
        "pybuild/rpc/link.py",
        "if frame.session != self.welcome.session:",
        "if False:",
        _FAULTS,
    ),
    (
        "an answer that was lost",
        "pybuild/rpc/link.py",
        "self.left.append(index)  # done, but its answer is lost",
        "self.answers[index] = Answer(0, b'')",
        "tests/rpc/test_faults.py::test_long_transfers_on_damaged_lines",
    ),
    (
        "images that nobody uses",
        "pybuild/rpc/board.py",
        "board.owned(self, buffer)",
        "pass",
        _MODULES,
    ),
    (
        "another library on the board",
        "pybuild/rpc/remote.py",
        "if welcome.library == content:",
        "if True:",
        _MODULES,
    ),
    (
        "time by the board's counter",
        "pybuild/rpc/net.py",
        "return round(self.ticks(number) * _NANO / self.board.hz)",
        "return round(self.ticks(number) * _NANO)",
        _MODULES,
    ),
    (
        "rows of a watch",
        "crt/src/calls.c",
        " && bytes <= o->bytes && from <= o->bytes - bytes)",
        " && from + bytes < o->bytes)",
        _CALLS,
    ),
)
