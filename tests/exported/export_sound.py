"""Writes sound_NAME.onnx beside it: features of torchaudio's tables by torch.stft, as
PyTorch's older exporter writes them, and torchaudio's own transforms by the newer one
(the older refuses their complex numbers). Needs torch, torchaudio, onnxscript, onnx.
"""

from __future__ import annotations

from pathlib import Path

import torch
import torchaudio.functional as tables
import torchaudio.transforms as transforms
from export_torch import plain
from torch import Tensor, nn

HERE = Path(__file__).parent
RATE, LENGTH, HOP, BANDS, SAMPLES = 16000, 128, 64, 12, 640


class Features(nn.Module):
    """Decibels of mel bands; with `cepstra`, so many of their cosine transform."""

    def __init__(self, cepstra: int = 0) -> None:
        super().__init__()
        self.cepstra = cepstra
        self.register_buffer("window", torch.hann_window(LENGTH))
        mel = tables.melscale_fbanks(LENGTH // 2 + 1, 20.0, 7600.0, BANDS, RATE)
        self.register_buffer("mel", mel)
        dct = tables.create_dct(max(cepstra, 1), BANDS, "ortho")
        self.register_buffer("dct", dct)

    def forward(self, sound: Tensor) -> Tensor:
        spectrum = torch.stft(
            sound, LENGTH, HOP, LENGTH, self.window, center=False, onesided=True,
            return_complex=False,
        )  # fmt: skip
        power = spectrum.pow(2).sum(-1).transpose(1, 2)
        rows = 10 * torch.log10(torch.clamp(power @ self.mel, min=1e-10))
        return rows @ self.dct if self.cepstra else rows


def of_torchaudio() -> dict[str, nn.Module]:
    """Padded at both ends, as they are by default, but for `cepstra`."""
    bands = {"n_mels": BANDS, "f_min": 20.0, "f_max": 7600.0}
    sizes = {"n_fft": LENGTH, "hop_length": HOP, **bands}
    return {
        "decibels": nn.Sequential(
            transforms.MelSpectrogram(RATE, **sizes),
            transforms.AmplitudeToDB("power", top_db=40),
        ),
        "cepstra": transforms.MFCC(
            RATE, 8, log_mels=True, melkwargs={**sizes, "center": False}
        ),
        "cepstra_decibels": transforms.MFCC(RATE, 8, melkwargs=sizes),
        "magnitudes": transforms.MelSpectrogram(
            RATE, n_fft=LENGTH, win_length=100, hop_length=50, power=1.0,
            normalized=True, window_fn=torch.hamming_window, **bands,
        ),
    }  # fmt: skip


def main() -> None:
    for name, cepstra in (("log_mel", 0), ("mfcc", 8)):
        torch.onnx.export(
            Features(cepstra), (torch.zeros(1, SAMPLES),),
            HERE / f"sound_{name}.onnx", input_names=["sound"],
            output_names=["rows"], opset_version=17, dynamo=False,
        )  # fmt: skip
    for name, net in of_torchaudio().items():
        path = HERE / f"sound_{name}.onnx"
        torch.onnx.export(
            net.eval(), (torch.zeros(1, SAMPLES),), path, dynamo=True, verbose=False,
            external_data=False, input_names=["sound"], output_names=["rows"],
        )  # fmt: skip
        plain(path)


if __name__ == "__main__":
    main()
