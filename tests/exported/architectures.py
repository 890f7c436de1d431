"""Some 70 architectures of torchvision, timm and transformers as their libraries write
them, with seeded weights, few channels and small inputs, as torch.export saves them:
python tests/exported/architectures.py FOLDER [NAME...]. Needs torch, torchao and these
three. The files are not part of the repository: see tests/models/eager.py.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

Made = tuple[nn.Module, tuple[Tensor, ...]]


class First(nn.Module):
    """A net of transformers, which returns more than tensors."""

    def __init__(self, net: nn.Module, name: str) -> None:
        super().__init__()
        self.net, self.name = net, name

    def forward(self, x: Tensor) -> Tensor:
        return getattr(self.net(x), self.name)


class Named(nn.Module):
    """A net that returns a dictionary."""

    def __init__(self, net: nn.Module, key: str) -> None:
        super().__init__()
        self.net, self.key = net, key

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)[self.key]


def _vision(name: str, **options: Any) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        from torchvision import models

        return models.get_model(name, weights=None, **options)

    return make


def _segmentation(name: str) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        from torchvision import models

        net = models.get_model(name, weights=None, weights_backbone=None, num_classes=3)
        return Named(net, "out")

    return make


def _googlenet(name: str) -> Callable[[], nn.Module]:
    return _vision(name, num_classes=10, aux_logits=False, init_weights=False)


def _vgg() -> nn.Module:
    from torchvision.models.vgg import VGG, make_layers

    plan: list[int | str] = [8, "M", 16, "M", 32, 32, "M", 32, 32, "M"]
    net = VGG(make_layers(plan, batch_norm=True), num_classes=10)
    net.classifier = nn.Sequential(
        nn.Linear(32 * 7 * 7, 64), nn.ReLU(True), nn.Dropout(), nn.Linear(64, 10)
    )
    return net


def _detection(kind: str) -> Callable[[], nn.Module]:
    """The backbone and the heads; what suppresses boxes is not part of the net."""

    class Heads(nn.Module):
        def __init__(self, net: nn.Module) -> None:
            super().__init__()
            self.backbone, self.head = net.backbone, net.head

        def forward(self, x: Tensor) -> tuple[Tensor, ...]:
            maps = list(self.backbone(x).values())
            return tuple(self.head(maps).values())

    def make() -> nn.Module:
        from torchvision.models import detection

        return Heads(
            getattr(detection, kind)(weights=None, weights_backbone=None, num_classes=3)
        )

    return make


def _timm(name: str, **options: Any) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        import timm

        return timm.create_model(name, pretrained=False, num_classes=10, **options)

    return make


def _mixer(block: str) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        from timm.models import mlp_mixer

        return mlp_mixer.MlpMixer(
            num_classes=10, img_size=32, patch_size=8, num_blocks=2, embed_dim=32,
            block_layer=getattr(mlp_mixer, block),
            mlp_ratio=(0.5, 4.0) if block == "MixerBlock" else 4,
        )  # fmt: skip

    return make


def _convmixer() -> nn.Module:
    from timm.models.convmixer import ConvMixer

    return ConvMixer(dim=32, depth=4, kernel_size=7, patch_size=4, num_classes=10)


def _poolformer() -> nn.Module:
    from timm.models import metaformer

    return metaformer.MetaFormer(
        num_classes=10, depths=(1, 1, 1, 1), dims=(16, 32, 32, 64),
        token_mixers=metaformer.Pooling, norm_layers=metaformer.GroupNorm1,
        layer_scale_init_values=1e-2, res_scale_init_values=None,
        use_mlp_head=False,
    )  # fmt: skip


def _densenet() -> nn.Module:
    from torchvision.models import DenseNet

    return DenseNet(8, (3, 4, 4, 3), num_init_features=16, num_classes=10)


_SMALL = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
    "intermediate_size": 64, "vocab_size": 60,
}  # fmt: skip


def _transformers(
    name: str, result: str = "last_hidden_state", **options: Any
) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        import transformers

        net = getattr(transformers, f"{name}Model", None)
        kind = net or getattr(transformers, name)
        config = kind.config_class(**options)
        config.use_cache = False
        return First(kind(config), result)

    return make


def _whisper() -> nn.Module:
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    config = WhisperConfig(
        d_model=32, encoder_layers=2, encoder_attention_heads=2, encoder_ffn_dim=64,
        num_mel_bins=16, max_source_positions=24,
    )  # fmt: skip
    return First(WhisperEncoder(config), "last_hidden_state")


def _image(size: int = 64, channels: int = 3) -> Callable[[], tuple[Tensor, ...]]:
    return lambda: (torch.randn(1, channels, size, size),)


def _words(length: int = 10) -> Callable[[], tuple[Tensor, ...]]:
    return lambda: (torch.randint(1, 50, (1, length)),)


def _like(*shape: int) -> Callable[[], tuple[Tensor, ...]]:
    return lambda: (torch.randn(shape),)


_WAVES = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
    "intermediate_size": 64, "conv_dim": (16, 16, 16), "conv_kernel": (10, 3, 3),
    "conv_stride": (5, 2, 2), "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4, "num_feat_extract_layers": 3,
    "vocab_size": 40,
}  # fmt: skip

VISION = {
    "mobilenet_v2": (
        _vision("mobilenet_v2", width_mult=0.35, num_classes=10), _image(),
    ),
    "mobilenet_v3_small": (_vision("mobilenet_v3_small", num_classes=10), _image()),
    "mobilenet_v3_large": (_vision("mobilenet_v3_large", num_classes=10), _image()),
    "efficientnet_b0": (_vision("efficientnet_b0", num_classes=10), _image()),
    "shufflenet_v2": (_vision("shufflenet_v2_x0_5", num_classes=10), _image()),
    "resnet18": (_vision("resnet18", num_classes=10), _image(48)),
    "resnet50": (_vision("resnet50", num_classes=10, width_per_group=16), _image(48)),
    "regnet_y": (_vision("regnet_y_400mf", num_classes=10), _image(48)),
    "convnext": (_timm("convnext_atto"), _image()),
    "mnasnet": (_vision("mnasnet0_5", num_classes=10), _image()),
    "squeezenet": (_vision("squeezenet1_1", num_classes=10), _image()),
    "vgg": (_vgg, _image()),
    "googlenet": (_googlenet("googlenet"), _image(64)),
    "swin": (
        lambda: __import__("torchvision").models.SwinTransformer(
            patch_size=[4, 4], embed_dim=16, depths=[2, 2], num_heads=[2, 2],
            window_size=[4, 4], num_classes=10,
        ), _image(32),
    ),
    "vit": (
        lambda: __import__("torchvision").models.VisionTransformer(
            image_size=32, patch_size=8, num_layers=2, num_heads=2, hidden_dim=32,
            mlp_dim=64, num_classes=10,
        ), _image(32),
    ),
    "maxvit": (
        lambda: __import__("torchvision").models.MaxVit(
            input_size=(64, 64), stem_channels=8, partition_size=2,
            block_channels=[8, 16], block_layers=[1, 1], head_dim=8,
            stochastic_depth_prob=0.0, num_classes=10,
        ), _image(64),
    ),
    "lraspp": (_segmentation("lraspp_mobilenet_v3_large"), _image()),
    "ssdlite": (_detection("ssdlite320_mobilenet_v3_large"), _image(96)),
}  # fmt: skip
TIMM = {
    name: (_timm(name, **options), _image(size))
    for name, size, options in (
        ("deit_tiny_patch16_224", 32, {"img_size": 32, "patch_size": 8, "depth": 2,
                                       "embed_dim": 48}),
        ("mobilevit_xxs", 64, {}),
        ("mobilevitv2_050", 64, {}),
        ("ghostnet_050", 64, {}),
        ("ghostnetv2_100", 64, {}),
        ("edgenext_xx_small", 64, {}),
        ("efficientvit_b0", 64, {}),
        ("efficientvit_m0", 64, {"img_size": 64}),
        ("fastvit_t8", 64, {}),
        ("mobileone_s0", 64, {}),
        ("repvgg_a0", 48, {}),
        ("mobilenetv4_conv_small", 64, {}),
        ("tinynet_e", 64, {}),
        ("lcnet_050", 64, {}),
        ("hardcorenas_a", 64, {}),
        ("rexnet_100", 64, {}),
        ("ese_vovnet19b_slim", 64, {}),
        ("pit_ti_224", 64, {"img_size": 64}),
        ("levit_128s", 64, {"img_size": 64}),
        ("tiny_vit_5m_224", 64, {}),
        ("pvt_v2_b0", 64, {}),
        ("xcit_nano_12_p16_224", 64, {}),
        ("starnet_s1", 64, {}),
        ("inception_next_atto", 64, {}),
        ("repvit_m0_9", 64, {}),
        ("mambaout_femto", 64, {}),
        ("visformer_tiny", 64, {"img_size": 64}),
    )
}  # fmt: skip
TIMM |= {
    "mlp_mixer": (_mixer("MixerBlock"), _image(32)),
    "resmlp": (_mixer("ResBlock"), _image(32)),
    "convmixer": (_convmixer, _image(32)),
    "poolformer": (_poolformer, _image(64)),
    "densenet": (_densenet, _image(64)),
}
TEXT = {
    "bert": (_transformers("Bert", **_SMALL), _words()),
    "distilbert": (
        _transformers("DistilBert", dim=32, n_layers=2, n_heads=2, hidden_dim=64,
                      vocab_size=60), _words(),
    ),
    "albert": (_transformers("Albert", **_SMALL, embedding_size=16), _words()),
    "roberta": (_transformers("Roberta", **_SMALL), _words()),
    "mobilebert": (
        _transformers("MobileBert", **_SMALL, embedding_size=16,
                      intra_bottleneck_size=16), _words(),
    ),
    "electra": (_transformers("Electra", **_SMALL, embedding_size=16), _words()),
    "gpt2": (
        _transformers("GPT2", n_embd=32, n_layer=2, n_head=2, vocab_size=60,
                      n_positions=32), _words(),
    ),
    "gpt_neox": (_transformers("GPTNeoX", **_SMALL), _words()),
    "llama": (
        _transformers("Llama", **_SMALL, num_key_value_heads=1), _words(),
    ),
    "qwen2": (_transformers("Qwen2", **_SMALL, num_key_value_heads=1), _words()),
    "t5_encoder": (
        _transformers("T5Encoder", d_model=32, d_kv=16, d_ff=64, num_layers=2,
                      num_heads=2, vocab_size=60), _words(),
    ),
    "fnet": (_transformers("FNet", **_SMALL), _words()),
    "squeezebert": (
        _transformers("SqueezeBert", **_SMALL, embedding_size=32, q_groups=2,
                      k_groups=2, v_groups=2), _words(),
    ),
}  # fmt: skip
SOUND = {
    "whisper_encoder": (_whisper, _like(1, 16, 48)),
    "wav2vec2": (_transformers("Wav2Vec2", **_WAVES), _like(1, 480)),
    "hubert": (_transformers("Hubert", **_WAVES), _like(1, 480)),
    "wavlm": (_transformers("WavLM", **_WAVES), _like(1, 480)),
    "ast": (
        _transformers("AST", **{k: v for k, v in _SMALL.items() if k != "vocab_size"},
                      num_mel_bins=32, max_length=32), _like(1, 32, 32),
    ),
}  # fmt: skip
ALL: dict[str, tuple[Callable[[], nn.Module], Callable[[], tuple[Tensor, ...]]]] = {
    **VISION, **TIMM, **TEXT, **SOUND,
}  # fmt: skip


def made(name: str) -> Made:
    """The network, its statistics as after training, and an example input."""
    torch.manual_seed(sorted(ALL).index(name))
    net, example = (one() for one in ALL[name])
    for part in net.modules():
        if isinstance(part, nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d):
            nn.init.uniform_(part.running_mean, -0.3, 0.3)
            nn.init.uniform_(part.running_var, 0.5, 1.5)
            if part.affine:
                nn.init.uniform_(part.weight, 0.6, 1.4)
        elif isinstance(part, nn.Linear | nn.Conv2d) and not part.weight.any():
            nn.init.normal_(part.weight, std=0.1)  # a head that begins with zeros
    return net.eval(), example


def quantised(name: str) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """By PT2E, with what the XNNPACK quantiser annotates; calibrated with 4 inputs."""
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.testing.pt2e import _xnnpack_quantizer as xnnpack

    net, example = made(name)
    chosen = xnnpack.get_symmetric_quantization_config(is_per_channel=True)
    quantiser = xnnpack.XNNPACKQuantizer().set_global(chosen)
    ready = prepare_pt2e(torch.export.export(net, example).module(), quantiser)
    for _ in range(4):
        ready(*ALL[name][1]())
    return convert_pt2e(ready), example


def save(folder: Path, key: str, net: nn.Module, example: tuple[Tensor, ...]) -> None:
    """KEY.pt2, and KEY.npz: what goes in and comes out."""
    with torch.no_grad():
        given = net(*example)
    outs = given if isinstance(given, tuple) else (given,)
    arrays = {f"x{i}": value.numpy() for i, value in enumerate(example)}
    arrays |= {f"y{i}": value.numpy() for i, value in enumerate(outs)}
    np.savez(folder / f"{key}.npz", allow_pickle=False, **arrays)
    torch.export.save(torch.export.export(net, example), folder / f"{key}.pt2")


def main(folder: Path, *names: str) -> None:
    """Each, and what it computes; in float, and by PT2E where its quantiser takes it
    (NAME_int8)."""
    warnings.simplefilter("ignore")
    folder.mkdir(exist_ok=True)
    for name in names or ALL:
        if not (folder / f"{name}.pt2").exists():
            save(folder, name, *made(name))
        try:
            save(folder, f"{name}_int8", *quantised(name))
        except Exception as error:  # of a quantiser, which has classes of its own
            said = " ".join(str(error).split())
            (folder / f"{name}_int8.txt").write_text(f"{type(error).__name__}: {said}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
