"""Programs of a package that run its self-test and print the result: each for the
entry point of its build, and empty where a project compiles it beside its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pybuild.dtype import DType
from pybuild.emit.tables.tables import Tables, TensorRow
from pybuild.package.tree import filled
from pybuild.records import dataclass

TEMPLATES = Path(__file__).parent / "templates"
_MODEL = TEMPLATES / "model"
_OPTIONAL = ("devices", "set_devices", "functions", "prints", "tests")
_WIDE = (DType.INT32, DType.UINT32, DType.INT64, DType.UINT64)
_REAL = (DType.FLOAT32, DType.FLOAT64)


@dataclass(frozen=True)
class Entry:
    """The entry point of a program.

    opening    the function; value: whether it returns one
    condition  of the preprocessor; guard: how a comment calls it
    """

    opening: str
    condition: str
    guard: str
    value: bool = True


# a build with a macro of its own tells its example from the others
_TEST = "defined(CRT_WITH_SELFTEST)"
PROGRAM = Entry(
    "int main(void)",
    f"{_TEST} && !defined(ESP_PLATFORM) && !defined(__ZEPHYR__)",
    "CRT_WITH_SELFTEST",
)
ZEPHYR = Entry("int main(void)", "defined(__ZEPHYR__)", "__ZEPHYR__")
ESP_IDF = Entry("void app_main(void)", "defined(ESP_PLATFORM)", "ESP_PLATFORM", False)


def program(entry: Entry, values: Mapping[str, str], is_image: bool) -> str:
    """A main.c.

    values  of program_of_model or program_of_image, and `name`
    """
    end, one = ("    return 0;\n", " 1") if entry.value else ("", "")
    bad = "    return bad;\n" if entry.value else "    (void)bad;\n"
    whole = {
        **dict.fromkeys(_OPTIONAL, ""), **values, "upper": values["name"].upper(),
        "file": "main.c", "guard": entry.guard, "condition": entry.condition,
        "entry": entry.opening, "end": end, "end_bad": bad, "one": one,
        "instance": "all" if is_image else "model",
        "what": "what came of it" if is_image else "the first outputs",
    }  # fmt: skip
    if entry.condition.startswith("defined") and "&&" not in entry.condition:
        whole["condition"] = f"defined({entry.guard})"
    body = "image-body.c.in" if is_image else "body.c.in"
    whole["body"] = filled(_MODEL / body, whole)
    return _folded(filled(_MODEL / "program.c.in", whole))


def _folded(text: str) -> str:
    """The text without two empty lines in a row."""
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    return text


def sketch(values: Mapping[str, str], models: Sequence[Tables], is_image: bool) -> str:
    """The .ino of Arduino, in C++."""
    name = values["name"]
    if is_image:
        tests = f'    if (error != CRT_OK) {{\n        tell("{name}", error);\n'
        tests += "        return;\n    }\n"
        for model in models:
            call = f"{model.name}_selftest(&all.{model.name})"
            tests += f'    tell("{model.name}", {call});\n'
    else:
        tests = f"    if (error == CRT_OK)\n        error = {name}_selftest(&model);\n"
        tests += f'    if (tell("{name}", error))\n        return;\n'
        tests += "".join(_shown(row, name) for row in models[0].outputs)
    whole = {
        **dict.fromkeys(_OPTIONAL, ""), **values, "upper": name.upper(),
        "sketch_tests": tests, "instance": "all" if is_image else "model",
    }  # fmt: skip
    return _folded(filled(_MODEL / "sketch.ino.in", whole))


def _shown(row: TensorRow, name: str) -> str:
    if row.device:
        return f'    Serial.println("{row.symbol} is on device {row.device}");\n'
    value, kind = f"{name}_{row.symbol}(&model)[i]", row.tensor.dtype
    shown = f"(int){value}"
    if kind in _REAL:
        shown = f"(double){value}, 6"
    elif kind in _WIDE:
        shown = f"(long){value}"
    return f"""\
    Serial.print("{row.symbol}:");
    for (uint32_t i = 0; i < {name.upper()}_{row.symbol.upper()}_LEN && i < 12; i++) {{
        Serial.print(' ');
        Serial.print({shown});
    }}
    Serial.println();
"""
