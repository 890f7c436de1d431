"""Kernels and constants that models of one image share: each is there once.

What is equal is one: the code of a kernel, type and bytes of a constant. Tables in,
tables out; knows neither plans nor files.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace

from pybuild.dtype import Array
from pybuild.emit.tables.names import Names
from pybuild.emit.tables.tables import Constant, Kernels, Tables, User, identity
from pybuild.ir.loop import Func
from pybuild.ir.loop_verify import with_distinct_parts
from pybuild.records import dataclass


@dataclass(frozen=True)
class Pool:
    """The models of an image after sharing.

    models     their tables: constants are those that they use, kernels are not theirs
    kernels    all, with the layers that use them
    constants  all, in the order of their symbols
    users      symbol -> the names of the models that use it
    images     parameter images that are several models'
    """

    name: str
    models: tuple[Tables, ...]
    kernels: Kernels
    constants: tuple[Constant, ...]
    users: dict[str, tuple[str, ...]] = field(compare=False)
    images: tuple[Constant, ...] = ()

    @property
    def weight_bytes(self) -> int:
        """The bytes of constants and of parameter images."""
        shared = sum(c.array.nbytes for c in (*self.constants, *self.images))
        used = {name for c in self.images for name in self.users[c.symbol]}
        return shared + sum(m.image_bytes for m in self.models if m.name not in used)

    @property
    def saved_bytes(self) -> int:
        """The bytes that these would take in addition, if each model had its own."""
        alone = sum(m.weight_bytes + m.image_bytes for m in self.models)
        return alone - self.weight_bytes

    def image_of(self, model: str) -> Constant | None:
        """The parameter image that a model shares; None: it has its own."""
        found = (c for c in self.images if model in self.users[c.symbol])
        return next(found, None)


def pooled(
    name: str,
    models: Sequence[Tables],
    taken: Collection[str],
    images: Mapping[str, Array],
) -> Pool:
    """Every symbol of what is shared starts with `name`_.

    taken   identifiers that the models' own files define
    images  of parameters, by the name of the model, in words
    """
    pool = _Pool(name, taken)
    made = tuple(pool.add(tables) for tables in models)
    shared = pool.images(images)
    constants = sorted(pool.constants.values(), key=lambda c: c.symbol)
    funcs = with_distinct_parts(func for func, _ in pool.kernels.values())
    layers = (tuple(users) for _, users in pool.kernels.values())
    kernels = tuple(zip(funcs, layers, strict=True))
    users = {symbol: tuple(names) for symbol, names in pool.users.items()}
    return Pool(name, made, kernels, tuple(constants), users, shared)


class _Pool:
    def __init__(self, name: str, taken: Collection[str]) -> None:
        self.name = name
        start = f"{name}_"
        self.names = Names(t.removeprefix(start) for t in taken if t.startswith(start))
        self.kernels: dict[Func, tuple[Func, list[User]]] = {}
        self.constants: dict[tuple[str, bytes], Constant] = {}
        self.users: dict[str, list[str]] = {}

    def add(self, tables: Tables) -> Tables:
        """The tables with the image's symbols instead of their own."""
        kernels = {f.name: self._kernel(f, u, tables) for f, u in tables.kernels}
        constants = {c.symbol: self._constant(c, tables) for c in tables.constants}
        moved = {old: new.symbol for old, new in constants.items()} | {"": ""}
        steps = (replace(s, kernel=kernels.get(s.kernel, "")) for s in tables.steps)
        rows = (replace(r, pad_row=moved[r.pad_row]) for r in tables.rows)
        kept = (replace(row, initial=moved[row.initial]) for row in tables.kept)
        return replace(
            tables,
            kernels=(),
            constants=tuple(sorted(constants.values(), key=lambda c: c.symbol)),
            constant_list=tuple(moved[symbol] for symbol in tables.constant_list),
            rows=tuple(rows),
            kept=tuple(kept),
            steps=tuple(steps),
        )

    def _kernel(self, func: Func, users: Sequence[User], tables: Tables) -> str:
        key = replace(func, name="")
        if key not in self.kernels:
            symbol = f"{self.name}_{self.names.fresh(func.name)}"
            self.kernels[key] = replace(func, name=symbol), []
        known, others = self.kernels[key]
        others += [replace(user, model=tables.name) for user in users]
        self._use(known.name, tables)
        return known.name

    def _constant(self, constant: Constant, tables: Tables) -> Constant:
        key = identity(constant.array)
        text = f"{tables.name}: {constant.comment}"
        if key in self.constants:
            known = self.constants[key]
            made = replace(known, comment=f"{known.comment}\n{text}")
        else:
            rest = constant.symbol.removeprefix(f"{tables.name}_")
            symbol = f"{self.name}_{self.names.fresh(rest)}"
            made = replace(constant, symbol=symbol, comment=text)
        self.constants[key] = made
        self._use(made.symbol, tables)
        return made

    def images(self, images: Mapping[str, Array]) -> tuple[Constant, ...]:
        """The images that several models share."""
        equal: dict[tuple[str, bytes], list[str]] = {}
        for model, words in images.items():
            equal.setdefault(identity(words), []).append(model)
        made = []
        for models in equal.values():
            if len(models) > 1:
                symbol = f"{self.name}_{self.names.fresh('params_image')}"
                text = f"parameters of {', '.join(models)}"
                made.append(Constant(symbol, images[models[0]], text))
                self.users[symbol] = models
        return tuple(made)

    def _use(self, symbol: str, tables: Tables) -> None:
        users = self.users.setdefault(symbol, [])
        if tables.name not in users:
            users.append(tables.name)


def defined(name: str, texts: Iterable[str]) -> set[str]:
    """Identifiers of C files that start with NAME_, as a model's own do."""
    code = (re.sub(r"/\*.*?\*/", " ", text, flags=re.S) for text in texts)
    pattern = rf"\b(?:{name}|{name.upper()})_\w+"
    return {word for text in code for word in re.findall(pattern, text)}
