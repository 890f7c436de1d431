"""Makes the step tables of a plan: rows, symbols, and each list only once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.emit.tables.comments import once, operation, pointers_of
from pybuild.emit.tables.limits import must_fit, step_must_fit
from pybuild.emit.tables.memory_map import memory_map
from pybuild.emit.tables.names import (
    NUMBERED,
    RESERVED,
    VERIFIED,
    Names,
    accessors,
    is_keyword,
)
from pybuild.emit.tables.runs import OperandRuns, Runs
from pybuild.emit.tables.stage_drawing import drawn
from pybuild.emit.tables.tables import (
    CONSUMED,
    CONVERTED,
    LAZY,
    PUSHED,
    SINGLE_ROW,
    Constant,
    KeptRow,
    Operand,
    RegionRow,
    Rows,
    StageRow,
    StepRow,
    Tables,
    TensorRow,
    User,
    identity,
)
from pybuild.ir.graph import Node
from pybuild.ir.loop import Func
from pybuild.ir.loop_verify import with_distinct_parts
from pybuild.kernels.base.candidate import Candidate, Packed, RowAccess
from pybuild.plan.buffers.parameter_slots import Slot, key_of
from pybuild.plan.memory.persistent import Kept, id_of
from pybuild.plan.memory.tensor_offsets import ARENA
from pybuild.plan.plan import Plan, Step
from pybuild.plan.regions.regions import Region
from pybuild.plan.schedule.lock_step import Link, with_askers
from pybuild.text.short_names import identifier

# constants that are another order of a layer's second input
WEIGHTS = ("weights", "weights2", "weights4", "weights16", "transformed")
# what a pointer to a parameter's bytes must be a multiple of
_SLOT_ALIGN = 4


def make_tables(
    plan: Plan, name: str, device_count: int = 1, verified: bool = False
) -> Tables:
    """The tables of a plan; every symbol starts with `name`_.

    verified  NAME_verify is to find flash that has changed
    """
    maker = _Maker(plan, name, device_count, VERIFIED if verified else ())
    return replace(maker.make(), verified=verified)


class _Maker:
    def __init__(
        self, plan: Plan, name: str, device_count: int, taken: Sequence[str]
    ) -> None:
        self.plan = plan
        self.name = name
        self.device_count = device_count
        self.regions = [
            r for i, r in enumerate(plan.regions) if i == 0 or r.bytes or not r.spec
        ]
        ends = range(len(plan.graph.inputs) + len(plan.graph.outputs))
        self.io_symbols = {f"{word}_{i}" for word in NUMBERED for i in ends}
        self.io_symbols |= {*RESERVED, *taken}
        self.kernels: dict[str, tuple[Func, list[User]]] = {}
        self.constants: dict[tuple[str, bytes], tuple[str, Array, list[str]]] = {}
        self.args: Runs[int] = Runs()
        self.constant_list: Runs[str] = Runs()
        self.operands = OperandRuns()
        self.rows: dict[Rows, int] = {}
        graph = plan.graph
        self.slots = list(plan.slots.values())
        self.buffers: dict[str, int] = {}
        first = len(self.regions)
        for index, tensor in enumerate((*graph.inputs, *graph.outputs)):
            self.buffers.setdefault(tensor, first + index)
        first += len(graph.inputs) + len(graph.outputs)
        self.slot_buffers = {s.name: first + i for i, s in enumerate(self.slots)}

    def make(self) -> Tables:
        graph = self.plan.graph
        inputs = tuple(self._tensor(n, True) for n in graph.inputs)
        outputs = tuple(self._tensor(n, False) for n in graph.outputs)
        self.constant_names = Names(self.io_symbols)
        self._pad_rows()
        steps = tuple(self._step(step) for step in self.plan.steps)
        links, stages = self._stages(steps)
        kept = tuple(map(self._kept, self.plan.kept))
        funcs = with_distinct_parts(func for func, _ in self.kernels.values())
        users = (tuple(users) for _, users in self.kernels.values())
        constants = [
            Constant(symbol, data, once(comments))
            for symbol, data, comments in self.constants.values()
        ]
        made = Tables(
            name=self.name,
            kernels=tuple(zip(funcs, users, strict=True)),
            constants=tuple(sorted(constants, key=_symbol)),
            args=tuple(self.args.flat),
            constant_list=tuple(self.constant_list.flat),
            operands=tuple(self.operands.flat),
            rows=tuple(self.rows),
            steps=steps,
            stages=stages,
            links=links,
            counters=self.plan.counters,
            inputs=inputs,
            outputs=outputs,
            parameters=tuple(self._parameter(slot) for slot in self.slots),
            regions=tuple(map(_region, self.regions)),
            device_count=self.device_count,
            pointer_count=max(map(pointer_count, self.plan.steps), default=1),
            unpack=_unpack(self.plan),
            packed_words=any(u.words for u in self.plan.unpacks),
            unused=tuple(map(_region, self.plan.regions[len(self.regions) :])),
            kept=kept,
            state_id=id_of(graph, self.plan.kept) if kept else 0,
            warm_runs=graph.warm_runs,
            memory=memory_map(self.plan),
        )
        must_fit(made)
        return made

    def _kept(self, kept: Kept) -> KeptRow:
        initial, name = "", self.plan.graph.shown(kept.name)
        if kept.initial is not None:
            what = f"{name}: what it holds at first"
            initial = self._constant(f"{name}_initial", kept.initial, what)
        return KeptRow(initial, kept.at, kept.bytes, kept.region, name)

    def _stages(
        self, steps: Sequence[StepRow]
    ) -> tuple[tuple[Link, ...], tuple[StageRow, ...]]:
        """The links of all stages, each ended by one of zeros, and the stages."""
        end = Link(0, 0, 0, 0, 0, 0)
        links, rows = [end], []
        for number, stage in enumerate(self.plan.stages):
            # what converts an input is of link 1, which is none: crt/convert.h
            at, comment = int(number < len(self.plan.converted)), ""
            if stage.links:
                comment = "\n".join(drawn(self.plan, stage))
                at = len(links)
                mine = self.plan.steps[stage.first : stage.end]
                bands = [step.candidate.bands for step in mine]
                links += [*with_askers(bands, stage.links), end]
            device = steps[stage.first].device
            size = stage.end - stage.first
            rows.append(StageRow(stage.first, size, device, at, comment))
        return tuple(links) if len(links) > 1 else (), tuple(rows)

    def _tensor(self, name: str, is_input: bool) -> TensorRow:
        tensor = self.plan.graph.tensor(name)
        home = self.plan.places[self.plan.converted.get(name, name)]
        region, rows = max(home.region, 0), 0
        flags = CONSUMED if is_input and name in self.plan.consumed else 0
        if name in self.plan.converted:
            flags = CONSUMED | CONVERTED
        elif name in self.plan.lazy:
            flags = LAZY
        if is_input and name in self.plan.pushed:
            flags = LAZY | PUSHED
            steps = (s for s in self.plan.steps if s.node.outputs == (name,))
            rows = next(steps).candidate.bands
        return TensorRow(
            tensor=tensor,
            symbol=self._io_symbol(name, is_input),
            at=home.home,
            align=tensor.dtype.bytes,
            flags=flags,
            region=region,
            device=self.plan.regions[region].device,
            rows=rows,
            bound=None if is_input else self.plan.graph.bounded.get(name),
            sampled=is_input and name == self.plan.graph.sampled,
        )

    def _parameter(self, slot: Slot) -> TensorRow:
        """Read where it is bound; or at its home, if a device is to read it."""
        block_offset = self.plan.slot_offsets.get(slot.name)
        return TensorRow(
            tensor=slot.tensor,
            symbol="",
            at=block_offset.at if block_offset else 0,
            align=max(_SLOT_ALIGN, slot.tensor.dtype.bytes),
            flags=0 if block_offset else LAZY,
            region=block_offset.region if block_offset else 0,
            device=slot.device,
            layout=slot.layout,
        )

    def _io_symbol(self, name: str, is_input: bool) -> str:
        """A name whose accessors (NAME, set_NAME, bind_NAME) clash with no other."""
        clean = identifier(name)
        if is_keyword(clean):
            clean += "_in" if is_input else "_out"
        symbol, count = clean, 1
        while self.io_symbols & set(accessors(symbol)):
            count += 1
            symbol = f"{clean}_{count}"
        self.io_symbols |= set(accessors(symbol))
        return symbol

    def _step(self, step: Step) -> StepRow:
        candidate = step.candidate
        layer, comment, kernel = self.plan.graph.called(step.node), step.node.op, ""
        if candidate.func is not None:
            comment = operation(step.node, self.plan.graph)
            user = User(layer, comment, pointers_of(candidate))
            kernel = self._kernel(candidate.func, user)
        packed = [
            "" if c.is_bound else self._packed(c, layer, step.node)
            for c in candidate.constants
        ]
        accesses = (*candidate.outputs, *candidate.inputs)
        operands = [
            *(self._operand(a, candidate) for a in accesses),
            *(self._bound(c, step.node) for c in candidate.constants if c.is_bound),
        ]
        if candidate.scratch:
            own, at = step.scratch_region, step.scratch_at
            text = f"scratch, {candidate.scratch} bytes"
            operands.append(self._single(at, own, text))
        row = StepRow(
            kernel=kernel,
            args=self.args.add(candidate.args),
            constants=self.constant_list.add(packed),
            operands=self.operands.add(operands),
            images=candidate.images,
            bands=candidate.bands,
            counts=(
                len(candidate.outputs),
                len(candidate.inputs),
                len(packed),
                1 if candidate.scratch else 0,
            ),
            comment=comment,
            device=step.device,
            layer=layer,
            names=tuple(a.name for a in candidate.func.args) if candidate.func else (),
            slices=tuple(map(self.args.add, candidate.slices)),
        )
        step_must_fit(step, row, self.plan.graph)
        return row

    def _packed(self, packed: Packed, layer: str, node: Node) -> str:
        """The symbol of a constant in flash."""
        name, graph = f"{layer}_{packed.role}", self.plan.graph
        comment = f"{layer}: {packed.role}, {packed.array.nbytes} bytes"
        if len(node.inputs) > 1 and packed.role in WEIGHTS:
            dims = ",".join(map(str, graph.tensor(node.inputs[1]).shape))
            comment += f", of [{dims}]"
        order = f"; {packed.order}" if packed.order else ""
        return self._constant(name, packed.array, comment + order)

    def _bound(self, packed: Packed, node: Node) -> Operand:
        """A parameter, whole, wherever it is bound; or where a constant is unpacked."""
        if packed.place:
            place = self.plan.places[packed.place]
            comment = self.plan.graph.shown(packed.place)
            return self._single(place.at, place.region, comment)
        slot = self.plan.slots[key_of(packed, node)]
        comment = f"parameter {self.plan.graph.shown(slot.name)}"
        return self._single(0, self.slot_buffers[slot.name], comment)

    def _single(self, at: int, buffer: int, comment: str) -> Operand:
        """The operand of a buffer without rows."""
        return Operand(at, buffer, self._rows(SINGLE_ROW), comment)

    def _rows(self, rows: Rows) -> int:
        return self.rows.setdefault(rows, len(self.rows))

    def _kernel(self, func: Func, user: User) -> str:
        """The name under which this code is emitted; the same code only once."""
        name, count = func.name, 1
        while name in self.kernels:
            known, users = self.kernels[name]
            if replace(known, name=func.name) == func:
                users.append(user)
                return name
            count += 1
            name = f"{func.name}_{count}"
        self.kernels[name] = (replace(func, name=name), [user])
        return name

    def _constant(self, name: str, array: Array, comment: str) -> str:
        data = np.ascontiguousarray(array)
        key = identity(data)
        if key not in self.constants:
            symbol = f"{self.name}_{self.constant_names.fresh(name)}"
            self.constants[key] = (symbol, data, [])
        symbol, _, comments = self.constants[key]
        comments.append(comment)
        return symbol

    def _operand(self, access: RowAccess, candidate: Candidate) -> Operand:
        place = self.plan.places[access.tensor]
        ring = self.plan.rings.get(access.tensor)
        buffer = place.region if place.buffer == ARENA else self.buffers[place.buffer]
        pad_row = ""
        if access.pad_row is not None:
            dtype = self._dtype(access)
            pad_row = self.pads[dtype, access.pad_row]
        rows = Rows(
            pad_row=pad_row,
            row_bytes=ring.pitch if ring else access.row_bytes,
            count=access.rows,
            ring=ring.rows if ring else access.rows,
            window=access.window,
            stride=access.stride,
            pad=access.pad,
        )
        if access.is_single and candidate.images == 1:
            rows = SINGLE_ROW
        verb = "writes" if access in candidate.outputs else "reads"
        how = f"{rows.ring} x {rows.row_bytes} bytes"
        if rows == SINGLE_ROW:
            how = f"{access.row_bytes} bytes"
        elif ring:
            how = f"a ring of {how}"
        comment = f"{verb} {self.plan.graph.shown(access.tensor)}, {how}"
        return Operand(place.at, buffer, self._rows(rows), comment)

    def _dtype(self, access: RowAccess) -> DType:
        """The type of a tensor; sums that a kernel keeps between two steps are int32 or
        float."""
        tensor = self.plan.graph.tensors.get(access.tensor)
        return tensor.dtype if tensor else DType.INT32

    def _pad_rows(self) -> None:
        """Makes one array for all rows of padding that begin alike."""
        rows = {
            (self._dtype(access), access.pad_row)
            for step in self.plan.steps
            for access in step.candidate.inputs
            if access.pad_row is not None
        }
        self.pads: dict[tuple[DType, bytes], str] = {}
        longest: list[tuple[DType, bytes, str]] = []
        for dtype, row in sorted(rows, key=lambda r: (r[0].value, -len(r[1]), r[1])):
            known = next(
                (s for d, long, s in longest if d is dtype and long.startswith(row)),
                None,
            )
            if known is None:
                data = np.frombuffer(row, dtype.numpy)
                text = f"a row of padding, {data.nbytes} bytes"
                known = self._constant(f"pad_{len(longest)}", data, text)
                longest.append((dtype, row, known))
            self.pads[dtype, row] = known


def _symbol(constant: Constant) -> str:
    return constant.symbol


def _region(region: Region) -> RegionRow:
    spec = region.spec
    note = ""
    if spec is not None:
        note = f"of {spec.bytes}" + ("" if spec.speed == "plain" else f", {spec.speed}")
    return RegionRow(region.name, region.bytes, region.device, note)


def _unpack(plan: Plan) -> str:
    """The function that all unpacking tasks of the plan call."""
    if not plan.unpacks:
        return ""
    return "crt_copy_weights" if plan.unpacks[0].plain else "crt_lz4_unpack"


def pointer_count(step: Step) -> int:
    """Length of `p` for one step."""
    c = step.candidate
    if c.func is None:
        return 0
    rows = sum(a.window for a in (*c.outputs, *c.inputs))
    return rows + len(c.constants) + (1 if c.scratch else 0)
