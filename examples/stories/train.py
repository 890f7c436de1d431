"""Trains the stories model in PyTorch, makes its weights int8, and exports it.

python train.py [MINUTES]   tokens_table.h and odds_table.h, and what export.py exports

Needs torch and onnxscript. One thread; about 10 minutes.
"""

from __future__ import annotations

import time
from pathlib import Path

import torch
from corpus import stories
from network import Llama, Sizes
from sampler import write_odds
from tokens import BEGIN, BYTES, Pair, encode, find_pairs, write_pairs
from torch import Tensor, nn

HERE = Path(__file__).parent
WEIGHTS = HERE / "build" / "stories.pt"
SEED, COUNT, HELD_OUT = 1, 8000, 200
STEPS, BATCH, RATE = 1300, 24, 4e-3
NONE = -100  # a target that does not count


def batches(texts: list[str], pairs: list[Pair], sizes: Sizes) -> Tensor:
    """A row for each story: BEGIN, its tokens, BEGIN, then NONE."""
    rows = [[BEGIN, *encode(text.encode(), pairs), BEGIN] for text in texts]
    assert max(map(len, rows)) <= sizes.window
    width = max(map(len, rows))
    return torch.tensor([row + [NONE] * (width - len(row)) for row in rows])


def loss_of(net: nn.Module, rows: Tensor) -> Tensor:
    """The mean of -log(odds) of the tokens that follow."""
    longest = int((rows != NONE).sum(1).max())
    rows = rows[:, :longest]
    logits = net(rows[:, :-1].clamp(min=0))
    return nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())


def trained(rows: Tensor, sizes: Sizes, steps: int) -> Llama:
    net = Llama(sizes)
    descent = torch.optim.AdamW(net.parameters(), RATE, (0.9, 0.95), weight_decay=0.05)
    rate = torch.optim.lr_scheduler.OneCycleLR(descent, RATE, steps, pct_start=0.1)
    began = time.monotonic()
    for step in range(steps):
        loss = loss_of(net, rows[torch.randint(len(rows), (BATCH,))])
        descent.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        descent.step()
        rate.step()
        if step % 100 == 0 or step == steps - 1:
            print(
                f"{step} {loss.item():.3f} {time.monotonic() - began:.0f} s", flush=True
            )
    return net.eval()


def main() -> None:
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    sizes = Sizes()
    texts = stories(COUNT + HELD_OUT, SEED)
    pairs = find_pairs(texts[:2000], sizes.words - BYTES)
    write_pairs(pairs)
    write_odds()
    rows = batches(texts, pairs, sizes)
    net = trained(rows[:COUNT], sizes, STEPS)
    with torch.no_grad():
        held = loss_of(net, rows[COUNT:]).item()
    print(f"{sum(p.numel() for p in net.parameters())} parameters, held out {held:.4f}")
    WEIGHTS.parent.mkdir(exist_ok=True)
    torch.save(net.state_dict(), WEIGHTS)


if __name__ == "__main__":
    main()
