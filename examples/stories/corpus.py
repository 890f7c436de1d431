"""Short stories for children, made from a seed by a grammar: the same text each time.

python corpus.py [COUNT [SEED]]   prints some
"""

from __future__ import annotations

import random
import sys

GIRLS = ["Anna", "Mia", "Lily", "Sara", "Nora", "Ella", "Ruth", "Tina", "Zoe", "Ida"]
BOYS = ["Tom", "Ben", "Max", "Sam", "Leo", "Tim", "Jack", "Finn", "Paul", "Otto"]
ANIMALS = [
    "cat",
    "dog",
    "fox",
    "bear",
    "mouse",
    "rabbit",
    "duck",
    "frog",
    "owl",
    "pony",
]
TRAITS = [
    "little",
    "kind",
    "brave",
    "shy",
    "funny",
    "clever",
    "lazy",
    "happy",
    "quiet",
    "curious",
]
COLOURS = ["red", "blue", "green", "yellow", "white", "brown"]
THINGS = ["ball", "hat", "kite", "boat", "drum", "box", "book", "lamp", "bell", "coat"]
PLACES = (
    "in the park", "in the garden", "by the lake", "in the woods", "on the hill",
    "at the beach", "near the river", "in the barn", "behind the house",
)  # fmt: skip
DAYS = (
    "One day", "One morning", "One sunny day", "One cold day", "One rainy day",
    "After lunch", "Early in the morning", "On a warm evening",
)  # fmt: skip
FOODS = [
    "a cake",
    "an apple",
    "some soup",
    "a pie",
    "some bread",
    "a cookie",
    "some milk",
]
HIDDEN = (
    "under a big tree", "behind a rock", "in the tall grass", "inside an old box",
    "under the bed", "on top of the roof", "in a deep hole",
)  # fmt: skip


def _article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


class Teller:
    """One story: who is in it, and what it says of them."""

    def __init__(self, chance: random.Random) -> None:
        self.pick = chance.choice
        girl = chance.random() < 0.5
        self.name = self.pick(GIRLS if girl else BOYS)
        self.he, self.him, self.his = (
            ("she", "her", "her") if girl else ("he", "him", "his")
        )
        self.kind = self.pick(["girl" if girl else "boy", *ANIMALS])
        self.trait, self.place, self.food = map(self.pick, (TRAITS, PLACES, FOODS))
        self.friend = self.pick([n for n in GIRLS + BOYS if n != self.name])
        self.other = self.pick([one for one in ANIMALS if one != self.kind])
        self.thing = f"{self.pick(COLOURS)} {self.pick(THINGS)}"
        self.where, self.day = self.pick(HIDDEN), self.pick(DAYS)

    @property
    def words(self) -> dict[str, str]:
        words = {k: v for k, v in vars(self).items() if isinstance(v, str)}
        return words | {
            "He": self.he.capitalize(), "His": self.his.capitalize(),
            "a_trait": _article(self.trait), "an_other": _article(self.other),
            "noun": self.thing.split()[1],
        }  # fmt: skip

    def start(self) -> str:
        return self.pick((
            "Once upon a time, there was {a_trait} {kind} named {name}. {He} had "
            "a {thing}. {name} loved the {noun} very much.",
            "{name} was {a_trait} {kind}. {He} lived {place}. {name} had a {thing} "
            "and played with it every day.",
            "There once was {a_trait} {kind} who lived {place}. {His} name was "
            "{name}. {He} liked to play with {his} {thing}.",
        ))  # fmt: skip

    def middle(self) -> str:
        return self.pick((self.lost, self.met, self.shared, self.stuck, self.baked))()

    def lost(self) -> str:
        return self.pick((
            "{day}, {name} could not find the {noun}. {He} was very sad. {He} looked "
            "{where}, but it was not there. Then {he} saw {friend}. \"Can you help me "
            "find my {noun}?\" asked {name}. \"Yes, I can,\" said {friend}. They "
            "looked and looked. At last they found the {noun} {place}.",
            "{day}, the {noun} was gone. {name} began to cry. {His} friend {friend} "
            "came to help. \"Do not be sad,\" said {friend}. \"We will look for it.\" "
            "They found the {noun} {where}.",
        ))  # fmt: skip

    def met(self) -> str:
        return self.pick((
            "{day}, {name} went for a walk. {He} met a big {other} {place}. The "
            "{other} was all alone. \"Will you be my friend?\" asked the {other}. "
            "\"Yes,\" said {name}. \"You can play with my {noun}.\" The {other} "
            "smiled.",
            "{day}, {name} saw {an_other} {where}. The {other} looked scared. \"Do not "
            "be scared,\" said {name}. {He} gave the {other} {food}. The {other} ate "
            "it all and was not scared any more.",
        ))  # fmt: skip

    def shared(self) -> str:
        return (
            "{day}, {friend} came to play. \"I want the {noun},\" said {friend}. "
            "\"No, it is mine,\" said {name}. {friend} was sad and went away. {name} "
            "sat down and thought about it. Then {he} ran to {friend} and said, \"I am "
            "sorry. We can share the {noun}.\" {friend} was happy again."
        )  # fmt: skip

    def stuck(self) -> str:
        return (
            "{day}, the wind was strong. It took the {noun} up into a tree. {name} "
            "jumped, but {he} was too small. Then {an_other} came by. \"I can climb,\" "
            "said the {other}. It went up the tree and got the {noun}. \"Thank you,\" "
            "said {name}. {He} gave the {other} {food}."
        )  # fmt: skip

    def baked(self) -> str:
        return (
            "{day}, {name} was hungry. {He} asked {his} mom for {food}. \"First you "
            "must clean your room,\" said mom. {name} did not want to. But {he} "
            "cleaned the room and put the {noun} away. Mom was proud and gave {him} "
            "{food}."
        )  # fmt: skip

    def end(self) -> str:
        return self.pick((
            "{name} was so happy. {He} hugged {friend} and they played until dark. "
            "The end.",
            "From that day on, {name} and {friend} were best friends. The end.",
            "{name} went home and told {his} mom about it. Mom smiled. The end.",
            "That night {name} slept with the {noun} next to {him}. The end.",
            "{name} learned that it is good to be kind. The end.",
        ))  # fmt: skip

    def story(self) -> str:
        parts = self.start(), self.middle(), self.end()
        return " ".join(parts).format_map(self.words)


def stories(count: int, seed: int) -> list[str]:
    chance = random.Random(seed)
    return [Teller(chance).story() for _ in range(count)]


def main() -> None:
    count, seed = ([int(word) for word in sys.argv[1:]] + [3, 1][len(sys.argv) - 1 :])[
        :2
    ]
    print("\n\n".join(stories(count, seed)))


if __name__ == "__main__":
    main()
