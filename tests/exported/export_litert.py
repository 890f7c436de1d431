"""Writes litert.zip beside it: the nets of zoo.py as people take them from PyTorch to
LiteRT, by litert-torch, and then through ai-edge-quantizer in its forms, calibrated
with seeded inputs. In float they are NAME.tflite, quantised NAME.FORM.tflite.

python tests/exported/export_litert.py [FOLDER]: needs torch and litert-torch.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
import zipfile
from pathlib import Path

import litert_torch
import numpy as np
from ai_edge_litert.interpreter import Interpreter
from ai_edge_quantizer import qtyping, quantizer

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.exported.export_pt2 import stem
from tests.exported.zoo import ZOO, made

HERE = Path(__file__).parent
ALL = qtyping.TFLOperationName.ALL_SUPPORTED
WAYS = qtyping.QuantGranularity
FORMS = ("int8_tensor", "int8_channel", "int16", "dynamic", "float16")


def converted(name: str) -> bytes:
    net, example = made(name)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.tflite"
        litert_torch.convert(net, example).export(str(path))
        return path.read_bytes()


def calibration(data: bytes) -> list[dict[str, np.ndarray]]:
    details = Interpreter(model_content=data).get_signature_runner().get_input_details()
    chance = np.random.default_rng(1)
    found: list[dict[str, np.ndarray]] = [{} for _ in range(8)]
    for sample in found:
        for name, detail in sorted(details.items()):
            shape, kind = detail["shape"], detail["dtype"]
            real = kind == np.float32
            drawn = (
                chance.standard_normal(shape) if real else chance.integers(0, 30, shape)
            )
            sample[name] = drawn.astype(kind)
    return found


def quantised(data: bytes, form: str) -> bytes:
    tool = quantizer.Quantizer(bytearray(data))
    if form == "dynamic":
        tool.add_dynamic_config(".*", ALL, 8)
    elif form == "float16":
        half = qtyping.TensorQuantizationConfig(16, dtype=qtyping.TensorDataType.FLOAT)
        config = qtyping.OpQuantizationConfig(
            weight_tensor_config=half, compute_precision=qtyping.ComputePrecision.FLOAT
        )
        tool.update_quantization_recipe(
            ".*", ALL, config, algorithm_key="float_casting"
        )
    else:
        way = WAYS.TENSORWISE if form == "int8_tensor" else WAYS.CHANNELWISE
        tool.add_static_config(".*", ALL, 16 if form == "int16" else 8, 8, way)
    found = tool.calibrate({"serving_default": calibration(data)})
    return bytes(tool.quantize(found).quantized_model)


def main(folder: Path = HERE) -> None:
    warnings.simplefilter("ignore")
    with zipfile.ZipFile(folder / "litert.zip", "w") as kept:
        for name in sorted(ZOO):
            data = converted(name)
            files = {f"{stem(name)}.tflite": data}
            for form in FORMS:
                files[f"{stem(name)}.{form}.tflite"] = quantised(data, form)
            for file, made_of in files.items():
                info = zipfile.ZipInfo(file)
                kept.writestr(info, made_of, zipfile.ZIP_DEFLATED, 9)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
