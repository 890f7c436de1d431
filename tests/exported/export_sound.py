"""Writes sound_log_mel.onnx and sound_mfcc.onnx beside it: features of torchaudio's
tables by torch.stft, as PyTorch exports them. Needs torch, torchaudio and onnx.
"""

from __future__ import annotations

from pathlib import Path

import torch
import torchaudio.functional as tables
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


def main() -> None:
    for name, cepstra in (("log_mel", 0), ("mfcc", 8)):
        torch.onnx.export(
            Features(cepstra), (torch.zeros(1, SAMPLES),),
            HERE / f"sound_{name}.onnx", input_names=["sound"],
            output_names=["rows"], opset_version=17, dynamo=False,
        )  # fmt: skip


if __name__ == "__main__":
    main()
