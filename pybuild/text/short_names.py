"""Names that people can read: of each layer and tensor one that is short, unique, and
an identifier of C, whatever a converter has called it in the file.

Knows texts only; `Graph.short` has those of a graph.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

LONGEST, LONGEST_LINE = 32, 60
_PLAIN = re.compile(r"[A-Za-z][0-9A-Za-z]*(_[0-9A-Za-z]+)*")
# what exporters put behind the name of a value: of Keras a variable that is read, of
# PyTorch the number of an output, of TensorFlow too
_ENDS = re.compile(r"(/ReadVariableOp.*|_output_0|:0)$")
# what converters fuse into the layer before it
_END_OF_LAYER = re.compile(r"(?i)batch_?norm|activation|re_?lu6?\b")


def identifier(text: str) -> str:
    """Letters, digits and single underscores; starts with a letter."""
    clean = re.sub(r"_+", "_", re.sub(r"[^0-9A-Za-z]", "_", text)).strip("_").lower()
    if not clean:
        clean = "t"
    if clean[0].isdigit():
        clean = f"t_{clean}"
    return clean


def brief(name: str) -> str:
    """A layer's name where there is no graph yet: one too long for a line is short."""
    return name if len(name) <= LONGEST_LINE else _forms(name)[0]


def short_names(
    layers: Iterable[tuple[str, str]],
    tensors: Iterable[str] = (),
    constants: Iterable[str] = (),
) -> dict[str, str]:
    """The short name of each layer and tensor: "functional_1/activation_6/Relu;
    functional_1/conv2d_3/BiasAdd;functional_1/conv2d_3/Conv2D1" -> "conv2d_3".

    A name that is short already stays as it is. Others are their layer's, as far as
    that tells them apart; else with the operator or the scope around it. So a name
    depends on those that are much like it, and on no other.

    layers     name and first output of each: an output named after its layer shares
               its short name
    tensors    which may share no layer's; nor may constants, whose names say more
    """
    pairs = list(layers)
    made = _told_apart([name for name, _ in pairs], {}, 0)
    for name, output in pairs:
        if output.startswith(name) and not _ENDS.sub("", output[len(name) :]):
            made.setdefault(output, made[name])
    for names, least in ((tensors, 0), (constants, 1)):
        made |= _told_apart([name for name in names if name not in made], made, least)
    return made


def _told_apart(
    names: Iterable[str], known: Mapping[str, str], least: int
) -> dict[str, str]:
    """Each as short as leaves it the only one of that name, and none of those known.

    least  the first of its forms that a name may have, where it has several
    """
    forms = {name: _forms(name) for name in names}
    forms = {name: found[least:] or found for name, found in forms.items()}
    taken = {word.lower() for word in known.values()}
    made: dict[str, str] = {}
    for level in range(max(map(len, forms.values()), default=0)):
        left = {n: f[level] for n, f in forms.items() if n not in made and f[level:]}
        count = Counter(form.lower() for form in left.values())
        for name, form in left.items():
            if count[form.lower()] == 1 and form.lower() not in taken:
                made[name] = form
        taken |= {form.lower() for form in made.values()}
    used: Counter[str] = Counter()
    for name, found in forms.items():
        if name not in made:
            made[name] = _numbered(found[-1], taken, used)
    return made


def _numbered(form: str, taken: set[str], used: Counter[str]) -> str:
    """used: the last number of each form"""
    made = form
    while made.lower() in taken:
        used[form] += 1
        made = f"{form}_{used[form] + 1}"
    taken.add(made.lower())
    return made


def _forms(name: str) -> list[str]:
    """The possible short names, shortest first."""
    if len(name) <= LONGEST and _PLAIN.fullmatch(name):
        return [name]
    parts = _path(name)
    layer = max(len(parts) - 2, 0)
    ends = (layer + 1, len(parts))
    words = ["/".join(parts[at:end]) for at in range(layer, -1, -1) for end in ends]
    made = list(dict.fromkeys(map(identifier, words)))
    return [word for word in made if len(word) <= LONGEST] or [_cut(made[0])]


def _path(name: str) -> list[str]:
    """Scopes, layer, operator: of the layer that most of a fused name is about."""
    texts = [_ENDS.sub("", text) for text in name.split(";")]
    texts = [text for text in texts if not _END_OF_LAYER.search(text)] or texts
    found = [parts for parts in map(_parts, texts) if parts] or [[name]]
    layers = [parts[-2] if len(parts) > 1 else parts[0] for parts in found]
    count = Counter(layers)
    most = max(count.values())
    return found[max(i for i, layer in enumerate(layers) if count[layer] == most)]


def _parts(text: str) -> list[str]:
    """The parts of a path; a scope that repeats its layer's name is dropped."""
    found = [part for part in text.split("/") if part]
    return [
        part
        for i, part in enumerate(found)
        if i in (0, len(found) - 1) or not f"{found[i - 1]}_".startswith(f"{part}_")
    ]


def _cut(word: str) -> str:
    """Its end, by which names differ."""
    end = word[-LONGEST:]
    return identifier(end.partition("_")[2] or end)
