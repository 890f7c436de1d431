"""The single instructions of a core that the cost model knows: two neighbouring words,
a product by a power of two. Knows no cost.
"""

from __future__ import annotations

from pybuild.ir.loop import (
    INT32,
    Assign,
    Call,
    Const,
    Expr,
    For,
    Let,
    Load,
    Part,
    PointerType,
    Stmt,
    Store,
    Var,
)

# one instruction on a core with this feature
SINGLE = {
    "crt_mulhi": "mulhi",
    "crt_mulhi_add": "mulhi",
    "crt_mulhi_add_round": "mulhi",
    "crt_saturate8": "mulhi",
    "crt_saturate16": "mulhi",
    "crt_long_mla": "words",
    "crt_low_halves": "dsp",
    "crt_high_halves": "dsp",
    "crt_whole": "dsp",
    "crt_from_half": "dsp",
    "crt_from_high_half": "dsp",
    "crt_size4": "mve",
}
# what functions take on a core without that feature: their C has a branch for rare
# values, which their meaning computes for all
USUAL = {"crt_from_half": 9, "crt_from_high_half": 9}
# what operations take on a Cortex-M4 or, on vectors, on a Cortex-M55, where that is not
# one instruction; of two that are gathered one needs an address of its own, beside two
# sums that are packed a vector is loaded again, or a constant
INSTRUCTIONS = {
    "crt_gather4": 1.5, "crt_first16": 2,
    "crt_whole": 2, "crt_whole_even": 2, "crt_quotient4": 4,
    "crt_steps_away4": 4, "crt_steps_even4": 4, "crt_real4": 2,
    "crt_add_product4": 2, "crt_add_products4": 2, "crt_at_least4": 2,
    "crt_at_most4": 2,
    "crt_twice4": 5, "crt_twice_down4": 4, "crt_twice_all4": 3, "crt_twice_up_all4": 2,
    "crt_once4": 2, "crt_once_all4": 3, "crt_away4": 6, "crt_scaled4": 3,
    "crt_pack8": 2, "crt_pack16": 2, "crt_zip4": 3,
    "crt_near8": 4, "crt_below8": 2, "crt_times_where8": 3, "crt_by_sign8": 2,
    "crt_above8": 2, "crt_at_zero8": 2, "crt_away_all4": 3, "crt_curve4": 26,
    "crt_size4": 2,
    "crt_twos4": 2, "crt_odd4": 2, "crt_scale_kept4": 1.5,
}  # fmt: skip
_CROWDED = 4  # instructions
# numbers of turns that functions are given
_TURNS = ("turns", "window_rows")


def word_pairs(body: tuple[Stmt, ...]) -> int:
    """Loads of words, and stores, that one instruction does with the one before."""
    found, before = 0, (False, "", 0)
    for stmt in body:
        stored, name, index = place = _word(stmt)
        if name and before == (stored, name, index - 1):
            found, place = found + 1, (False, "", 0)
        before = place
    return found


def _word(stmt: Stmt) -> tuple[bool, str, int]:
    """True for a store; the pointer and the index of a word; "": it is not a word."""
    match stmt:
        case Let(_, Load(Var(name) as at, Const(int() as index))):
            stored = False
        case Store(Var(name) as at, Const(int() as index)) if not stmt.wide:
            stored = True
        case _:
            return False, "", 0
    words = isinstance(at.type, PointerType) and at.type.elem is INT32
    return stored, name if words else "", index


def is_power(expr: Expr) -> bool:
    """A product by it is a shift."""
    return isinstance(expr, Const) and bin(int(expr.value)).count("1") == 1


def is_dot(expr: Expr) -> bool:
    """A sum of the products of two vectors, and of what was summed before."""
    return isinstance(expr, Call) and expr.intrin.name in ("crt_dot16", "crt_dot8")


def dot_passes(body: tuple[Stmt, ...], sums: set[str]) -> list[list[str]]:
    """The sums in the order in which products are added; a new list begins where sums
    begin again."""
    passes = list[list[str]]()
    begins = True
    for stmt in body:
        if isinstance(stmt, Assign) and is_dot(stmt.value):
            if begins:
                passes.append([])
            passes[-1].append(stmt.var.name)
            begins = False
        elif isinstance(stmt, Let) and stmt.var.name in sums:
            begins = True
    return passes


def crowded(body: tuple[Stmt, ...], most: int) -> int:
    """The extra cost of an iteration of an innermost loop that carries more than `most`
    values: its counter is loaded and stored, two pointers are added to."""
    if len(body) <= most or any(isinstance(s, For) for s in body):
        return 0
    carried = {s.var.name for s in body if isinstance(s, Assign)}
    carried -= {s.var.name for s in body if isinstance(s, Let)}
    return _CROWDED if len(carried) > most else 0


def turns_given(body: tuple[Stmt, ...]) -> list[Expr]:
    """The iteration counts of loops in functions that are called here."""
    found = list[Expr]()
    for stmt in body:
        if isinstance(stmt, For):
            found += turns_given(stmt.body)
        elif isinstance(stmt, Part):
            given = zip(stmt.params, stmt.args, strict=True)
            found += [value for param, value in given if param.name in _TURNS]
    return found
