"""Mutations of graph executor modules, of remote devices and of their protocol, for
mutate.py: its five fields."""

_FRAMES = "tests/crt/test_crt.py::test_calls[test_frame.c-gcc-]"
_SESSIONS = "tests/crt/test_crt.py::test_calls[test_rpc.c-gcc-]"
_CALLS = "tests/crt/test_crt.py::test_calls[test_calls.c-gcc-]"
_FAULTS = "tests/rpc/test_faults.py::test_ten_thousand_calls"
_HOSTILE = "tests/rpc/test_hostile_boards.py"
_MODULES = "tests/rpc/test_remote_modules.py"
_TURNS = "tests/crt/test_crt.py::test_calls[test_binding.c-gcc-]"
_TABLE = "tests/executor/test_sharing_table.py"
_LINES = "tests/rpc/test_lines_of_sockets.py"
_NAMES = "tests/executor/test_spellings.py"
_SHARING = "tests/executor/test_runtime_sharing.py"
_LIBRARY = "tests/executor/test_runtime_module_based_interface.py"

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
        "    if (frame->sequence == r->sequence + 1u &&",
        "    if (frame->sequence >= r->sequence &&",
        _SESSIONS,
    ),
    (
        "a late hello",
        "crt/src/rpc.c",
        "    r->nonce = hello->session;",
        "    r->nonce = hello->session;\n    begin(r);",
        _SESSIONS,
    ),
    (
        "an input that is half there",
        "crt/src/calls.c",
        "if (words[3] == 0u)",
        "if (0)",
        _CALLS,
    ),
    (
        "the end of an object",
        "crt/include/crt/objects.h",
        "return at <= most && bytes <= most - at;",
        "return at + bytes <= most;",
        _SESSIONS,
    ),
    (
        "objects in one place",
        "crt/src/objects.c",
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

EXECUTOR = (
    (
        "a refused run that takes the turn",
        "crt/src/run.c",
        "        error = crt_turn_begin(g);",
        "        error = crt_turn_begin(g), g->turn ? (g->turn->owner = g) : 0;",
        _TURNS,
    ),
    (
        "a turn that a reset has broken off",
        "crt/src/graph.c",
        "    turn->running = 0;\n    turn->wait = NULL;",
        "    turn->wait = NULL;",
        _TURNS,
    ),
    (
        "an image that begins its turns anew",
        "pybuild/emit/c/image.py",
        'lines.append(f"    (void)crt_turn_init(&m->turns[{index}]);")',
        "pass",
        "tests/resets/test_resets.py",
    ),
    (
        "the end of a turn is told",
        "crt/src/graph.c",
        "        (void)turn->wait(turn, 0);",
        "        (void)turn->wait(turn, 1);",
        _TURNS,
    ),
    (
        "a board that is heard while it is talked to",
        "pybuild/rpc/line.py",
        "select.select(both, both, [], 1)",
        "select.select([], both, [], 1)",
        f"{_LINES}::test_a_board_that_must_be_heard_before_it_listens",
    ),
    (
        "a simulator that ends with its script",
        "pybuild/boards/simulators/process.py",
        "{ read -r _ <&3; kill -9 $p; }",
        "{ read -r _ <&3; }",
        f"{_LINES}::test_what_a_script_started_ends_with_it",
    ),
    (
        "a closed connection",
        "pybuild/rpc/remote.py",
        "        self._is_closed = True\n",
        "",
        "tests/rpc/test_remote_modules.py::test_closed_is_closed",
    ),
    (
        "parameters of a closed instance",
        "pybuild/host/native.py",
        "            self.release_params()\n        self._bound",
        "            pass\n        self._bound",
        "tests/host/test_binding.py::test_a_closed_instance_gives_its_parameters_back",
    ),
    (
        "a donor without weights",
        "pybuild/executor/parameters.py",
        "if name not in donor._given:\n                raise failure",
        "if False:\n                raise failure",
        _TABLE,
    ),
    (
        "a donor that packs otherwise",
        "pybuild/executor/parameters.py",
        "if (slot.sources, slot.layout) == (want.sources, want.layout)",
        "if slot.sources == want.sources",
        _TABLE,
    ),
    (
        "weights that wait to be packed when a module shares",
        "pybuild/executor/parameters.py",
        "        donor.bind()\n",
        "",
        _TABLE,
    ),
    (
        "a library without its weights",
        "pybuild/executor/archive_write.py",
        "rest = {n: v for n, v in values.items() if n not in library.parameters}",
        "rest = dict(values)",
        f"{_LIBRARY}::test_a_library_is_exported_without_its_weights",
    ),
    (
        "weights beside a model",
        "pybuild/passes/new_values.py",
        "constants={**graph.constants, **made}",
        "constants={**made, **graph.constants}",
        f"{_NAMES}::test_weights_beside_a_graph_are_taken",
    ),
    (
        "parameter images of several models",
        "pybuild/emit/tables/pool.py",
        "return shared + sum(m.image_bytes for m in self.models if m.name not in used)",
        "return shared",
        "tests/test_image_c.py::test_equal_parameter_images_are_there_once",
    ),
    (
        "integers between floats",
        "pybuild/host/named_tensors.py",
        'if given.dtype.kind == "f" and np.any(np.abs(given) > _WHOLE):',
        "if False:",
        "tests/test_python.py::test_no_integer_of_a_list_is_rounded",
    ),
    (
        "a source whose output is bound elsewhere",
        "pybuild/executor/module.py",
        "        self.parameters.bind()\n        self.inputs.refresh()",
        "        self.parameters.bind()",
        f"{_SHARING}::test_an_input_follows_an_output_that_is_bound_elsewhere",
    ),
    (
        "frames that no board has",
        "pybuild/rpc/link.py",
        "if not LEAST_DATA <= welcome.most <= MOST_DATA:",
        "if not welcome.most:",
        _HOSTILE,
    ),
    (
        "the length of an answer",
        "pybuild/rpc/link.py",
        "if size != call.gives and not (status < 0 and not size):",
        "if size < call.gives and not (status < 0 and not size):",
        _HOSTILE,
    ),
    (
        "what a terminal obeys of a board's words",
        "pybuild/rpc/welcome.py",
        "c if c.isprintable() else ascii(c)[1:-1] for c in said",
        "c if c.isprintable() else c for c in said",
        _HOSTILE,
    ),
    (
        "how long a slow board is waited for",
        "pybuild/rpc/board.py",
        "return max(float(self.welcome.hz), _SLOWEST_CHIP)",
        "return float(self.welcome.hz)",
        _HOSTILE,
    ),
)

_KEY = "tests/crt/test_crt.py::test_calls[test_rpc_key.c-gcc-]"
_BETWEEN = "tests/rpc/test_key.py"

KEYED = (
    (
        "a tag that is compared up to its last byte",
        "crt/src/rpc.c",
        "i < CRT_RPC_TAG_BYTES; i++",
        "i < CRT_RPC_TAG_BYTES - 1u; i++",
        _KEY,
    ),
    (
        "any tag is a true one",
        "crt/src/rpc.c",
        "return differs == 0u;\n}\n\n/* What the board puts in",
        "return differs < 256u;\n}\n\n/* What the board puts in",
        "tests/test_fuzz.py::test_damaged_files_are_refused[rpc]",
    ),
    (
        "no tag is a true one",
        "crt/src/rpc.c",
        "return differs == 0u;\n}\n\n/* What the board puts in",
        "return differs > 256u;\n}\n\n/* What the board puts in",
        "tests/test_fuzz.py::test_damaged_files_are_refused[rpc]",
    ),
    (
        "a session that begins without its tag",
        "crt/src/rpc.c",
        "if (!take_tag(k, k == NULL ? NULL : k->offered, frame)) {",
        "if (!take_tag(k, k == NULL ? NULL : k->offered, frame) && 0) {",
        _KEY,
    ),
    (
        "offers that are alike",
        "crt/src/rpc.c",
        "    k->offers++;",
        "    k->offers += 0;",
        _KEY,
    ),
    (
        "numbers of a keyed session that begin anew",
        "crt/src/rpc.c",
        "(r->config->key == NULL || frame->sequence != 0u)",
        "1",
        _KEY,
    ),
    (
        "a host without a key that is served",
        "crt/src/rpc.c",
        "r->config->key != NULL && hello->bytes != CRT_RPC_NONCE_BYTES",
        "0",
        _KEY,
    ),
    (
        "an answer without a tag",
        "pybuild/rpc/key.py",
        "return plain if hmac.compare_digest(whole, frame.data) else None",
        "return plain",
        _BETWEEN,
    ),
    (
        "a welcome that any board can give",
        "pybuild/rpc/welcome.py",
        "return Offer(None, refused=HAS_NO_KEY)",
        "return Offer(found)",
        _BETWEEN,
    ),
    (
        "a log that is heard twice",
        "pybuild/rpc/link.py",
        "if opened is None or frame.sequence <= self._logs:",
        "if opened is None:",
        _BETWEEN,
    ),
    (
        "a key in the words of an error",
        "pybuild/rpc/key.py",
        "    secret: bytes = field(repr=False)",
        "    secret: bytes",
        _BETWEEN,
    ),
    (
        "blocks of a batch that a scalar has not",
        "pybuild/frontends/tflite/operators/moves.py",
        "if n >= rank or x.shape[0] % math.prod(sizes):",
        "if x.shape[0] % math.prod(sizes) or n >= rank:",
        "tests/regression/test_fuzzed_files.py",
    ),
    (
        "channels that are held however many there are",
        "pybuild/passes/channels/constant.py",
        "_MOST = 1 << 24",
        "_MOST = 1 << 60",
        "tests/regression/test_fuzzed_files.py",
    ),
    (
        "an archive whose packing is damaged",
        "pybuild/params/budget.py",
        "UNPACKING = (BadZipFile, zlib.error, EOFError",
        "UNPACKING = (BadZipFile, EOFError",
        "tests/regression/test_fuzzed_files.py",
    ),
    (
        "an archive that is packed in another way",
        "pybuild/params/budget.py",
        "if entry.compress_type not in (ZIP_STORED, ZIP_DEFLATED):",
        "if entry.compress_type > 99:",
        "tests/regression/test_fuzzed_files.py",
    ),
    (
        "a finding of Atheris",
        "tests/fuzzers/of_python.py",
        "    except BuildError as error:",
        "    except Exception as error:",
        "tests/fuzzers/test_corpora.py",
    ),
)
